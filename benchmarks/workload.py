"""What every server in the benchmarks offers, and what every client sends: the same tools, the same calls."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field

DESCRIPTION = "Repeat a text a number of times, loudly if asked to."
CALLED_TOOLS = 8
"""How many different tools the callers use in turn."""

Text = Annotated[str, Field(description="What to repeat")]
Times = Annotated[int, Field(description="How often", ge=1, le=100)]
Loud = Annotated[bool, Field(description="Whether in capital letters")]


async def repeat(text: Text, times: Times = 1, loud: Loud = False) -> str:
    """Repeat a text a number of times, loudly if asked to."""
    return repeated(text, times, loud)


def repeated(text: str, times: int, loud: bool) -> str:
    """The work of every tool: next to none, so that what is measured is the server."""
    whole = " ".join([text] * times)
    return whole.upper() if loud else whole


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "What to repeat"},
        "times": {"type": "integer", "description": "How often", "minimum": 1, "maximum": 100, "default": 1},
        "loud": {"type": "boolean", "description": "Whether in capital letters", "default": False},
    },
    "required": ["text"],
    "additionalProperties": False,
}


def tool_name(number: int) -> str:
    """The name of a tool by its number."""
    return f"tool_{number:04d}"


MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"
_META = "io.modelcontextprotocol/"
_CLIENT = {"name": "benchmark", "version": "1"}
ENVELOPE = {
    f"{_META}protocolVersion": MODERN,
    f"{_META}clientCapabilities": {},
    f"{_META}clientInfo": _CLIENT,
}


def opening(era: str) -> list[dict[str, Any]]:
    """What a client sends before anything else."""
    if era == MODERN:
        return []
    params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": _CLIENT}
    return [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]


def request(number: int, method: str, params: dict[str, Any], era: str) -> dict[str, Any]:
    """One request in the manner of an era."""
    known = {**params, "_meta": ENVELOPE} if era == MODERN else params
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": known}


def call(number: int, tools: int, era: str) -> dict[str, Any]:
    """The call of that number: another tool and another text each time."""
    name = tool_name(number % min(tools, CALLED_TOOLS))
    arguments = {"text": f"hello {number}", "times": 2}
    return request(number, "tools/call", {"name": name, "arguments": arguments}, era)


def expected_text(number: int) -> str:
    """What the answer to a call must contain."""
    return f"hello {number} hello {number}"


def line(message: dict[str, Any]) -> bytes:
    """A message as one line of JSON."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
