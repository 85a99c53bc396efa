"""Handles: short random names for large or pending things, each owned by one principal, each with an end.

What is kept is bounded in bytes, for each principal and in all: the oldest go first, and what is over the bound by
itself is refused. What has expired is dropped by every use, and by a timer where there is none.
"""

from __future__ import annotations

import secrets
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from trysquare.core.errors import ErrorCode, NotFound, ToolError


class Handles(Protocol):
    """Where handles are kept. The default is memory; a store can keep them for several processes."""

    def put(self, value: Any, *, principal: str, ttl: float = 3600.0) -> str:
        """Keep a value and return its handle; `TooLargeToKeep` if it alone is more than may be kept."""
        ...

    def get(self, handle: str, *, principal: str) -> Any:
        """Return the value, or raise `NotFound`: the same answer for expired, dropped, unknown and somebody else's."""
        ...

    def drop(self, handle: str) -> None:
        """Forget a handle."""
        ...


class TooLargeToKeep(ToolError):
    """A value is larger than all that may be kept for its principal."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KeepLimits:
    """How many bytes of JSON may be kept behind handles."""

    total: int = 256 * 1024 * 1024
    per_caller: int = 64 * 1024 * 1024

    def check(self, size: int) -> None:
        """Refuse a value that does not fit by itself."""
        most = min(self.total, self.per_caller)
        if size > most:
            raise TooLargeToKeep(
                f"The value has {size:,} bytes, and at most {most:,} bytes are kept.",
                instruction="Ask for less in one call.",
            )


def no_handle(handle: str) -> NotFound:
    """The one answer for a handle that gives nothing."""
    return NotFound(
        f"No handle `{handle[:40]}`: expired, dropped for newer ones, or unknown.",
        code=ErrorCode.HANDLE_NOT_FOUND,
        instruction="Repeat the call that produced the handle.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kept:
    value: Any
    principal: str
    expires: float
    size: int


class MemoryHandles:
    """Handles in this process, at most `capacity` of them and as many bytes as the limits say."""

    def __init__(
        self,
        *,
        capacity: int = 1024,
        limits: KeepLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._capacity = capacity
        self._limits = limits or KeepLimits()
        self._clock = clock
        self._lock = threading.Lock()
        self._timer = SweepTimer(self)

    @property
    def size(self) -> int:
        """Bytes that are kept now."""
        with self._lock:
            return sum(kept.size for kept in self._kept.values())

    def put(self, value: Any, *, principal: str, ttl: float = 3600.0) -> str:
        handle, size = secrets.token_urlsafe(12), _size_of(value)
        self._limits.check(size)
        with self._lock:
            self._drop_expired()
            self._kept[handle] = _Kept(value=value, principal=principal, expires=self._clock() + ttl, size=size)
            self._make_room(principal)
        self._timer.start(ttl)
        return handle

    def get(self, handle: str, *, principal: str) -> Any:
        with self._lock:
            self._drop_expired()
            kept = self._kept.get(handle)
        if kept is None or kept.principal != principal:
            raise no_handle(handle)
        return kept.value

    def drop(self, handle: str) -> None:
        with self._lock:
            self._kept.pop(handle, None)

    def sweep(self) -> float | None:
        """Drop what has expired; returns the seconds until something else does, if anything is kept."""
        with self._lock:
            self._drop_expired()
            ends = [kept.expires for kept in self._kept.values()]
        return min(ends) - self._clock() if ends else None

    def _drop_expired(self) -> None:
        now = self._clock()
        for handle in [handle for handle, kept in self._kept.items() if kept.expires <= now]:
            del self._kept[handle]

    def _make_room(self, principal: str) -> None:
        own = [(handle, kept.size) for handle, kept in self._kept.items() if kept.principal == principal]
        over = sum(size for _, size in own) - self._limits.per_caller
        for handle, size in own:
            if over <= 0:
                break
            over -= size
            del self._kept[handle]
        total = sum(kept.size for kept in self._kept.values())
        while total > self._limits.total or len(self._kept) > self._capacity:
            total -= self._kept.popitem(last=False)[1].size


class Sweepable(Protocol):
    """Something that drops what has expired."""

    def sweep(self) -> float | None:
        """Drop what has expired; returns the seconds until something else does, if anything is kept."""
        ...


class SweepTimer:
    """Sweeps when something expires, although nobody uses it: one daemon thread while something is kept."""

    def __init__(self, swept: Sweepable) -> None:
        self._swept = weakref.ref(swept)
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def start(self, seconds: float) -> None:
        """See to it that a sweep comes within about so many seconds, unless one is due already."""
        with self._lock:
            if self._timer is not None and self._timer.is_alive():
                return
            self._timer = threading.Timer(max(seconds, 1.0), self._sweep)
            self._timer.name, self._timer.daemon = "trysquare-handles", True
            self._timer.start()

    def _sweep(self) -> None:
        swept = self._swept()
        left = None if swept is None else swept.sweep()
        with self._lock:
            self._timer = None
        if left is not None:
            self.start(left)


def _size_of(value: Any) -> int:
    # Loaded with the first page that is kept: a gateway starts a server before it needs any of this.
    from pydantic_core import PydanticSerializationError, to_json

    try:
        return len(to_json(value, fallback=str, inf_nan_mode="strings"))
    except (PydanticSerializationError, ValueError):
        return len(repr(value))
