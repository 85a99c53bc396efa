"""`trysquare discover`: find the MCP servers of every client on this machine, and what each costs a model."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import re
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trysquare import gateway
from trysquare.cli.clients import CLIENTS, FoundServer, Place, servers_of, starts_trysquare, this_place
from trysquare.cli.command import Command, option
from trysquare.cli.gateway import outcome_of
from trysquare.cli.gateway_import import readable_entry
from trysquare.cli.terminal import count, print_report, print_table, say
from trysquare.core.errors import ConfigurationError
from trysquare.core.json import JsonObject, one_line_json
from trysquare.core.tokens import count_tokens
from trysquare.core.untrusted import one_line
from trysquare.store import LazyDatabase

_BEHIND = 102
"""Tokens of the one tool that stands for a server behind the gateway."""
_PLACE = re.compile(r" \([^()]*mcp\.json:\d+\)")
"""Where an entry stands in the file that is only ours."""


@dataclass(kw_only=True, slots=True)
class Discovered:
    """One server, and the clients that have it."""

    name: str
    entry: JsonObject
    is_own: bool
    """Whether it stands in a file of the user's, and not only in one of the project."""
    clients: list[str] = field(default_factory=list[str])
    files: list[str] = field(default_factory=list[str])
    tools: int | None = None
    tokens: int | None = None
    problem: str | None = None

    def to_json(self) -> JsonObject:
        return {
            "server": self.name, "clients": self.clients, "files": self.files, "tools": self.tools,
            "tokens": self.tokens, "problem": self.problem,
        }  # fmt: skip


def run(arguments: argparse.Namespace) -> None:
    """Print each server once, with its clients and its cost."""
    servers = find_servers(this_place(Path.cwd()))
    chosen = [each for each in servers if each.is_own or arguments.project_servers]
    if not arguments.no_start:
        with _quiet():
            asyncio.run(_measure(chosen))
        for each in servers:
            if each not in chosen:
                each.problem = "not started: only a file of this project names it; --project-servers starts it"
    print_report([each.to_json() for each in servers], lambda: _print(servers), json=arguments.json)


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """Without the gateway's warnings: each start would be named as a first use."""
    log = logging.getLogger("trysquare.gateway")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def find_servers(place: Place) -> list[Discovered]:
    """The servers in the files of all clients; the same one in several is found once. Unreadable files are named."""
    found: dict[str, Discovered] = {}
    for client in CLIENTS.values():
        with _unreadable(client.title):
            for each in servers_of(client, place):
                if starts_trysquare(each.entry) or each.entry.get("disabled") is True:
                    continue
                _remember(found, client.name, each, readable_entry(client, each))
    return list(found.values())


def _remember(found: dict[str, Discovered], client: str, server: FoundServer, entry: JsonObject) -> None:
    is_own = server.scope == "user"
    known = found.setdefault(one_line_json(entry), Discovered(name=server.name, entry=entry, is_own=is_own))
    known.is_own = known.is_own or is_own
    for given, listed in ((client, known.clients), (str(server.file), known.files)):
        if given not in listed:
            listed.append(given)


@contextlib.contextmanager
def _unreadable(title: str) -> Generator[None]:
    try:
        yield
    except ConfigurationError as error:
        say(f"{title}: {error}")


async def _measure(servers: Sequence[Discovered]) -> None:
    """Start each server and count its tools and their tokens. Nothing of it is kept."""
    if not servers:
        return
    with tempfile.TemporaryDirectory(prefix="trysquare-") as name:
        folder, file = Path(name), Path(name) / "mcp.json"
        labels = {
            f"{re.sub('[^A-Za-z0-9_-]', '_', each.name)[:40]}-{number}": each for number, each in enumerate(servers)
        }
        entries = {label: each.entry for label, each in labels.items()}
        file.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
        file.chmod(0o600)
        with contextlib.closing(LazyDatabase(folder / "state.db")) as state:
            async with gateway.open_gateway([file], state=state, folder=folder, watch=False) as toolset:
                known = toolset.servers.entries
                work = (_measure_one(toolset.servers, known[label], each) for label, each in labels.items())
                await asyncio.gather(*work)


async def _measure_one(servers: gateway.GatewayService, entry: gateway.ServerEntry, server: Discovered) -> None:
    outcome = await outcome_of(servers, entry)
    if not outcome["works"] or isinstance(entry, gateway.InvalidServer):
        reason = _PLACE.sub("", str(outcome.get("reason", ""))).replace(entry.name, server.name)
        server.problem = one_line(reason, 300)
        return
    definitions = await servers.definitions(entry)
    server.tools = len(definitions)
    server.tokens = sum(
        count_tokens(one_line_json({"name": one.name, "description": one.description, "inputSchema": one.input_schema}))
        for one in definitions
    )


def _print(servers: Sequence[Discovered]) -> None:
    if not servers:
        print("No client on this machine has MCP servers.")
        return
    rows = [
        (each.name, ", ".join(each.clients), _number(each.tools), _number(each.tokens), each.problem or "")
        for each in sorted(servers, key=lambda each: -(each.tokens or 0))
    ]
    print_table(("SERVER", "CLIENTS", "TOOLS", "TOKENS", "PROBLEM"), rows)
    measured = [each for each in servers if each.tokens is not None]
    if measured:
        tools, tokens = sum(each.tools or 0 for each in measured), sum(each.tokens or 0 for each in measured)
        print(
            f"\n{count(tools, 'tool')} cost {tokens:,} tokens in every conversation; behind the gateway about "
            f"{_BEHIND * len(measured):,}. `trysquare gateway import CLIENT` takes the servers over."
        )


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


COMMAND = Command(
    run,
    (
        option("--no-start", action="store_true", help="only read the clients' files, and start nothing"),
        option("--project-servers", action="store_true", help="also start servers that only this project's files name"),
        option("--json", action="store_true", help="print JSON"),
    ),
    examples=("trysquare discover", "trysquare discover --no-start --json"),
)
