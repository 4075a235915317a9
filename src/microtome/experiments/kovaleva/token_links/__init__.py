"""Whether heads follow links between words, or only their distance."""
