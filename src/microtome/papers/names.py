"""What we call the four papers."""

from __future__ import annotations

KAO_A = "Kao et al. 2020"
KAO_B = "Kao et al. 2021"
SINGH = "Singh & Giovanardi 2020"
KOVALEVA = "Kovaleva et al. 2019"
