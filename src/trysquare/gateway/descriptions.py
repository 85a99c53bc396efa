"""What a list says of the servers. The same bytes for the same configuration and catalogue, so that caches hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trysquare.catalog.describe import COMPACT_PURPOSE
from trysquare.catalog.tokens import count_tokens
from trysquare.core.shortening import short
from trysquare.core.untrusted import cleaned_text
from trysquare.gateway.checking.signatures import one_line
from trysquare.gateway.server import BrokenServer, ServerConfig, ServerEntry

_PURPOSE = 80
"""Characters of what a person wrote about a server."""
_TOLD_TOKENS = 40
"""Tokens of purpose and tool names in one server's description: with the names a model can often do without `list`."""
_OVER_ALL = "MCP servers behind one gateway: list names their tools (or finds some by query), execute runs one."
_LEAST_LINE = 24
"""Characters that a server needs to be told in a line of its own."""
_REASON = 160


def server_description(server: ServerEntry, tools: Sequence[str]) -> str:
    """What a server is: its name, its transport, what it is for, and what the actions do."""
    if isinstance(server, BrokenServer):
        reason = short(one_line(server.reason), _REASON)
        return f"MCP server '{_shown(server.name)}' cannot be used: {reason} ({server.place})."
    return f"{_heading(server, tools)}\nlist shows its tools, execute runs one, read pages a large result."


def gateway_description(servers: Iterable[ServerEntry]) -> str:
    """What the one tool over all servers is, with as much of each server as there is room for."""
    known = list(servers)
    room = (COMPACT_PURPOSE - len(_OVER_ALL)) // max(len(known), 1)
    if room >= _LEAST_LINE:
        return "\n".join([_OVER_ALL, *(short(f"- {_line(server)}", room - 1) for server in known)])
    names = ", ".join(_shown(server.name) for server in known)
    return short(f"{_OVER_ALL} Servers: {names}", COMPACT_PURPOSE)


def _heading(server: ServerConfig, tools: Sequence[str]) -> str:
    purpose = short(one_line(server.description), _PURPOSE)
    names = names_within(tools, _TOLD_TOKENS - count_tokens(purpose))
    told = ": ".join(part for part in (purpose, names) if part)
    return f"MCP server '{_shown(server.name)}' ({server.transport}): {told or 'not asked yet what it offers'}."


def _line(server: ServerEntry) -> str:
    if isinstance(server, BrokenServer):
        return f"{_shown(server.name)}: cannot be used"
    purpose = short(one_line(server.description), _PURPOSE)
    return f"{_shown(server.name)} ({server.transport})" + (f": {purpose}" if purpose else "")


def names_within(names: Sequence[str], tokens: int) -> str:
    """As many names as fit into some tokens, and how many more there are."""
    kept: list[str] = []
    for name in names:
        tokens -= count_tokens(f", {name}")
        if tokens < 0:
            more = len(names) - len(kept)
            return ", ".join([*kept, f"… {more} more"]) if kept else f"{more}"
        kept.append(_shown(name))
    return ", ".join(kept)


def _shown(name: str) -> str:
    return short(" ".join(cleaned_text(name).split()), 64)
