"""Seen: which version of a file each caller knows, so that nobody edits what they have not read."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

MOST_FILES = 500
LARGEST_KEPT = 256 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Sight:
    """A file as a caller saw it."""

    version: str
    content: str | None = None
    """The text, unless it is large: with it, what changed since can be told."""


class Seen:
    """What callers saw, the latest of each file, as many as fit."""

    def __init__(self) -> None:
        self._sights: OrderedDict[tuple[str, str], Sight] = OrderedDict()
        self._lock = threading.Lock()

    def remember(self, caller: str, path: str, version: str, content: str) -> None:
        """The caller knows this version now."""
        kept = content if len(content) <= LARGEST_KEPT else None
        with self._lock:
            self._sights[caller, path] = Sight(version=version, content=kept)
            self._sights.move_to_end((caller, path))
            while len(self._sights) > MOST_FILES:
                self._sights.popitem(last=False)

    def forget(self, caller: str, path: str) -> None:
        """The file is gone."""
        with self._lock:
            self._sights.pop((caller, path), None)

    def of(self, caller: str, path: str) -> Sight | None:
        """The file as the caller saw it last, if they did."""
        with self._lock:
            return self._sights.get((caller, path))
