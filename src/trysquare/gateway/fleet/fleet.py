"""Fleet: every server behind the gateway. None is started before it is needed, and none gets in another's way."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import anyio

from trysquare.core.context import CallContext
from trysquare.core.errors import ToolError
from trysquare.core.types import JsonObject
from trysquare.gateway.answers.answer import Answer
from trysquare.gateway.fleet.member import Admit, Member, OpenChannel
from trysquare.gateway.fleet.parking import PARKED_SECONDS, ParkingLot
from trysquare.gateway.server import Definition, ServerConfig, ServerStatus
from trysquare.gateway.upstream import failures, frames
from trysquare.gateway.upstream.call import Request
from trysquare.gateway.upstream.channels import open_channel
from trysquare.gateway.upstream.handshake import Greeting
from trysquare.gateway.upstream.lists import read_list
from trysquare.processes.nursery import Nursery, open_nursery

_CHANGE_SECONDS = 0.05
"""Changes that a server tells within this time are told as one."""
_BEGIN_SECONDS = 0.2
"""How long a start of ours waits for that of a server, which is over sooner unless the state's disk is slow."""


class Fleet:
    """The servers of a configuration, by name."""

    def __init__(
        self,
        servers: Mapping[str, ServerConfig],
        nursery: Nursery,
        *,
        on_change: Callable[[str, str], None],
        admit: Admit | None = None,
        channels: OpenChannel | None = None,
        parked_seconds: float = PARKED_SECONDS,
    ) -> None:
        self._on_change = on_change
        self._admit = admit or _admit_all
        self._open_channel: OpenChannel = channels or functools.partial(open_channel, nursery=nursery)
        self._lot = ParkingLot(parked_seconds)
        self._tasks: set[asyncio.Task[None]] = set()
        self._changes: set[tuple[str, str]] = set()
        self._retired: set[Member] = set()
        self._left_out: dict[tuple[str, str], tuple[str, ...]] = {}
        self._members = {name: self._member(config) for name, config in servers.items()}

    def call(
        self, server: str, tool: str, arguments_json: bytes, context: CallContext, *, on_sent: Callable[[], None]
    ) -> Awaitable[Answer]:
        """Call a tool. `on_sent` is told just before the server may see it.

        What fails is a `ToolError` whose field `outcome` says what is known of the call.
        """
        fields = b'"name":%s,"arguments":%s' % (frames.encode(tool), arguments_json)
        return self._found(server).call(Request("tools/call", tool, fields), context, on_sent)

    async def request(
        self, server: str, method: str, params: JsonObject, context: CallContext | None = None, *, about: str = ""
    ) -> bytes:
        """Send any other request, and have its result in JSON. `about` names the prompt or resource it is about."""
        fields = frames.encode(params)[1:-1]
        wanted = Request(method, about, fields)
        return (await self._found(server).call(wanted, context or CallContext(), _unheard)).body

    async def definitions(self, server: str, context: CallContext | None = None) -> list[Definition]:
        """What the server says of its tools, all pages of it, those left out that its entry leaves out."""
        config = self._found(server).config
        entries = await self.listed(server, "tools", context)
        found = [definition for entry in entries if (definition := _definition(entry)) is not None]
        return [definition for definition in found if config.offers(definition.name)]

    async def listed(self, server: str, kind: str, context: CallContext | None = None) -> list[JsonObject]:
        """All pages of a list, as far as it is taken: `tools`, `prompts`, `resources` or `resources/templates`."""

        def ask(params: JsonObject) -> Coroutine[Any, Any, bytes]:
            return self.request(server, f"{kind}/list", params, context)

        found = await read_list(kind, self._found(server).config, ask)
        self._left_out[server, kind] = found.left_out()
        return found.entries

    def left_out(self, server: str) -> tuple[str, ...]:
        """What of a server's lists was too much, or could not be read, when they were last read; the rest is used."""
        return tuple(note for (name, _), notes in self._left_out.items() if name == server for note in notes)

    async def greeting(self, server: str, context: CallContext | None = None) -> Greeting:
        """What the server says of itself and what it offers; starts it, if it never was."""
        member = self._found(server)
        return member.greeting or (await member.session(context or CallContext())).greeting

    async def begin(self, server: str) -> None:
        """Have a server started that is about to be called, and wait until its process runs; not for its answer."""
        member = self._found(server)
        self._keep(_woken(member))
        with suppress(TimeoutError):
            async with asyncio.timeout(_BEGIN_SECONDS):
                await member.begun.wait()

    async def subscribe(self, server: str, uri: str, context: CallContext | None = None) -> None:
        """Have changes of a resource told to `on_change`, across restarts; the server is not put to sleep."""
        await self._found(server).subscribe(uri, context or CallContext())

    async def unsubscribe(self, server: str, uri: str) -> None:
        """Have them told no more."""
        await self._found(server).unsubscribe(uri)

    def status(self) -> Mapping[str, ServerStatus]:
        """How each server is doing."""
        return {name: member.status() for name, member in self._members.items()}

    async def replace(self, servers: Mapping[str, ServerConfig]) -> None:
        """Take up another configuration. Servers whose entry did not change go on, and so do calls under way."""
        before = self._members
        self._members = {name: self._continued(before.get(name), config) for name, config in servers.items()}
        for name, member in before.items():
            if self._members.get(name) is not member:
                self._retired.add(member)
                self._keep(self._retire(member))

    async def close(self) -> None:
        """End every server."""
        self._lot.clear()
        members = [*self._members.values(), *self._retired]
        self._members = {}
        await asyncio.gather(*(member.close() for member in members))
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _found(self, server: str) -> Member:
        member = self._members.get(server)
        if member is None:
            raise failures.unknown_server(server, list(self._members))
        return member

    def _continued(self, member: Member | None, config: ServerConfig) -> Member:
        if member is not None and member.config == config:
            return member
        fresh = self._member(config)
        if member is not None:
            fresh.succeed(member)
        return fresh

    def _member(self, config: ServerConfig) -> Member:
        return Member(
            config,
            open_channel=self._open_channel,
            admit=self._admit,
            lot=self._lot,
            on_change=self._note_change,
            keep=self._keep,
        )

    async def _retire(self, member: Member) -> None:
        await member.retire()
        self._retired.discard(member)

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _note_change(self, server: str, kind: str) -> None:
        """A server may tell of thousands of changes a second; whoever listens hears of each kind once."""
        if not self._changes:
            asyncio.get_running_loop().call_later(_CHANGE_SECONDS, self._tell_changes)
        self._changes.add((server, kind))

    def _tell_changes(self) -> None:
        changes, self._changes = self._changes, set()
        for server, kind in sorted(changes):
            self._on_change(server, kind)


@asynccontextmanager
async def open_fleet(
    servers: Mapping[str, ServerConfig],
    *,
    on_change: Callable[[str, str], None],
    admit: Admit | None = None,
    channels: OpenChannel | None = None,
    parked_seconds: float = PARKED_SECONDS,
) -> AsyncGenerator[Fleet]:
    """The servers of a configuration; when it is left, none of their processes is.

    `on_change(server, kind)` hears of `tools`, `prompts` and `resources`, of a resource by its address, and of
    `connected` whenever the server was started or reached anew. `admit` is asked in a thread before that is done.
    """
    async with open_nursery() as nursery:
        fleet = Fleet(
            servers, nursery, on_change=on_change, admit=admit, channels=channels, parked_seconds=parked_seconds
        )
        try:
            yield fleet
        finally:
            with anyio.CancelScope(shield=True):
                await fleet.close()


def _definition(entry: JsonObject) -> Definition | None:
    """One tool as the server describes it, or None if it does not even have a name."""
    name, schema, output = entry.get("name"), entry.get("inputSchema"), entry.get("outputSchema")
    title, annotations = entry.get("title"), entry.get("annotations")
    if not isinstance(name, str) or not name:
        return None
    return Definition(
        name=name,
        description=str(entry.get("description") or ""),
        title=title if isinstance(title, str) else None,
        input_schema=cast(JsonObject, schema) if isinstance(schema, dict) else {"type": "object"},
        output_schema=cast(JsonObject, output) if isinstance(output, dict) else None,
        annotations=cast(JsonObject, annotations) if isinstance(annotations, dict) else {},
    )


async def _woken(member: Member) -> None:
    # What keeps it from being started is told to whoever calls it.
    with suppress(ToolError):
        await member.session(CallContext())


def _unheard() -> None:
    return None


def _admit_all(config: ServerConfig) -> None:
    return None
