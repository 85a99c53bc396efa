"""Names of the MCP SDK that are not part of its public API, and the versions of it that they were tested with.

Outside of these versions `is_supported` is false: imports, handshakes and calls then go the SDK's own way.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext

TESTED = ((2, 3), (2, 4))
"""The lowest tested version, and the first one above."""
WIRE_MODELS: Final = ("mcp_types._v2025_11_25", "mcp_types._v2026_07_28")
"""Modules with the models of each protocol version."""


def is_supported() -> bool:
    """Whether the installed SDK is one of the tested versions."""
    lowest, above = TESTED
    return lowest <= _installed() < above


@cache
def _installed() -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version("mcp"))[:2])


def connection_of(request: ServerRequestContext[Any, Any]) -> Connection:
    """The connection of a request in the session protocol (2025-11-25): its state, and its exit stack.

    There is no public way to it from a handler, and notifications to the sessions of that era need one.
    """
    return request.session._connection  # pyright: ignore[reportPrivateUsage]
