"""Servers: everything behind the gateway by its name, and what is known of it whether or not it runs."""

from __future__ import annotations

import asyncio
import importlib
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from pydantic_core import from_json

from trysquare.catalog.schema_parts import as_object
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.core.nearest import nearest
from trysquare.core.shortening import short
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import cleaned_value
from trysquare.gateway.answers.large import LargeResults
from trysquare.gateway.calls.sending import Sender
from trysquare.gateway.definitions.catalogue import Catalogue, OfferKind, Taken
from trysquare.gateway.fleet.fleet import Fleet
from trysquare.gateway.server import BrokenServer, Definition, ServerConfig, ServerEntry
from trysquare.gateway.upstream import failures
from trysquare.gateway.upstream.frames import METHOD_NOT_FOUND

logger = logging.getLogger("trysquare.gateway")

MOST_INSTRUCTIONS = 2_000
"""Characters of what a server says of its own use."""
ASK_AGAIN_SECONDS = 5.0
"""A name that is not known has the server asked again, but not by every call."""
OFFERS: tuple[tuple[OfferKind, str, str], ...] = (
    ("prompts", "prompts", "prompts"),
    ("resources", "resources", "resources"),
    ("templates", "resources/templates", "resources"),
)
"""What a server may offer beside tools: our word, the list that tells, and the capability that it declares."""

Kind: TypeAlias = Literal["tools", "prompts", "resources"]


class Servers:
    """What the gateway's tools know and use: the configuration, the catalogue, and the servers that run."""

    def __init__(self, *, catalogue: Catalogue, fleet: Fleet, sender: Sender, results: LargeResults) -> None:
        self.catalogue, self.fleet, self.sender, self.results = catalogue, fleet, sender, results
        self.entries: Mapping[str, ServerEntry] = {}
        self.on_change: Callable[[str, Kind], None] = lambda server, kind: None
        """Hears what is shown otherwise than before, and of which server."""
        self.prepare: Callable[[str], None] = lambda server: None
        """Makes what is shown of a server, in a thread, before `on_change` hears of it."""
        self._asked_at: dict[str, float] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._is_open = True

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
        return None if definitions is None else tuple(one for one in definitions if server.offers(one.name))

    def names(self, server: ServerConfig) -> list[str] | None:
        """The names of a server's tools, as far as they are known."""
        known = self.known(server)
        return None if known is None else [one.name for one in known]

    async def definitions(self, server: ServerConfig) -> tuple[Definition, ...]:
        """The tools of a server: at once where they are known, and then it is made ready beside."""
        known = self.known(server)
        if known is None:
            await self.ask(server)
            return self.known(server) or ()
        self.warm(server)
        return known

    def find_known(self, server: ServerConfig, tool: str) -> Definition | None:
        """One tool of a server, if it is known."""
        return self.catalogue.find(server.name, tool) if server.offers(tool) else None

    async def find(self, server: ServerConfig, tool: str) -> Definition | None:
        """One tool of a server. Where it is not known, the server is asked once more."""
        if not server.offers(tool):
            return None
        found = self.catalogue.find(server.name, tool)
        # Whoever asks it now may have heard already, and not put it down yet.
        if found is None and (server.name in self._asking or self._may_ask(server.name)):
            await self.ask(server)
            found = self.catalogue.find(server.name, tool)
        return found

    def warm(self, server: ServerConfig) -> None:
        """Start a server beside the call, and see whether its tools are still those that are known."""
        if server.name not in self._asked_at and server.name not in self._asking:
            self._beside(self._ask_quietly(server))

    def expect(self, server: ServerConfig) -> None:
        """Ask a server that is about to be called, and load meanwhile what a call takes."""
        self.warm(server)
        self._beside(run_in_thread(_load_calls))

    def discover(self) -> None:
        """Ask every server that was never asked, beside everything else."""
        for name, entry in self.entries.items():
            if isinstance(entry, ServerConfig) and self.catalogue.definitions(name) is None:
                self.warm(entry)

    def hear(self, name: str) -> None:
        """Take in that a server says it offers something else now."""
        entry = self.entries.get(name)
        if isinstance(entry, ServerConfig):
            self._beside(self._quietly(name, lambda: self._ask_again(entry)))

    def meet(self, name: str) -> None:
        """Take in that a server was started or reached anew: it may be another version by now."""
        entry = self.entries.get(name)
        if isinstance(entry, ServerConfig) and name not in self._asking:
            self._asked_at.pop(name, None)
            self.warm(entry)

    def follow(self, server: ServerConfig, uri: str) -> None:
        """Have a server tell when one of its resources changes."""
        self._beside(self._quietly(server.name, lambda: self.fleet.subscribe(server.name, uri)))

    async def request(
        self, server: ServerConfig, method: str, params: JsonObject, context: CallContext | None = None, about: str = ""
    ) -> JsonObject:
        """Ask a server something that is no call of a tool."""
        body = await self.fleet.request(server.name, method, params, context, about=about)
        try:
            return as_object(from_json(body))
        except ValueError as error:
            raise failures.malformed(server.name, about or method, str(error)) from None

    async def ask(self, server: ServerConfig) -> None:
        """Ask a server what it offers. Whoever asks meanwhile waits for the same answer."""
        task = self._asking.get(server.name)
        if task is None:
            task = asyncio.create_task(self._ask(server))
            self._asking[server.name] = task
            task.add_done_callback(lambda _: self._asking.pop(server.name, None))
        await asyncio.shield(task)

    async def settled(self) -> None:
        """Wait for everything that is being asked beside."""
        while self._work:
            await asyncio.wait(self._work)

    async def close(self) -> None:
        """Let go of what is being asked beside."""
        self._is_open = False
        tasks = [*self._work, *self._asking.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _may_ask(self, name: str) -> bool:
        asked = self._asked_at.get(name)
        return asked is None or time.monotonic() - asked > ASK_AGAIN_SECONDS

    async def _ask(self, server: ServerConfig) -> None:
        try:
            definitions = await self.fleet.definitions(server.name)
        except ToolError as error:
            if error.code not in (ErrorCode.UPSTREAM_REFUSED, ErrorCode.UPSTREAM_MALFORMED):
                raise
            self._beside(self._quietly(server.name, lambda: self._ask_offers(server.name)))
            if not _lacks_method(error):
                raise
            definitions = list[Definition]()
        said = await self._instructions(server.name)
        left_out = self.fleet.left_out(server.name)
        taken = await run_in_thread(lambda: self._take(server, definitions, said, left_out))
        self._asked_at[server.name] = time.monotonic()
        if taken:
            self.on_change(server.name, "tools")
        # Whoever asked for the tools need not wait for what stands beside them.
        self._beside(self._quietly(server.name, lambda: self._ask_offers(server.name)))

    async def _instructions(self, name: str) -> list[JsonObject]:
        text = (await self.fleet.greeting(name)).instructions.strip()
        return [{"text": short(text, MOST_INSTRUCTIONS)}] if text else []

    def _take(
        self, server: ServerConfig, definitions: Sequence[Definition], said: list[JsonObject], left_out: Sequence[str]
    ) -> Taken:
        taken = self.catalogue.take(server.name, definitions)
        self._take_instructions(server, said)
        self.catalogue.take_left_out(server.name, left_out)
        if taken:
            self.prepare(server.name)
        return taken

    def _take_instructions(self, server: ServerConfig, said: list[JsonObject]) -> None:
        """Pin what a server says of its own use when it is first seen: a model reads it."""
        known = self.catalogue.offer(server.name, "instructions")
        if not known or server.changes == "accept":
            self.catalogue.take_offer(server.name, "instructions", said)
        elif list(known) != cleaned_value(said):
            logger.warning("%s changed its instructions; those of its first use stay in use", server.name)

    def instructions(self, server: ServerConfig) -> str:
        """What a server says of its own use, as far as it is known; the server's words, not ours."""
        if server.first_use == "hold":
            return ""
        return "".join(str(one.get("text", "")) for one in self.catalogue.offer(server.name, "instructions"))

    async def _ask_again(self, server: ServerConfig) -> None:
        """Ask after whoever asks now: what they hear may be from before the change."""
        if (task := self._asking.get(server.name)) is not None:
            await asyncio.wait([task])
        await self.ask(server)
        self.on_change(server.name, "tools")

    async def _ask_offers(self, name: str) -> None:
        """Ask for prompts, resources and templates. A list that cannot be had keeps none of the others away."""
        greeting = await self.fleet.greeting(name)
        changed: set[Kind] = set()
        for kind, listed, capability in OFFERS:
            entries: list[JsonObject] = []
            try:
                if greeting.offers(capability):
                    entries = await self.fleet.listed(name, listed)
            except ToolError as error:
                if not _lacks_method(error):
                    logger.warning("%s cannot be asked for its %s: %s", name, kind, error)
                    continue
            if await run_in_thread(lambda kind=kind, entries=entries: self.catalogue.take_offer(name, kind, entries)):
                changed.add("prompts" if kind == "prompts" else "resources")
        for kind in sorted(changed):
            self.on_change(name, kind)

    async def _ask_quietly(self, server: ServerConfig) -> None:
        await self._quietly(server.name, lambda: self.ask(server))

    async def _quietly(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Work that nobody waits for: what keeps it from being done is logged, and told to whoever calls next."""
        try:
            await work()
        except ToolError as error:
            logger.warning("%s cannot be asked what it offers: %s", name, error)

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        if not self._is_open:
            work.close()
            return
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)


def _lacks_method(error: ToolError) -> bool:
    """Whether a server refused something because it does not have it at all."""
    return error.fields.get("upstream_code") == METHOD_NOT_FOUND


def _load_calls() -> None:
    for name in ("trysquare.gateway.executing", "trysquare.gateway.definitions.drift"):
        importlib.import_module(name)


def usable(entry: ServerEntry) -> ServerConfig:
    """The server, or an error that says what is wrong with its configuration and where."""
    if isinstance(entry, BrokenServer):
        raise ToolError(
            f"The server `{entry.name}` cannot be used: {entry.reason} ({entry.place})",
            code=ErrorCode.CONFIG_INVALID,
            instruction="Tell the person what to mend in the configuration. It is read again as soon as it is saved.",
        )
    return entry
