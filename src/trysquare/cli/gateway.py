"""`trysquare gateway`: list, test, configure and approve the MCP servers behind the gateway."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import time
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from trysquare import gateway
from trysquare.cli import terminal
from trysquare.cli.command import Command, option
from trysquare.cli.gateway_config import (
    ADD,
    LOGIN,
    REMOVE,
    SECRET,
    GatewayState,
    open_state,
    require_usable,
    server_names,
)
from trysquare.cli.gateway_import import IMPORT
from trysquare.cli.options import JSON, add_gateway_options, positive
from trysquare.core.errors import ToolError
from trysquare.core.untrusted import one_line
from trysquare.store import user_state
from trysquare.store.call_ledger import CallLedger, CallRecord

CALL_STATES = ("done", "not_sent", "sending", "sent_unknown")


def _list(arguments: argparse.Namespace) -> None:
    with open_state(arguments) as state:
        rows = [_row(state, entry) for entry in state.config.servers.values()]
        rows += [{"server": name, "state": "disabled"} for name in state.config.disabled]
    table = [(row["server"], row.get("tool", ""), row.get("transport", ""), row["state"]) for row in rows]
    then = f"{terminal.count(len(rows), 'server')}. `trysquare gateway test` starts them and lists their tools."
    headings = ("SERVER", "TOOL", "TRANSPORT", "STATE")
    terminal.print_listing(rows, headings, table, json=arguments.json, then=then)


def _row(state: GatewayState, entry: gateway.ServerEntry) -> dict[str, Any]:
    row: dict[str, Any] = {"server": entry.name, "tool": entry.tool_name, "where": str(entry.location)}
    if isinstance(entry, gateway.InvalidServer):
        return {**row, "state": f"broken: {entry.reason} ({entry.location})"}
    definitions = state.registry.definitions(entry.name)
    tools = None if definitions is None else [one.name for one in definitions if entry.offers(one.name)]
    held = [one.tool for one in state.registry.pending(entry.name)]
    is_held = state.trust.pending(entry) is not None
    states = ["its command or address changed; see `trysquare gateway diff`"] if is_held else []
    states.append("not contacted yet" if tools is None else terminal.count(len(tools), "tool"))
    left_out = list(state.registry.left_out(entry.name))
    states += [f"left out: {reason}" for reason in left_out]
    states += [f"{terminal.count(len(held), 'change')} pending; see `trysquare gateway diff`"] if held else []
    return {
        **row,
        "transport": entry.transport,
        "reached": entry.shown,
        "state": ", ".join(states),
        "tools": tools,
        "held": held,
        "is_held": is_held,
        "left_out": left_out,
    }


def _test(arguments: argparse.Namespace) -> int:
    with open_state(arguments) as state:
        entries = [state.config.find(name) for name in arguments.names] or list(state.config.servers.values())
        for server in state.usable(arguments.names):
            _ask_about(state, server)
        outcomes = asyncio.run(_test_all(state, entries, as_json=arguments.json))
    if arguments.json:
        terminal.print_json(outcomes)
    return 0 if all(outcome["works"] for outcome in outcomes) else 1


def _ask_about(state: GatewayState, server: gateway.ServerConfig) -> None:
    """On a terminal, ask before the first use of a new or changed server."""
    held = state.trust.pending(server)
    if held is not None and terminal.TerminalCaller().can_ask():
        print(held.describe())
        if terminal.ask_yes_or_no("Approve this server?"):
            state.trust.approve(server)


async def _test_all(state: GatewayState, entries: list[gateway.ServerEntry], *, as_json: bool) -> list[dict[str, Any]]:
    opened = gateway.open_gateway(state.config.paths, state=state.database, folder=user_state().parent, watch=False)
    async with opened as toolset:
        tests = [asyncio.create_task(outcome_of(toolset.servers, entry)) for entry in entries]
        outcomes: list[dict[str, Any]] = []
        for test in tests:
            outcomes.append(await test)
            if not as_json:
                _print_outcome(outcomes[-1])
    return outcomes


async def outcome_of(servers: gateway.GatewayService, entry: gateway.ServerEntry) -> dict[str, Any]:
    """Start one server, and report its tools or its failure."""
    if isinstance(entry, gateway.InvalidServer):
        return {"server": entry.name, "works": False, "reason": f"{entry.reason} ({entry.location})"}
    started = time.monotonic()
    try:
        await servers.refresh(entry)
        greeting = await servers.pool.server_info(entry.name)
    except ToolError as error:
        # Worded for a model: here its call and what it could ask the user do not matter.
        reason = error.message.removeprefix(f"Server `{entry.name}` is not available; the call was not sent. ")
        command = re.search(r"`trysquare [^`]+`", error.instruction or "")
        again = f"Fix {entry.location}, then run `trysquare gateway test {entry.name}` again."
        fix = again if command is None else f"Run {command[0]}."
        failure = {"server": entry.name, "works": False, "reason": reason, "instruction": fix}
        return {**failure, "withheld": hint} if (hint := _withheld(entry, error.message)) else failure
    return {
        "server": entry.name,
        "works": True,
        "seconds": round(time.monotonic() - started, 2),
        "name": f"{greeting.name} {greeting.server_version}".strip(),
        "protocol": greeting.version,
        "tools": servers.names(entry) or [],
        "held": [held.tool for held in servers.registry.pending(entry.name)],
        "left_out": list(servers.registry.left_out(entry.name)),
        "noise": servers.pool.status()[entry.name].noise,
    }


def _withheld(server: gateway.ServerConfig, reason: str) -> str:
    """The environment variables that a failed server was not given."""
    if not gateway.TRANSPORTS[server.transport].owns_process:
        return ""
    names = gateway.withheld(os.environ, passed=server.pass_env, given=server.env)
    named = [name for name in names if name in reason]
    if not named:
        is_reported = bool(names) and "exited" in reason
        return f"{len(names)} variables of this environment are not passed to it" if is_reported else ""
    return f"{', '.join(named)} of this environment is not passed to it"


def _print_outcome(outcome: dict[str, Any]) -> None:
    if not outcome["works"]:
        reason = one_line(outcome["reason"], terminal.LONGEST_MESSAGE)
        print(f"{terminal.styled('fails', 'red')}  {outcome['server']}: {reason}")
        if outcome.get("instruction"):
            print(f"       {outcome['instruction']}")
        if outcome.get("withheld"):
            print(f"       {outcome['withheld']}; pass one that it needs with `env` or `x-trysquare.pass_env`.")
        return
    tools = terminal.count(len(outcome["tools"]), "tool")
    speaks = f"{one_line(outcome['name'], 200)} speaks {outcome['protocol']}"
    print(f"{terminal.styled('works', 'green')}  {outcome['server']}: {tools} in {outcome['seconds']:.2f} s; {speaks}")
    for reason in outcome["left_out"]:
        print(f"       left out: {reason}")
    for tool in outcome["held"]:
        print(f"       {one_line(tool)} is pending approval; see `trysquare gateway diff {outcome['server']}`")
    if outcome["noise"]:
        print(f"       it prints lines on stdout that are not protocol messages: {outcome['noise']}")


def _diff(arguments: argparse.Namespace) -> int:
    """Print what waits for approval; 1 if anything does."""
    with open_state(arguments) as state:
        commands, tools = _held(state, state.usable([arguments.name] if arguments.name else []))
    if arguments.json:
        servers = [{"server": one.server.name, "before": one.before, "after": one.server.shown} for one in commands]
        terminal.print_json({"servers": servers, "tools": [{**asdict(held), "diff": held.diff} for held in tools]})
    else:
        _print_held(commands, tools)
        if not commands and not tools:
            print("No pending changes.")
    return 1 if commands or tools else 0


def _held(
    state: GatewayState, servers: list[gateway.ServerConfig]
) -> tuple[list[gateway.UnapprovedServer], list[gateway.PendingChange]]:
    """The servers whose command or address waits for approval, and the tools that do."""
    commands = [held for server in servers if (held := state.trust.pending(server)) is not None]
    return commands, [held for server in servers for held in state.registry.pending(server.name)]


def _print_held(commands: list[gateway.UnapprovedServer], tools: list[gateway.PendingChange]) -> None:
    for command in commands:
        print(f"{terminal.styled('held', 'red')}  {command.describe()}\n")
    for tool in tools:
        reasons = one_line(" ".join(tool.reasons), terminal.LONGEST_MESSAGE)
        print(f"{terminal.styled('held', 'red')}  {one_line(tool.tool)} of {tool.server}: {reasons}\n{tool.diff}\n")


def _approve(arguments: argparse.Namespace) -> int:
    with open_state(arguments) as state:
        server = require_usable(state.config, arguments.name)
        commands, tools = _held(state, [server])
        if arguments.tool is not None:
            commands, tools = [], [held for held in tools if held.tool == arguments.tool]
        if not commands and not tools:
            print(f"No pending changes for `{arguments.tool or server.name}`.")
            return 0
        _print_held(commands, tools)
        terminal.require_terminal("gateway approve", "approve")
        if not terminal.ask_yes_or_no("Approve all of this?"):
            print("Not approved; it stays pending.")
            return 1
        for held in commands:
            state.trust.approve(held.server)
        left = state.registry.approve(tools) if tools else ()
    if left:
        print(f"Changed again in the meantime, and still pending: {', '.join(one_line(held.tool) for held in left)}")
        return 1
    print("Approved. A running gateway applies it within a second.")
    return 0


def _calls(arguments: argparse.Namespace) -> None:
    """Print the latest calls first. Opening the ledger settles the calls of killed processes."""
    with closing(CallLedger(user_state().with_name("ledger.db"))) as ledger:
        calls = ledger.recent(limit=arguments.limit, server=arguments.name, state=arguments.state)
    report = [{**asdict(call), "arguments": json.loads(call.arguments)} for call in calls]
    rows, headings = map(_call_row, calls), ("WHEN", "SERVER", "TOOL", "STATE", "TOOK", "RESULT", "ARGUMENTS")
    unknown = sum(call.state == "sent_unknown" for call in calls)
    doubt = f"{terminal.count(unknown, 'call')} may or may not have taken effect: check what they were meant to change."
    then = doubt if unknown else ""
    terminal.print_listing(report, headings, [*rows], json=arguments.json, empty="No calls yet.", then=then)


def _call_row(call: CallRecord) -> tuple[str, ...]:
    when = datetime.fromtimestamp(call.started, UTC).isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")
    took = "" if call.ended is None else f"{(call.ended - call.started) * 1000:.0f} ms"
    size = "" if call.result_bytes is None else terminal.count(call.result_bytes, "byte")
    result = f"error, {size}" if size and call.is_error else size
    failed = call.is_error or call.state != "done"
    return (when, call.server, call.tool, call.state, took, result, (call.note if failed else None) or call.arguments)


_SHARED = (JSON, add_gateway_options)
_NAMES = option("names", metavar="NAME", nargs="*", help="the servers to test (default: all)", complete=server_names)
_ANY = option("name", metavar="NAME", nargs="?", help="the server (default: all)", complete=server_names)
_APPROVE = (
    option("name", metavar="NAME", help="the server", complete=server_names),
    option("tool", metavar="TOOL", nargs="?", help="one of its tools (default: everything that is pending)"),
    add_gateway_options,
)
_CALLS = (
    _ANY,
    option("--state", choices=CALL_STATES, help="only calls in this state"),
    option("--limit", metavar="N", type=positive(int), default=50, help="maximum number (default: 50)"),
    option("--json", action="store_true", help="print JSON, with the arguments and digests"),
    add_gateway_options,
)
COMMAND = Command(
    subcommands={
        "list": Command(
            _list,
            _SHARED,
            "show the servers, their tools and problems; start none",
            examples=(
                "trysquare gateway list",
                "trysquare gateway list --gateway team.json --json",
            ),
        ),
        "test": Command(
            _test,
            (_NAMES, *_SHARED),
            "start servers and list their tools",
            examples=(
                "trysquare gateway test",
                "trysquare gateway test git files",
            ),
        ),
        "add": ADD,
        "import": IMPORT,
        "remove": REMOVE,
        "diff": Command(
            _diff,
            (_ANY, *_SHARED),
            "show changes of servers that are pending approval",
            examples=(
                "trysquare gateway diff",
                "trysquare gateway diff git",
            ),
        ),
        "approve": Command(
            _approve,
            _APPROVE,
            "approve a server's changed command, address or tools",
            examples=(
                "trysquare gateway approve git",
                "trysquare gateway approve git git_commit",
            ),
        ),
        "login": LOGIN,
        "calls": Command(
            _calls,
            _CALLS,
            "show the ledger of calls with their state and result",
            examples=(
                "trysquare gateway calls",
                "trysquare gateway calls git --state sent_unknown --limit 10",
            ),
        ),
        "secret": SECRET,
    },
    examples=(
        "trysquare gateway import claude-code",
        "trysquare gateway add git -- uvx mcp-server-git",
        "trysquare gateway test",
    ),
)
