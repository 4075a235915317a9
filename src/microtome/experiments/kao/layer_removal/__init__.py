"""Layer removal: what may be cut without training, and what it saves."""
