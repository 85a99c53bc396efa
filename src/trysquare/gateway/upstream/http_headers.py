"""Headers of the modern era: what a request says of itself to those who pass it on without reading it."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from trysquare.core.types import JsonObject
from trysquare.gateway.upstream.channel import Outgoing
from trysquare.gateway.upstream.handshake import MODERN

_NAMED: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Requests whose subject is named in a header."""
_PLAIN_VALUE = re.compile(r"(?!=\?base64\?)[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


def modern_headers(method: str, name: str | None) -> dict[str, str]:
    """The headers of a request."""
    headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
    if name is not None and method in _NAMED:
        headers["mcp-name"] = _header_value(name)
    return headers


def _header_value(text: str) -> str:
    """A text as a header can hold it; in base64 where it could not stand there as it is."""
    if not text or _PLAIN_VALUE.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="


class MirroredHeaders:
    """Arguments that a server wants to see in headers too. Its list of tools says which; hardly any server has some."""

    def __init__(self) -> None:
        self.is_listed = False
        """Whether all tools were looked at."""
        self._maps: dict[str, Mapping[tuple[str, ...], str]] = {}

    def learn(self, message: bytes) -> str | None:
        """Look at a page of the list of tools. Returns the cursor of the next one."""
        result = _object(_object(_decoded(message)).get("result"))
        tools: Any = result.get("tools")
        for tool in cast(list[Any], tools) if isinstance(tools, list) else []:
            self._learn_tool(_object(tool))
        cursor = result.get("nextCursor")
        self.is_listed = self.is_listed or not cursor
        return cursor if isinstance(cursor, str) and cursor else None

    def notice(self, message: bytes) -> None:
        """Look at a page that was asked for by somebody else, if there is anything to be seen in it."""
        if b"x-mcp-header" in message:
            self.learn(message)

    def of(self, outgoing: Outgoing) -> Mapping[str, str]:
        """The headers that mirror the arguments of a call."""
        found = self._maps.get(outgoing.name or "") if outgoing.method == "tools/call" else None
        if not found:
            return {}
        from mcp.shared.inbound import mcp_param_headers

        arguments = _object(_object(_object(_decoded(outgoing.body)).get("params")).get("arguments"))
        return mcp_param_headers(found, arguments)

    def _learn_tool(self, tool: JsonObject) -> None:
        from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map

        schema = tool.get("inputSchema")
        if find_invalid_x_mcp_header(schema) is None:
            self._maps[str(tool.get("name"))] = x_mcp_header_map(schema)


def _decoded(message: bytes) -> Any:
    try:
        return msgspec.json.decode(message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _object(value: Any) -> JsonObject:
    return cast(JsonObject, value) if isinstance(value, dict) else {}
