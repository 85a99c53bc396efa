"""The nearest name: what was probably meant by one that there is not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str], *, count: int = 1) -> list[str]:
    """The closest of some names, best first: by spelling, and by one name holding the other."""
    wanted = _fold(name[:100])
    known = list(names)
    folded = {_fold(candidate): candidate for candidate in reversed(known)}
    close = difflib.get_close_matches(wanted, folded, n=count, cutoff=0.6)
    found = [folded[match] for match in close]
    if len(wanted) > 2:
        holding = [candidate for candidate in known if wanted in _fold(candidate)]
        found.extend(candidate for candidate in holding if candidate not in found)
    return found[:count]


def _fold(name: str) -> str:
    return name.lower().replace("-", "_").replace(" ", "_")
