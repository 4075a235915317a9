"""Singh & Giovanardi 2020: re-initialised layers, frozen layers, and how far weights move."""
