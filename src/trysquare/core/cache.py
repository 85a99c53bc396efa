"""LruCache, and handles: values with a lifetime, stored for one principal."""

from __future__ import annotations

import secrets
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from trysquare.core.errors import ErrorCode, NotFound, ToolError


class Handles(Protocol):
    """A store of values behind handles. The default is memory; a database serves several processes."""

    def put(self, value: Any, *, principal: str, ttl: float = 3600.0) -> str:
        """Store a value and return its handle; `TooLargeToKeep` if it alone exceeds the limit."""
        ...

    def get(self, handle: str, *, principal: str) -> Any:
        """Return the value, or raise `NotFound`: one error for expired, dropped, unknown and another principal's."""
        ...

    def drop(self, handle: str) -> None: ...


class TooLargeToKeep(ToolError):
    """A value exceeds the limit of its principal."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KeepLimits:
    """Limits on the bytes of JSON behind handles."""

    total: int = 256 * 1024 * 1024
    per_caller: int = 64 * 1024 * 1024

    def check(self, size: int) -> None:
        """Refuse a value that does not fit by itself."""
        most = min(self.total, self.per_caller)
        if size > most:
            raise TooLargeToKeep(
                f"The value has {size:,} bytes; the limit is {most:,} bytes.", instruction="Ask for less in one call."
            )


def no_handle(handle: str) -> NotFound:
    """The one error for a handle without a value."""
    return NotFound(
        f"Unknown handle `{handle[:40]}`: it expired, was dropped for newer ones, or never existed.",
        code=ErrorCode.HANDLE_NOT_FOUND,
        instruction="Repeat the call that produced the handle.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    value: Any
    principal: str
    expires: float
    size: int


class MemoryHandles:
    """Handles in this process, bounded by count and bytes: the oldest are dropped first."""

    def __init__(
        self, *, capacity: int = 1024, limits: KeepLimits | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._capacity = capacity
        self._limits = limits or KeepLimits()
        self._clock = clock
        self._lock = threading.Lock()
        self._timer = SweepTimer(self.sweep)

    @property
    def size(self) -> int:
        """Bytes that are stored now."""
        with self._lock:
            return sum(entry.size for entry in self._entries.values())

    def put(self, value: Any, *, principal: str, ttl: float = 3600.0) -> str:
        handle, size = secrets.token_urlsafe(12), _size_of(value)
        self._limits.check(size)
        with self._lock:
            self._drop_expired()
            self._entries[handle] = _Entry(value=value, principal=principal, expires=self._clock() + ttl, size=size)
            self._evict(principal)
        self._timer.start(ttl)
        return handle

    def get(self, handle: str, *, principal: str) -> Any:
        with self._lock:
            self._drop_expired()
            entry = self._entries.get(handle)
        if entry is None or entry.principal != principal:
            raise no_handle(handle)
        return entry.value

    def drop(self, handle: str) -> None:
        with self._lock:
            self._entries.pop(handle, None)

    def sweep(self) -> float | None:
        """Drop what has expired; returns the seconds until something else does, if anything is entry."""
        with self._lock:
            self._drop_expired()
            ends = [entry.expires for entry in self._entries.values()]
        return min(ends) - self._clock() if ends else None

    def _drop_expired(self) -> None:
        now = self._clock()
        for handle in [handle for handle, entry in self._entries.items() if entry.expires <= now]:
            del self._entries[handle]

    def _evict(self, principal: str) -> None:
        own = [(handle, entry.size) for handle, entry in self._entries.items() if entry.principal == principal]
        over = sum(size for _, size in own) - self._limits.per_caller
        for handle, size in own:
            if over <= 0:
                break
            over -= size
            del self._entries[handle]
        total = sum(entry.size for entry in self._entries.values())
        while total > self._limits.total or len(self._entries) > self._capacity:
            total -= self._entries.popitem(last=False)[1].size


class SweepTimer:
    """Sweeps when something expires, although nobody uses it: one daemon thread while there are entries."""

    def __init__(self, sweep: Callable[[], float | None]) -> None:
        self._swept = weakref.WeakMethod(sweep)
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def start(self, seconds: float) -> None:
        """Sweep in about so many seconds, unless a sweep is due already."""
        with self._lock:
            if self._timer is not None and self._timer.is_alive():
                return
            self._timer = threading.Timer(max(seconds, 1.0), self._sweep)
            self._timer.name, self._timer.daemon = "trysquare-handles", True
            self._timer.start()

    def _sweep(self) -> None:
        sweep = self._swept()
        left = None if sweep is None else sweep()
        with self._lock:
            self._timer = None
        if left is not None:
            self.start(left)


def _size_of(value: Any) -> int:
    from pydantic_core import PydanticSerializationError, to_json

    try:
        return len(to_json(value, fallback=str, inf_nan_mode="strings"))
    except (PydanticSerializationError, ValueError):
        return len(repr(value))


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """Values made from their keys, bounded by count and by the total size of the keys; thread-safe.

    The least recently used entries are dropped first.
    """

    def __init__(
        self, make: Callable[[K], V], *, entries: int = 512, size: int = 4_000_000, size_of: Callable[[K], int]
    ) -> None:
        self._make, self._size_of = make, size_of
        self._max_entries, self._max_size = entries, size
        self._values: OrderedDict[K, V] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def of(self, key: K) -> V:
        """The value of a key, made if it is not there."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        # Two threads may make the same value; waiting for a slow one would cost more.
        value = self._make(key)
        with self._lock:
            if key not in self._values:
                self._size += self._size_of(key)
            self._values[key] = value
            while len(self._values) > self._max_entries or (self._size > self._max_size and len(self._values) > 1):
                self._size -= self._size_of(self._values.popitem(last=False)[0])
        return value
