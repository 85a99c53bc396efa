"""Names: how servers and their tools are called in front of the gateway."""

from __future__ import annotations

import hashlib
import re

PREFIX = "mcp_"
GATEWAY = "mcp"
"""The one tool over all servers."""
READ = "gateway_read"
"""Reads large results where every tool of a server is listed by itself."""
SEPARATOR = "__"
_LONGEST = 64
_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]")


def space_of(tool_name: str) -> str:
    """What stands before a server's own names: `github` for `mcp_github`."""
    return tool_name.removeprefix(PREFIX)


def upstream_name(space: str, name: str) -> str:
    """A tool or prompt of a server as everybody sees it: `github__create_issue`.

    What clients refuse in a name becomes `_`, and a name that is too long ends with a digest, so that two stay two.
    """
    whole = _FOREIGN.sub("_", f"{space}{SEPARATOR}{name}")
    return whole if len(whole) <= _LONGEST else _with_digest(whole, f"{space}{SEPARATOR}{name}")


def distinct_name(name: str, server: str) -> str:
    """A name that several servers would share, as that of one of them alone."""
    return _with_digest(name, f"{server}\n{name}")


def _with_digest(name: str, of: str) -> str:
    digest = hashlib.sha256(of.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[: _LONGEST - 9]}_{digest}"
