"""`trysquare gateway test`: start servers, list their tools, and tell what came of it."""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from typing import Any

from trysquare.cli.gateway_books import Books, open_books
from trysquare.cli.output import count, print_json, styled
from trysquare.cli.terminal import TerminalCaller, ask_yes_or_no
from trysquare.core.errors import ToolError
from trysquare.core.untrusted import one_line
from trysquare.gateway.door import gateway_toolset
from trysquare.gateway.server import BrokenServer, ServerConfig, ServerEntry
from trysquare.gateway.servers import Servers
from trysquare.gateway.upstream.environment import withheld
from trysquare.store.location import user_state


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of `test`."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="the servers to test; none tests all")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Test the servers; 1 if one of them is broken or does not answer."""
    with open_books(arguments) as books:
        entries = [books.config.find(name) for name in arguments.names] or list(books.config.servers.values())
        for server in books.usable(arguments.names):
            _ask_about(books, server)
        outcomes = asyncio.run(_test(books, entries, as_json=arguments.json))
    if arguments.json:
        print_json(outcomes)
    return 0 if all(outcome["works"] for outcome in outcomes) else 1


def _ask_about(books: Books, server: ServerConfig) -> None:
    """On a terminal a person is asked before a server is used in a way that nobody agreed to yet."""
    held = books.trust.held(server)
    if held is not None and TerminalCaller().can_ask():
        print(held.told())
        if ask_yes_or_no("Use it like this from now on?"):
            books.trust.approve(server)


async def _test(books: Books, entries: list[ServerEntry], *, as_json: bool) -> list[dict[str, Any]]:
    door = gateway_toolset(books.config.paths, state=books.state, folder=user_state().parent, watch=False)
    async with door as toolset:
        tests = [asyncio.create_task(outcome_of(toolset.servers, entry)) for entry in entries]
        outcomes: list[dict[str, Any]] = []
        for test in tests:
            outcomes.append(await test)
            if not as_json:
                _print(outcomes[-1])
    return outcomes


async def outcome_of(servers: Servers, entry: ServerEntry) -> dict[str, Any]:
    """How one server answers, and what of it cannot be used."""
    if isinstance(entry, BrokenServer):
        return {"server": entry.name, "works": False, "reason": f"{entry.reason} ({entry.place})"}
    started = time.monotonic()
    try:
        await servers.ask(entry)
        greeting = await servers.fleet.greeting(entry.name)
    except ToolError as error:
        told = {"server": entry.name, "works": False, "reason": error.message, "instruction": error.instruction}
        return {**told, "withheld": hint} if (hint := _withheld(entry, error.message)) else told
    return {
        "server": entry.name,
        "works": True,
        "seconds": round(time.monotonic() - started, 2),
        "name": f"{greeting.name} {greeting.server_version}".strip(),
        "protocol": greeting.version,
        "tools": servers.names(entry) or [],
        "held": [held.tool for held in servers.catalogue.held(entry.name)],
        "left_out": list(servers.catalogue.left_out(entry.name)),
        "noise": servers.fleet.status()[entry.name].noise,
    }


def _withheld(server: ServerConfig, reason: str) -> str:
    """What to do about variables that a server of ours was not given, where it did not start."""
    if server.transport != "stdio":
        return ""
    names = withheld(os.environ, passed=server.pass_env, given=server.env)
    named = [name for name in names if name in reason]
    if not named:
        return f"{len(names)} variables of this environment are not given to it" if names else ""
    return f"{', '.join(named)} of this environment is not given to it"


def _print(outcome: dict[str, Any]) -> None:
    if not outcome["works"]:
        print(f"{styled('fails', 'red')}  {outcome['server']}: {one_line(outcome['reason'], 4_000)}")
        if outcome.get("instruction"):
            print(f"       {outcome['instruction']}")
        if outcome.get("withheld"):
            print(f"       {outcome['withheld']}; one that it needs is named in its `env` or `x-trysquare.pass_env`.")
        return
    tools = count(len(outcome["tools"]), "tool")
    speaks = f"{one_line(outcome['name'], 200)} speaks {outcome['protocol']}"
    print(f"{styled('works', 'green')}  {outcome['server']}: {tools} in {outcome['seconds']:.2f} s; {speaks}")
    for reason in outcome["left_out"]:
        print(f"       left out: {reason}")
    for tool in outcome["held"]:
        print(f"       {one_line(tool)} waits for your approval; see `trysquare gateway diff {outcome['server']}`")
    if outcome["noise"]:
        print(f"       it prints what is not a message of the protocol: {count(outcome['noise'], 'line')}")
