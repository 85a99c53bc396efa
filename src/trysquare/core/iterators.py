"""Iterators in what a tool returns, read into lists at once: an iterator can be read only once.

Plain iterators are read where the function ran, in its thread; asynchronous ones on the event loop. Reading is bounded,
and stops when the call is cancelled or its time is up. What holds no iterator is returned as it is.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, MappingView, Sequence, Set
from typing import Any, cast

from pydantic import BaseModel

from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread, wait_for

MAX_BYTES = 64 * 1024 * 1024
"""Limit on what is read from the iterators of one result."""
_ITEM_BYTES = 64
_MAX_DEPTH = 100
PLAIN_TYPES = frozenset({str, int, float, bool, type(None), bytes, bytearray, complex})


def collected(value: Any, context: CallContext) -> tuple[Any, bool]:
    """The value with plain iterators read into lists, and whether asynchronous ones are left in it."""
    collector = _Collector(context)
    return collector.read(value), collector.has_async


async def gathered(value: Any, context: CallContext) -> Any:
    """The value with all iterators read. Plain ones are read in a thread: they may take their time."""
    found = _AsyncWalk()
    found.read(value)
    if found.has_plain:
        value, has_async = await run_in_thread(lambda: collected(value, context))
        return await gathered_async(value, context) if has_async else value
    return await gathered_async(value, context) if found.pending else value


async def gathered_async(value: Any, context: CallContext) -> Any:
    found = _AsyncWalk()
    found.read(value)
    return _AsyncWalk({id(each): await _read_async(each, context) for each in found.pending}).read(value)


def collected_stream(iterator: Iterator[Any], context: CallContext) -> tuple[Any, bool]:
    """As `collected`, for what a synchronous generator function yields: each item is reported as progress."""
    report = _item_report(context)
    collector = _Collector(context, None if report is None else lambda item: wait_for(report(item)))
    return collector.read(iterator), collector.has_async


async def gathered_stream(iterator: AsyncIterator[Any], context: CallContext) -> list[Any]:
    """The items of an asynchronous generator function; each is reported as progress."""
    return await _read_async(iterator, context, _item_report(context))


def _item_report(context: CallContext) -> Callable[[Any], Coroutine[Any, Any, None]] | None:
    """Reports an item as progress; None if nobody reads it."""
    if not context.reads_progress:
        return None
    numbers = itertools.count(1)

    async def report(item: Any) -> None:
        text = item if isinstance(item, str) else Result(success=True, value=item).to_text()
        await context.progress(next(numbers), message=text)

    return report


async def _read_async(
    iterator: AsyncIterator[Any],
    context: CallContext,
    report: Callable[[Any], Coroutine[Any, Any, None]] | None = None,
) -> list[Any]:
    items: list[Any] = []
    counter = _Collector(context)
    try:
        async for item in iterator:
            context.check()
            counter.spend(item)
            items.append(await gathered(item, context) if type(item) not in PLAIN_TYPES else item)
            if report is not None:
                await report(items[-1])
    finally:
        if (close := getattr(iterator, "aclose", None)) is not None:
            await close()
    return items


class _Walk(ABC):
    """Goes through lists, objects, dataclasses and models, and rebuilds those in which something was replaced."""

    def __init__(self) -> None:
        self._done: dict[int, tuple[Any, Any]] = {}
        """By identity, with the value kept alive: each is read once, also where a value holds itself."""

    @abstractmethod
    def replaced(self, value: Any) -> tuple[bool, Any]:
        """Whether a value is replaced, and by what."""

    def read(self, value: Any, depth: int = 0) -> Any:
        """The value with everything in it replaced that has to be."""
        if type(value) in PLAIN_TYPES or depth > _MAX_DEPTH:
            return value
        known = self._done.get(id(value))
        if known is not None:
            return known[1]
        self._done[id(value)] = (value, value)
        is_other, other = self.replaced(value)
        made = other if is_other else self._rebuilt(value, depth)
        self._done[id(value)] = (value, made)
        return made

    def has_only_plain(self, parts: Iterable[Any]) -> bool:
        """Whether there is nothing to look for in the parts of a value."""
        return PLAIN_TYPES.issuperset(map(type, parts))

    def _rebuilt(self, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            entries = cast(dict[Any, Any], value)
            if self.has_only_plain(entries.values()):
                return entries
            read = {key: self.read(part, depth + 1) for key, part in entries.items()}
            return read if any(read[key] is not part for key, part in entries.items()) else entries
        if isinstance(value, (list, tuple, set, frozenset)):
            return self._rebuilt_items(cast(Any, value), depth)
        if isinstance(value, Result):
            return self._rebuilt_parts(cast(Any, value), ("value", "fields"), depth)
        if isinstance(value, BaseModel):
            return self._rebuilt_parts(value, (*value.__dict__, "__pydantic_extra__"), depth)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._rebuilt_parts(value, tuple(field.name for field in dataclasses.fields(value)), depth)
        return value

    def _rebuilt_items(self, items: Any, depth: int) -> Any:
        if self.has_only_plain(items):
            return items
        read = [self.read(item, depth + 1) for item in items]
        if all(new is old for new, old in zip(read, items, strict=True)):
            return items
        return items._replace(**dict(zip(items._fields, read, strict=True))) if hasattr(items, "_fields") else read

    def _rebuilt_parts(self, holder: Any, names: tuple[str, ...], depth: int) -> Any:
        parts = {name: getattr(holder, name, None) for name in names}
        read = {name: self.read(part, depth + 1) for name, part in parts.items()}
        changed = {name: part for name, part in read.items() if part is not parts[name]}
        if not changed:
            return holder
        made = copy.copy(holder)
        for name, part in changed.items():
            # Without its validation, which does not expect a list instead of an iterator.
            object.__setattr__(made, name, part)
        return made


class _Collector(_Walk):
    """Reads plain iterators, and views and ranges, which are not JSON types either."""

    def __init__(self, context: CallContext, report: Callable[[Any], None] | None = None) -> None:
        super().__init__()
        self._context = context
        self._report = report
        self._left = MAX_BYTES
        self._reading = 0
        self.has_async = False

    def has_only_plain(self, parts: Iterable[Any]) -> bool:
        # What an iterator gave is counted, so every part of it is looked at.
        return not self._reading and super().has_only_plain(parts)

    def replaced(self, value: Any) -> tuple[bool, Any]:
        self.has_async = self.has_async or isinstance(value, AsyncIterator)
        if isinstance(value, Iterator):
            return True, self._items(cast(Iterator[Any], value))
        if not _is_foreign_container(value):
            return False, None
        if isinstance(value, Mapping):
            entries = cast(Mapping[Any, Any], value)
            return True, dict(zip(entries, self._items(iter(entries.values())), strict=True))
        return True, self._items(iter(cast(Sequence[Any], value)))

    def spend(self, item: Any) -> None:
        """Count an item against what may be read."""
        self._left -= _ITEM_BYTES + (len(cast(str, item)) if isinstance(item, (str, bytes, bytearray)) else 0)
        if self._left < 0:
            raise ToolError(
                f"The tool returned an iterator of more than {MAX_BYTES // 1024**2} MB; nothing of it was sent.",
                code=ErrorCode.TOOL_FAILED,
                instruction="Ask for less in one call. The same call again gives the same error.",
            )

    def _items(self, iterator: Iterator[Any]) -> list[Any]:
        items: list[Any] = []
        self._reading += 1
        try:
            for item in iterator:
                self._context.check()
                items.append(self.read(item))
                if self._report is not None and self._reading == 1:
                    self._report(items[-1])
        finally:
            self._reading -= 1
            if (close := getattr(iterator, "close", None)) is not None:
                close()
        return items

    def read(self, value: Any, depth: int = 0) -> Any:
        if self._reading:
            self.spend(value)
        return super().read(value, depth)


def _is_foreign_container(value: Any) -> bool:
    """Whether a value is a view, a range or another container that is not a JSON type."""
    if isinstance(value, (dict, list, tuple, set, frozenset, str, bytes, bytearray, memoryview)):
        return False
    return isinstance(value, (Mapping, MappingView, Sequence, Set))


class _AsyncWalk(_Walk):
    """Finds asynchronous iterators and touches none; replaces those whose lists are known."""

    def __init__(self, lists: Mapping[int, list[Any]] | None = None) -> None:
        super().__init__()
        self._lists = lists or {}
        self.has_plain = False
        self.pending: list[AsyncIterator[Any]] = []

    def replaced(self, value: Any) -> tuple[bool, Any]:
        if id(value) in self._lists:
            return True, self._lists[id(value)]
        if isinstance(value, AsyncIterator):
            self.pending.append(cast(AsyncIterator[Any], value))
        elif isinstance(value, Iterator) or _is_foreign_container(value):
            self.has_plain = True
        return False, None
