"""Service of the gateway: every configured server by name, and its definitions whether or not it runs."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from pydantic_core import from_json

from trysquare.core.concurrency import BackgroundTasks
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.core.json import JsonObject, as_object
from trysquare.core.text import closest_names, truncate
from trysquare.core.threads import run_in_thread
from trysquare.core.untrusted import cleaned_value
from trysquare.gateway.definitions.registry import DefinitionRegistry, OfferKind
from trysquare.gateway.models import ServerConfig, ServerEntry, ToolDefinition
from trysquare.gateway.pool.pool import ServerPool
from trysquare.gateway.results.store import ResultStore
from trysquare.gateway.sender import CallSender
from trysquare.gateway.upstream import errors as failures
from trysquare.protocol.messages import METHOD_NOT_FOUND

logger = logging.getLogger("trysquare.gateway")

MAX_INSTRUCTIONS = 2_000
"""Maximum characters of a server's instructions."""
REFRESH_SECONDS = 5.0
"""Minimum time between two refreshes that unknown names trigger."""
OFFERS: tuple[tuple[OfferKind, str, str], ...] = (
    ("prompts", "prompts", "prompts"),
    ("resources", "resources", "resources"),
    ("templates", "resources/templates", "resources"),
)
"""Offers besides tools: our kind, the list method's prefix, and the capability."""

Kind: TypeAlias = Literal["tools", "prompts", "resources"]


class GatewayService:
    """Shared state of the gateway's tools: configuration, definitions, pool, sender and results."""

    def __init__(
        self, *, registry: DefinitionRegistry, pool: ServerPool, sender: CallSender, results: ResultStore
    ) -> None:
        self.registry, self.pool, self.sender, self.results = registry, pool, sender, results
        self.entries: Mapping[str, ServerEntry] = {}
        self.on_change: Callable[[str, Kind], None] = lambda server, kind: None
        """Called when something of a server is listed differently."""
        self.prepare: Callable[[str], None] = lambda server: None
        """Builds the tools of a server in a thread, before `on_change`."""
        self._refreshed_at: dict[str, float] = {}
        self._refreshing: dict[str, asyncio.Task[None]] = {}
        self.background = BackgroundTasks()
        """The refreshes."""

    def configure(self, entries: Mapping[str, ServerEntry]) -> None:
        """Use these servers. Unchanged ones keep their state."""
        for name, entry in entries.items():
            if self.entries.get(name) != entry:
                self._refreshed_at.pop(name, None)
        self.entries = dict(entries)
        self.registry.configure(entries)

    def server(self, name: str) -> ServerConfig:
        """A server by its name. Raises `NotFound` with the closest names, and a `ToolError` for an invalid entry."""
        found = self.entries.get(name)
        if isinstance(found, ServerConfig):
            return found
        if found is not None:
            raise ToolError(
                f"Server `{name}` has an invalid configuration: {found.reason} ({found.location})",
                code=ErrorCode.CONFIG_INVALID,
                instruction="Ask the user to fix the configuration. It is reloaded as soon as it is saved.",
            )
        close = closest_names(name, self.entries, count=3) or list(self.entries)[:12]
        names = ", ".join(f"`{one}`" for one in close) or "none"
        raise NotFound(
            f"Unknown server `{name[:80]}`. Configured servers: {names}.", instruction="Name one of the servers."
        )

    def known(self, server: ServerConfig) -> tuple[ToolDefinition, ...] | None:
        """The registered tools of a server; None if it was never contacted."""
        definitions = self.registry.definitions(server.name)
        return None if definitions is None else tuple(one for one in definitions if server.offers(one.name))

    def names(self, server: ServerConfig) -> list[str] | None:
        known = self.known(server)
        return None if known is None else [one.name for one in known if not one.is_for_pages]

    async def definitions(self, server: ServerConfig) -> tuple[ToolDefinition, ...]:
        """The tools of a server that models see; registered ones at once, with a refresh in the background."""
        known = self.known(server)
        if known is None:
            await self.refresh(server)
            known = self.known(server) or ()
        else:
            self.refresh_in_background(server)
        return tuple(one for one in known if not one.is_for_pages)

    def find_known(self, server: ServerConfig, tool: str) -> ToolDefinition | None:
        return self.registry.find(server.name, tool) if server.offers(tool) else None

    async def find(self, server: ServerConfig, tool: str) -> ToolDefinition | None:
        """One tool of a server; an unknown one triggers a refresh."""
        found = self.find_known(server, tool)
        is_due = time.monotonic() - self._refreshed_at.get(server.name, -math.inf) > REFRESH_SECONDS
        # A running refresh may have received the tool already.
        if found is None and server.offers(tool) and (server.name in self._refreshing or is_due):
            await self.refresh(server)
            found = self.registry.find(server.name, tool)
        return found

    def refresh_in_background(self, server: ServerConfig) -> None:
        """Start a server in the background and refresh its definitions, once."""
        if server.name not in self._refreshed_at and server.name not in self._refreshing:
            self._spawn(server.name, lambda: self.refresh(server))

    def discover(self) -> None:
        """Refresh every server that was never contacted, in the background."""
        for name, entry in self.entries.items():
            if isinstance(entry, ServerConfig) and self.registry.definitions(name) is None:
                self.refresh_in_background(entry)

    def on_list_changed(self, name: str) -> None:
        """Refresh a server that announced a change."""
        entry = self.entries.get(name)
        if isinstance(entry, ServerConfig):
            self._spawn(name, lambda: self._refresh_again(entry))

    def on_connected(self, name: str) -> None:
        """Refresh a server after a new start: its version may have changed."""
        entry = self.entries.get(name)
        if isinstance(entry, ServerConfig) and name not in self._refreshing:
            self._refreshed_at.pop(name, None)
            self.refresh_in_background(entry)

    def subscribe_resource(self, server: ServerConfig, uri: str) -> None:
        self._spawn(server.name, lambda: self.pool.subscribe(server.name, uri))

    async def request(
        self, server: ServerConfig, method: str, params: JsonObject, context: CallContext | None = None, about: str = ""
    ) -> JsonObject:
        """The result of a request other than `tools/call`."""
        body = await self.pool.request(server.name, method, params, context, about=about)
        try:
            return as_object(from_json(body))
        except ValueError as error:
            raise failures.malformed(server.name, about or method, str(error)) from None

    async def refresh(self, server: ServerConfig) -> None:
        """Read the lists of a server. Concurrent callers share one refresh."""
        task = self._refreshing.get(server.name)
        if task is None:
            task = asyncio.create_task(self._refresh(server))
            self._refreshing[server.name] = task
            task.add_done_callback(lambda _: self._refreshing.pop(server.name, None))
        await asyncio.shield(task)

    async def close(self) -> None:
        refreshing = list(self._refreshing.values())
        for task in refreshing:
            task.cancel()
        await self.background.close()
        await asyncio.gather(*refreshing, return_exceptions=True)

    def instructions(self, server: ServerConfig) -> str:
        """The server's own instructions, as far as they are registered; untrusted text."""
        if server.first_use == "hold":
            return ""
        return "".join(str(one.get("text", "")) for one in self.registry.offer(server.name, "instructions"))

    async def _refresh(self, server: ServerConfig) -> None:
        name = server.name
        try:
            definitions = await self.pool.definitions(name)
        except ToolError as error:
            if error.code not in (ErrorCode.UPSTREAM_REFUSED, ErrorCode.UPSTREAM_MALFORMED):
                raise
            self._spawn(name, lambda: self._refresh_offers(name))
            if not _lacks_method(error):
                raise
            definitions = list[ToolDefinition]()
        text = (await self.pool.server_info(name)).instructions.strip()
        instructions: list[JsonObject] = [{"text": truncate(text, MAX_INSTRUCTIONS)}] if text else []
        left_out = self.pool.left_out(name)
        has_changed = await run_in_thread(lambda: self._register(server, definitions, instructions, left_out))
        self._refreshed_at[name] = time.monotonic()
        if has_changed:
            self.on_change(name, "tools")
        # A caller that waits for the tools need not wait for prompts and resources.
        self._spawn(name, lambda: self._refresh_offers(name))

    def _register(
        self,
        server: ServerConfig,
        definitions: Sequence[ToolDefinition],
        instructions: list[JsonObject],
        left_out: Sequence[str],
    ) -> bool:
        has_changed = self.registry.take(server.name, definitions)
        known = self.registry.offer(server.name, "instructions")
        # A model reads the instructions, so those of the first use are pinned.
        if not known or server.changes == "accept":
            self.registry.take_offer(server.name, "instructions", instructions)
        elif list(known) != cleaned_value(instructions):
            logger.warning("instructions changed, keeping those of the first use: server=%s", server.name)
        self.registry.take_left_out(server.name, left_out)
        if has_changed:
            self.prepare(server.name)
        return has_changed

    async def _refresh_again(self, server: ServerConfig) -> None:
        """Refresh after the running refresh, whose lists may be from before the change."""
        if (task := self._refreshing.get(server.name)) is not None:
            await asyncio.wait([task])
        await self.refresh(server)
        self.on_change(server.name, "tools")

    async def _refresh_offers(self, name: str) -> None:
        """Read prompts, resources and templates. One list that fails does not affect the others."""
        info = await self.pool.server_info(name)
        changed: set[Kind] = set()
        for kind, method, capability in OFFERS:
            entries: list[JsonObject] = []
            try:
                if info.offers(capability):
                    entries = await self.pool.listed(name, method)
            except ToolError as error:
                if not _lacks_method(error):
                    logger.warning("listing failed: server=%s list=%s: %s", name, kind, error)
                    continue
            if await run_in_thread(lambda kind=kind, entries=entries: self.registry.take_offer(name, kind, entries)):
                changed.add("prompts" if kind == "prompts" else "resources")
        for kind in sorted(changed):
            self.on_change(name, kind)

    def _spawn(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run work for a server in the background; a failure is logged and raised again by the next call."""

        async def run() -> None:
            try:
                await work()
            except ToolError as error:
                logger.warning("refresh failed: server=%s: %s", name, error)

        self.background.start(run())


def _lacks_method(error: ToolError) -> bool:
    return error.fields.get("upstream_code") == METHOD_NOT_FOUND
