"""First calls: what a line of a client says where it calls a tool, or takes a call back, read before the SDK is there.

This module imports nothing outside the standard library: it has to run before anything else is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias, cast

Id: TypeAlias = "str | int"
_PARAMS = frozenset({"name", "arguments", "_meta"})
_RESERVED = "io.modelcontextprotocol/"
"""How the names begin that a client of the modern era sends with every request."""
_CANCELLED = b"notifications/cancelled"


class FirstCall(NamedTuple):
    """A plain call: a tool, its arguments, and what the call says of itself."""

    id: Id
    name: str
    arguments: Mapping[str, Any]
    meta: Mapping[str, Any]


def plain_call(request: Mapping[str, Any]) -> FirstCall | None:
    """The call that a request makes, if there is nothing in it that has to be looked at more closely."""
    params: Mapping[str, Any] = request.get("params") or {}
    name, arguments, meta = params.get("name"), params.get("arguments", {}), params.get("_meta", {})
    if not isinstance(name, str) or not isinstance(arguments, dict) or not params.keys() <= _PARAMS:
        return None
    if not _is_plain_meta(meta):
        return None
    return FirstCall(request["id"], name, cast(Mapping[str, Any], arguments), meta)


def cancelled_by(line: bytes) -> Id | None:
    """The request that a line takes back, if it does."""
    if _CANCELLED not in line:
        return None
    try:
        return json.loads(line)["params"]["requestId"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return None


def _is_plain_meta(meta: Any) -> bool:
    if not isinstance(meta, dict):
        return False
    told = cast(dict[str, Any], meta)
    token = told.get("progressToken", "")
    is_token = isinstance(token, str | int) and not isinstance(token, bool)
    return is_token and not any(name.startswith(_RESERVED) for name in told)
