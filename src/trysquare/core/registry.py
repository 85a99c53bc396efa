"""OnceRegistry: things are added by name, never twice, and taken out once. Safe under threads and tasks."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

from trysquare.core.errors import DeclarationError

T = TypeVar("T")


class OnceRegistry(Generic[T]):
    """Names and things, in the order in which they were added."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._things: dict[str, T] = {}
        # A plain lock: decorators run while modules are imported, where no event loop exists to hold an asyncio lock.
        self._lock = threading.Lock()

    def add(self, name: str, thing: T) -> None:
        """Add a thing under a name that is still free."""
        with self._lock:
            if name in self._things:
                raise DeclarationError(
                    f"{self._kind} `{name}` is declared twice. Give one of the two another name with name=…"
                )
            self._things[name] = thing

    def all(self) -> dict[str, T]:
        """What is there now, and stays there."""
        with self._lock:
            return dict(self._things)

    def take(self) -> dict[str, T]:
        """What is there now; the registry is empty afterwards, so that nothing is registered twice."""
        with self._lock:
            taken, self._things = self._things, {}
            return taken
