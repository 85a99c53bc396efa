"""Whether the server works: `trysquare doctor` starts it as a client would, and lists its tools in both eras."""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Mapping
from typing import Any, cast

from trysquare.cli.doctor_checks import Finding
from trysquare.cli.install import server_command, server_options
from trysquare.core.types import JsonObject
from trysquare.settings.load import Loaded

_SECONDS = 60
_CLIENT = {"name": "trysquare-doctor", "version": "1"}
_META = "io.modelcontextprotocol/"
ERAS: Mapping[str, tuple[JsonObject, ...]] = {
    "2025-11-25": (
        {
            "id": 1,
            "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT},
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
    ),
    "2026-07-28": (
        {
            "id": 2,
            "method": "tools/list",
            "params": {
                "_meta": {
                    f"{_META}protocolVersion": "2026-07-28",
                    f"{_META}clientCapabilities": {},
                    f"{_META}clientInfo": _CLIENT,
                }
            },
        },
    ),
}


def check_server(arguments: argparse.Namespace, loaded: Loaded) -> list[Finding]:
    """Start the server with the current configuration, once for each era, and list its tools."""
    command = [*server_command(), "serve", *server_options(arguments, loaded)]
    return [_tried(command, era) for era in ERAS]


def _tried(command: list[str], era: str) -> Finding:
    name = f"tools/list, {era}"
    started = time.monotonic()
    try:
        answer, told = _exchange(command, era)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(group="server", name=name, state="broken", detail=f"it does not start: {error}")
    tools = _tools_of(answer)
    if tools is None:
        detail = f"it gave no list: {answer or told or 'no answer'}"
        return Finding(group="server", name=name, state="broken", detail=detail, fix=" ".join(command))
    took = round((time.monotonic() - started) * 1000)
    hint = "trysquare doctor --tools MODULE:NAME" if not tools else None
    return Finding(group="server", name=name, state="ok", detail=f"{tools} tools listed, {took} ms", fix=hint)


def _exchange(command: list[str], era: str) -> tuple[JsonObject | None, str]:
    """Send what a client sends, close the input, and pick the answer to `tools/list`; beside it what went to stderr."""
    sent = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in ERAS[era])
    run = subprocess.run(
        command, input=sent, capture_output=True, text=True, encoding="utf-8", timeout=_SECONDS, check=False
    )
    for line in run.stdout.splitlines():
        message = cast(JsonObject, json.loads(line))
        if message.get("id") == 2:
            return message, run.stderr
    return None, (run.stderr.strip().splitlines() or [""])[-1]


def _tools_of(answer: JsonObject | None) -> int | None:
    result: Any = (answer or {}).get("result")
    tools = cast(JsonObject, result).get("tools") if isinstance(result, dict) else None
    return len(cast(list[Any], tools)) if isinstance(tools, list) else None
