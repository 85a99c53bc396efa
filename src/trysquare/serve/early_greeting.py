"""The early greeting: what `initialize` is answered with where nothing is set that could change it.

A client sends nothing more before it has this answer. Where it had to wait for it until all is loaded, nothing that it
asks next could be made ready meanwhile; so a first start answers by itself, and later ones as the last one did.

This module imports nothing outside the standard library: it has to run before anything else is loaded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

from trysquare import __version__

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The versions of the protocol that begin with a handshake."""
SETTINGS = ("TRYSQUARE_", "MCP_")
"""How the variables begin that can be settings; the one that names our starter is another for every start."""
STARTER = "TRYSQUARE_STARTED_BY"
_CAPABILITIES = {
    "logging": {},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "tools": {"listChanged": True},
    "completions": {},
}
_PARAMS = frozenset({"protocolVersion", "capabilities", "clientInfo"})
_OFFERED = frozenset({"experimental", "sampling", "elicitation", "roots"})
_OWN_FILE, _SHARED_FILE = "trysquare.toml", "pyproject.toml"
_LONGEST_FILE = 1024 * 1024


def greets_plainly(words: Sequence[str]) -> bool:
    """Whether a start over stdio has nothing set that could change what the server says of itself.

    Only a gateway is taken for one: its words name files of servers, and perhaps the project.
    """
    folder, rest, has_servers = os.getcwd(), list(words[1:]), False
    while rest:
        flag, _, value = rest.pop(0).partition("=")
        value = value or (rest.pop(0) if rest else "")
        if flag == "--gateway" and os.path.isfile(value):
            has_servers = True
        elif flag == "--project" and os.path.isdir(value):
            folder = value
        else:
            return False
    is_set = any(name.startswith(SETTINGS) and name != STARTER for name in os.environ)
    return has_servers and not is_set and not _has_settings(folder)


def greeting(params: Mapping[str, Any]) -> str | None:
    """The result of `initialize` in JSON, or None where a client says something of itself that has to be looked at."""
    asked, offered, client = (params.get(name) for name in ("protocolVersion", "capabilities", "clientInfo"))
    if not _PARAMS <= params.keys() <= _PARAMS or not isinstance(asked, str) or not _is_plain_client(client):
        return None
    if not isinstance(offered, dict) or not _is_plain_offer(cast(dict[str, Any], offered)):
        return None
    told = {
        "protocolVersion": asked if asked in VERSIONS else VERSIONS[-1],
        "capabilities": _CAPABILITIES,
        "serverInfo": {"name": "trysquare", "version": __version__},
    }
    return json.dumps(told, separators=(",", ":"))


def _is_plain_client(client: Any) -> bool:
    if not isinstance(client, dict):
        return False
    told = cast(dict[str, Any], client)
    return {"name", "version"} <= told.keys() <= {"name", "version", "title"} and all(
        isinstance(text, str) for text in told.values()
    )


def _is_plain_offer(offered: dict[str, Any]) -> bool:
    """Whether it is beyond doubt what a client offers: names that are known, and below them yes, no and nothing."""
    if not offered.keys() <= _OFFERED or not all(isinstance(each, dict) for each in offered.values()):
        return False
    roots: dict[str, Any] = offered.get("roots", {})
    forms = (*offered.get("sampling", {}).values(), *offered.get("elicitation", {}).values())
    return all(isinstance(each, bool) for each in roots.values()) and all(
        isinstance(each, dict) for each in (*forms, *offered.get("experimental", {}).values())
    )


def _has_settings(folder: str) -> bool:
    """Whether there may be settings in a folder. What cannot be read may hold some."""
    if os.path.lexists(os.path.join(folder, _OWN_FILE)):
        return True
    try:
        with open(os.path.join(folder, _SHARED_FILE), "rb") as file:
            text = file.read(_LONGEST_FILE)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return b"trysquare" in text or len(text) == _LONGEST_FILE
