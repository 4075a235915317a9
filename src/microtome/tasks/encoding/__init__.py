"""From rows to tokens, kept between runs."""
