"""Words and what they go with, phrases, clauses, trees."""
