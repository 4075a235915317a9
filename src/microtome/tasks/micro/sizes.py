"""How many rows the splits of an embedded task have."""

from __future__ import annotations

SIZES = {"train": 4000, "dev": 800, "test": 800}
