"""Servers: everything behind the gateway by its name, and what is known of it whether or not it runs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.core.healing import nearest
from trysquare.core.threads import run_in_thread
from trysquare.gateway.catalogue import Catalogue
from trysquare.gateway.fleet import Fleet
from trysquare.gateway.large import LargeResults
from trysquare.gateway.sending import Sender
from trysquare.gateway.server import BrokenServer, Definition, ServerConfig, ServerEntry

logger = logging.getLogger("trysquare.gateway")

ASK_AGAIN_SECONDS = 5.0
"""A name that is not known has the server asked again, but not by every call."""


class Servers:
    """What the gateway's tools know and use: the configuration, the catalogue, and the servers that run."""

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        fleet: Fleet,
        sender: Sender,
        results: LargeResults,
        on_tools: Callable[[str], None] = lambda server: None,
    ) -> None:
        """`on_tools` hears which server's tools are shown otherwise than before."""
        self.catalogue, self.fleet, self.sender, self.results = catalogue, fleet, sender, results
        self.entries: Mapping[str, ServerEntry] = {}
        self._on_tools = on_tools
        self._asked_at: dict[str, float] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._work: set[asyncio.Task[None]] = set()

    def use(self, entries: Mapping[str, ServerEntry]) -> None:
        """Go on with these servers. Those that are the same as before keep what is known of them."""
        for name, entry in entries.items():
            if self.entries.get(name) != entry:
                self._asked_at.pop(name, None)
        self.entries = dict(entries)
        self.catalogue.use(entries)

    def entry(self, name: str) -> ServerEntry:
        """A server by its name, or an error that names the nearest."""
        found = self.entries.get(name)
        if found is not None:
            return found
        close = nearest(name, self.entries, count=3) or list(self.entries)[:12]
        hint = f" There are {', '.join(f'`{one}`' for one in close)}." if close else " There are none."
        raise NotFound(f"There is no server `{name[:80]}`.{hint}", instruction="Name one of the servers.")

    def known(self, server: ServerConfig) -> tuple[Definition, ...] | None:
        """The tools of a server as far as the catalogue has them; None if it was never asked."""
        definitions = self.catalogue.definitions(server.name)
        return None if definitions is None else tuple(one for one in definitions if is_shown(server, one.name))

    def names(self, server: ServerConfig) -> list[str] | None:
        """The names of a server's tools, as far as they are known."""
        known = self.known(server)
        return None if known is None else [one.name for one in known]

    async def definitions(self, server: ServerConfig) -> tuple[Definition, ...]:
        """The tools of a server: at once where they are known, and then it is made ready beside."""
        known = self.known(server)
        if known is None:
            await self.ask(server.name)
            return self.known(server) or ()
        self.warm(server.name)
        return known

    async def find(self, server: ServerConfig, tool: str) -> Definition | None:
        """One tool of a server. Where it is not known, the server is asked once more."""
        if not is_shown(server, tool):
            return None
        found = self.catalogue.find(server.name, tool)
        if found is None and self._may_ask(server.name):
            await self.ask(server.name)
            found = self.catalogue.find(server.name, tool)
        return found

    def warm(self, name: str) -> None:
        """Start a server beside the call, and see whether its tools are still those that are known."""
        if name not in self._asked_at and name not in self._asking:
            self._beside(self._ask_quietly(name))

    def discover(self) -> None:
        """Ask every server that was never asked, beside everything else."""
        for name, entry in self.entries.items():
            if isinstance(entry, ServerConfig) and self.catalogue.definitions(name) is None:
                self.warm(name)

    def changed(self, name: str) -> None:
        """Take in that a server says its tools are others now."""
        self._asked_at.pop(name, None)
        self._beside(self._ask_quietly(name))

    async def ask(self, name: str) -> None:
        """Ask a server for its tools. Whoever asks meanwhile waits for the same answer."""
        task = self._asking.get(name)
        if task is None:
            task = asyncio.create_task(self._ask(name))
            self._asking[name] = task
            task.add_done_callback(lambda _: self._asking.pop(name, None))
        await asyncio.shield(task)

    async def close(self) -> None:
        """Let go of what is being asked beside."""
        tasks = [*self._work, *self._asking.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _may_ask(self, name: str) -> bool:
        asked = self._asked_at.get(name)
        return asked is None or time.monotonic() - asked > ASK_AGAIN_SECONDS

    async def _ask(self, name: str) -> None:
        definitions = await self.fleet.definitions(name)
        self._asked_at[name] = time.monotonic()
        if await run_in_thread(lambda: bool(self.catalogue.take(name, definitions))):
            self._on_tools(name)

    async def _ask_quietly(self, name: str) -> None:
        try:
            await self.ask(name)
        except ToolError as error:
            logger.warning("%s cannot be asked for its tools: %s", name, error)

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)


def is_shown(server: ServerConfig, tool: str) -> bool:
    """Whether the configuration lets a tool of a server be seen and used."""
    return tool not in server.exclude_tools and (server.include_tools is None or tool in server.include_tools)


def usable(entry: ServerEntry) -> ServerConfig:
    """The server, or an error that says what is wrong with its configuration and where."""
    if isinstance(entry, BrokenServer):
        raise ToolError(
            f"The server `{entry.name}` cannot be used: {entry.reason} ({entry.place})",
            code=ErrorCode.CONFIG_INVALID,
            instruction="Tell the person what to mend in the configuration. It is read again as soon as it is saved.",
        )
    return entry
