"""Pool of upstream servers, each started on demand."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from trysquare.core.concurrency import BackgroundTasks, shielded
from trysquare.core.context import CallContext
from trysquare.core.json import JsonObject, as_object
from trysquare.gateway.apps import read_link
from trysquare.gateway.icons import read_icons
from trysquare.gateway.models import ServerConfig, ServerStatus, ToolDefinition, UpstreamResult
from trysquare.gateway.pool.server import Admit, ManagedServer, OpenTransport, SuspendedCalls
from trysquare.gateway.upstream import errors as failures
from trysquare.gateway.upstream.lists import read_list
from trysquare.gateway.upstream.request import UpstreamRequest
from trysquare.gateway.upstream.session import ServerInfo
from trysquare.gateway.upstream.transport import open_transport
from trysquare.processes.supervisor import ProcessSupervisor, supervise
from trysquare.protocol.messages import encode

_CHANGE_SECONDS = 0.05
"""Equal changes that a server announces within this time are reported once."""


class ServerPool:
    """The servers of a configuration by name."""

    def __init__(
        self,
        servers: Mapping[str, ServerConfig],
        supervisor: ProcessSupervisor,
        *,
        on_change: Callable[[str, str], None],
        on_first_call: Callable[[ServerConfig], None] | None,
        admit: Admit | None,
        transports: OpenTransport | None,
    ) -> None:
        self._on_change = on_change
        self._on_first_call = on_first_call
        self._admit: Admit = admit or (lambda config: None)
        self._open_transport: OpenTransport = transports or functools.partial(open_transport, supervisor=supervisor)
        self._suspended = SuspendedCalls()
        self._background = BackgroundTasks()
        self._changes: set[tuple[str, str]] = set()
        self._reporting: asyncio.TimerHandle | None = None
        self._retired: set[ManagedServer] = set()
        self._left_out: dict[tuple[str, str], tuple[str, ...]] = {}
        self._servers = {name: self._create(config) for name, config in servers.items()}

    def call(
        self,
        server: str,
        tool: str,
        arguments_json: bytes,
        context: CallContext,
        *,
        on_sent: Callable[[], None],
        checkpoint: Mapping[str, Any] | None = None,
    ) -> Awaitable[UpstreamResult]:
        """Call a tool; `on_sent` is called just before the server may see it. `checkpoint` is stored with the task
        that the server answers with.

        A failure is a `ToolError` with the field `outcome`.
        """
        managed = self._find(server)
        result = managed.call(UpstreamRequest.of_tool(tool, arguments_json), context, on_sent, checkpoint)
        return result if self._on_first_call is None else self._report_first_call(managed.config, result)

    async def _report_first_call(self, server: ServerConfig, result: Awaitable[UpstreamResult]) -> UpstreamResult:
        """Report the first call that is answered; afterwards, so that its caller does not wait for that."""
        answer = await result
        report, self._on_first_call = self._on_first_call, None
        if report is not None:
            report(server)
        return answer

    async def cancel_task(self, server: str, id: str, context: CallContext) -> None:
        """Cancel a server's task, whose call is followed no more."""
        await self._find(server).cancel_task(id, context)

    async def request(
        self, server: str, method: str, params: JsonObject, context: CallContext | None = None, *, about: str = ""
    ) -> bytes:
        """Send any other request and return its result in JSON. `about` names its prompt or resource."""
        request = UpstreamRequest(method, about, encode(params)[1:-1])
        return (await self._find(server).call(request, context or CallContext(), lambda: None)).body

    async def definitions(self, server: str) -> list[ToolDefinition]:
        """The definitions of the server's tools that its entry includes."""
        config = self._find(server).config
        found = [read_definition(entry) for entry in await self.listed(server, "tools")]
        return [definition for definition in found if definition is not None and config.offers(definition.name)]

    async def listed(self, server: str, kind: str) -> list[JsonObject]:
        """All pages of a list within its limits: `tools`, `prompts`, `resources` or `resources/templates`."""
        ask = functools.partial(self.request, server, f"{kind}/list")
        found = await read_list(kind, self._find(server).config, ask)
        self._left_out[server, kind] = found.left_out()
        return found.entries

    def left_out(self, server: str) -> tuple[str, ...]:
        """Entries of the server's lists that were over a limit or unreadable when they were last read."""
        return tuple(note for (name, _), notes in self._left_out.items() if name == server for note in notes)

    async def server_info(self, server: str) -> ServerInfo:
        """The server's name, version and capabilities; starts it if it never was."""
        managed = self._find(server)
        return managed.server_info or (await managed.session(CallContext())).server_info

    async def subscribe(self, server: str, uri: str) -> None:
        """Report changes of a resource to `on_change`, across restarts; the server is not shut down when idle."""
        await self._find(server).subscribe(uri)

    def status(self) -> Mapping[str, ServerStatus]:
        return {name: server.status() for name, server in self._servers.items()}

    def stderr_tail(self, server: str) -> str:
        """The last output of a server on stderr; empty while it does not run."""
        return self._find(server).stderr_tail()

    async def stop(self, server: str) -> None:
        """End a server and the calls that it works on. The next call starts it again."""
        ended = self._find(server)
        # What it announced is read after its next start: reading it now would start it.
        self._changes = {change for change in self._changes if change[0] != server}
        fresh = self._servers[server] = self._create(ended.config)
        fresh.version = ended.version
        fresh.take_over_from(ended)
        await shielded(ended.close())

    async def replace(self, servers: Mapping[str, ServerConfig]) -> None:
        """Use another configuration. Servers with an unchanged entry continue, and so do pending calls."""
        before = self._servers
        self._servers = {name: self._continue(before.get(name), config) for name, config in servers.items()}
        for name, server in before.items():
            if self._servers.get(name) is not server:
                self._retired.add(server)
                retiring = self._background.start(server.retire())
                retiring.add_done_callback(lambda _, server=server: self._retired.discard(server))

    async def close(self) -> None:
        """End every server. No change is reported afterwards."""
        self._suspended.clear()
        servers = [*self._servers.values(), *self._retired]
        self._servers = {}
        await asyncio.gather(*(server.close() for server in servers))
        await self._background.wait()
        if self._reporting is not None:
            self._reporting.cancel()

    def _find(self, server: str) -> ManagedServer:
        managed = self._servers.get(server)
        if managed is None:
            raise failures.unknown_server(server, list(self._servers))
        return managed

    def _continue(self, server: ManagedServer | None, config: ServerConfig) -> ManagedServer:
        if server is not None and server.config == config:
            return server
        fresh = self._create(config)
        if server is not None:
            fresh.take_over_from(server)
        return fresh

    def _create(self, config: ServerConfig) -> ManagedServer:
        return ManagedServer(
            config,
            open_transport=self._open_transport,
            admit=self._admit,
            suspended=self._suspended,
            on_change=self._collect_change,
            background=self._background,
        )

    def _collect_change(self, server: str, kind: str) -> None:
        """Debounce: a server may announce thousands of changes a second."""
        if self._reporting is None:
            self._reporting = asyncio.get_running_loop().call_later(_CHANGE_SECONDS, self._report_changes)
        self._changes.add((server, kind))

    def _report_changes(self) -> None:
        changes, self._changes, self._reporting = self._changes, set(), None
        for server, kind in sorted(changes):
            self._on_change(server, kind)


@asynccontextmanager
async def open_pool(
    servers: Mapping[str, ServerConfig],
    *,
    on_change: Callable[[str, str], None],
    on_first_call: Callable[[ServerConfig], None] | None = None,
    admit: Admit | None = None,
    transports: OpenTransport | None = None,
) -> AsyncGenerator[ServerPool]:
    """Lifespan of a pool; no process of its servers outlives it.

    `on_change(server, kind)` gets `tools`, `prompts`, `resources`, the URI of a changed resource, or `connected` after
    every start. `admit` is called in a thread before a server is started or reached. `on_first_call` gets the server of
    the first tool call that is answered.
    """
    async with supervise() as supervisor:
        pool = ServerPool(
            servers,
            supervisor,
            on_change=on_change,
            on_first_call=on_first_call,
            admit=admit,
            transports=transports,
        )
        try:
            yield pool
        finally:
            await shielded(pool.close())


def read_definition(entry: JsonObject) -> ToolDefinition | None:
    """A tool as the server describes it, or None if it has no name."""
    name, schema, output = entry.get("name"), entry.get("inputSchema"), entry.get("outputSchema")
    title = entry.get("title")
    if not isinstance(name, str) or not name:
        return None
    return ToolDefinition(
        name=name,
        description=str(entry.get("description") or ""),
        title=title if isinstance(title, str) else None,
        input_schema=cast(JsonObject, schema) if isinstance(schema, dict) else {"type": "object"},
        output_schema=cast(JsonObject, output) if isinstance(output, dict) else None,
        annotations=as_object(entry.get("annotations")),
        page=read_link(entry.get("_meta")),
        icons=[icon.to_wire() for icon in read_icons(entry.get("icons"))],
    )
