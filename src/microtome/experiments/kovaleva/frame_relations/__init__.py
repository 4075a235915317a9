"""Whether heads link a predicate with what fills its frame."""
