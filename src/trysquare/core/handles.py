"""Handles: short random names for large or pending things, each owned by one principal, each with an end."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from trysquare.core.errors import ErrorCode, NotFound


class Handles(Protocol):
    """Where handles are kept. The default is memory; a store can keep them for several processes."""

    def put(self, value: Any, *, principal: str, ttl: float = 3600.0) -> str:
        """Keep a value and return its handle."""
        ...

    def get(self, handle: str, *, principal: str) -> Any:
        """Return the value, or raise `NotFound`: the same answer for expired, unknown and somebody else's."""
        ...

    def drop(self, handle: str) -> None:
        """Forget a handle."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kept:
    value: Any
    principal: str
    expires: float


class MemoryHandles:
    """Handles in this process, at most `capacity` of them: the oldest goes first."""

    def __init__(self, *, capacity: int = 1024, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._capacity = capacity
        self._clock = clock
        self._lock = threading.Lock()

    def put(self, value: Any, *, principal: str, ttl: float = 3600.0) -> str:
        handle = secrets.token_urlsafe(12)
        with self._lock:
            self._kept[handle] = _Kept(value=value, principal=principal, expires=self._clock() + ttl)
            while len(self._kept) > self._capacity:
                self._kept.popitem(last=False)
        return handle

    def get(self, handle: str, *, principal: str) -> Any:
        with self._lock:
            kept = self._kept.get(handle)
            if kept is not None and kept.expires <= self._clock():
                del self._kept[handle]
                kept = None
        if kept is None or kept.principal != principal:
            raise NotFound(
                f"No handle `{handle[:40]}`: it has expired or never existed.",
                code=ErrorCode.HANDLE_NOT_FOUND,
                instruction="Repeat the call that produced the handle.",
            )
        return kept.value

    def drop(self, handle: str) -> None:
        with self._lock:
            self._kept.pop(handle, None)
