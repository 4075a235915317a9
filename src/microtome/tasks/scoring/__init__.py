"""From what a model put out to official metrics with intervals."""
