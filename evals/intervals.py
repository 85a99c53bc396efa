"""Intervals: how sure a share is that was found in so many trials."""

from __future__ import annotations

import math

_NORMAL_95 = 1.959964


def wilson(right: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of Wilson for a share; everything is possible where nothing was tried."""
    if trials == 0:
        return 0.0, 1.0
    share, z2 = right / trials, _NORMAL_95**2
    middle = share + z2 / (2 * trials)
    spread = _NORMAL_95 * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    whole = 1 + z2 / trials
    return max(0.0, (middle - spread) / whole), min(1.0, (middle + spread) / whole)
