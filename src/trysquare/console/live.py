"""What tells the open pages that something changed: one watcher for all of them, and none while no page is open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from trysquare.core.errors import ToolError
from trysquare.store.watchers import watching

LOOK_EVERY = 0.3
"""Seconds between two looks at what other processes may have changed."""
_ALIVE_EVERY = 20.0
"""Seconds after which a stream says that it is alive, so that a closed page is noticed."""
_BACKLOG = 100
_NEVER = object()
logger = logging.getLogger("trysquare.console")


@dataclass(frozen=True, kw_only=True, slots=True)
class Topic:
    """Something that pages show. `glance` costs microseconds; `look` is asked only where that has changed."""

    name: str
    glance: Callable[[], Hashable]
    look: Callable[[], Awaitable[Hashable]] | None = None


class Live:
    """The streams of the open pages."""

    def __init__(self, topics: Sequence[Topic], folders: Sequence[Path]) -> None:
        self._topics = topics
        self._folders = folders
        self._streams: set[asyncio.Queue[str | None]] = set()
        self._watcher: asyncio.Task[None] | None = None
        self._soon = asyncio.Event()

    def announce(self, topic: str) -> None:
        """Tell every page at once."""
        for stream in self._streams:
            with suppress(asyncio.QueueFull):
                stream.put_nowait(topic)

    def look_soon(self) -> None:
        """Look now at what may have changed."""
        self._soon.set()

    def close(self) -> None:
        """End all streams."""
        for stream in self._streams:
            while stream.full():
                stream.get_nowait()
            stream.put_nowait(None)

    async def events(self) -> AsyncGenerator[bytes]:
        """The stream of one page: an event with the name of a topic whenever that has changed."""
        async with self._stream() as stream:
            yield b"retry: 1000\n\n"
            while True:
                try:
                    async with asyncio.timeout(_ALIVE_EVERY):
                        topic = await stream.get()
                except TimeoutError:
                    yield b": alive\n\n"
                    continue
                if topic is None:
                    return
                yield f"event: {topic}\ndata: changed\n\n".encode()

    @asynccontextmanager
    async def _stream(self) -> AsyncGenerator[asyncio.Queue[str | None]]:
        stream: asyncio.Queue[str | None] = asyncio.Queue(_BACKLOG)
        self._streams.add(stream)
        if self._watcher is None:
            self._watcher = asyncio.create_task(self._watch())
        else:
            self._announce_all(stream)
        try:
            yield stream
        finally:
            self._streams.discard(stream)
            if not self._streams:
                self._stop()

    def _announce_all(self, stream: asyncio.Queue[str | None]) -> None:
        """What changed before the page opened its stream is not on it."""
        for topic in self._topics:
            stream.put_nowait(topic.name)

    def _stop(self) -> None:
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.cancel()

    async def _watch(self) -> None:
        with ExitStack() as stack:
            for folder in self._folders:
                stack.enter_context(watching(folder))
            seen = {topic.name: topic.glance() for topic in self._topics}
            shown: dict[str, Hashable] = {}
            for stream in self._streams:
                self._announce_all(stream)
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_EVERY):
                        await self._soon.wait()
                self._soon.clear()
                await self._look(seen, shown)

    async def _look(self, seen: dict[str, Hashable], shown: dict[str, Hashable]) -> None:
        glances = {topic.name: topic.glance() for topic in self._topics}
        for topic in self._topics:
            if glances[topic.name] == seen[topic.name]:
                continue
            seen[topic.name] = glances[topic.name]
            if topic.look is not None:
                try:
                    now = await topic.look()
                except ToolError as error:
                    logger.warning("cannot look at %s: %s", topic.name, error)
                    continue
                if now == shown.get(topic.name, _NEVER):
                    continue
                shown[topic.name] = now
            self.announce(topic.name)
