"""A server whose tools stand in a JSON file, so that a test can change them. Standard library only.

    python scripted_server.py offers.json

The file holds `tools`, and perhaps `prompts`, `resources` and `templates`. A tool answers with its name and arguments;
one called `announce` tells that every list changed, and `rows` gives as many rows as `count` says. A resource that
somebody subscribes to changes at once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


def send(**message: Any) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def offers() -> dict[str, Any]:
    """What the file says now."""
    return json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))


def tell(*kinds: str) -> None:
    """Say that lists changed."""
    for kind in kinds:
        send(method=f"notifications/{kind}/list_changed")


def call(params: dict[str, Any]) -> dict[str, Any]:
    """Answer a call."""
    if params["name"] == "announce":
        tell("tools", "prompts", "resources")
    if params["name"] == "rows":
        rows = {"rows": [{"id": number, "name": f"row {number}"} for number in range(params["arguments"]["count"])]}
        return {"content": [{"type": "text", "text": json.dumps(rows)}], "structuredContent": rows}
    told = {"tool": params["name"], "arguments": params.get("arguments", {})}
    return {"content": [{"type": "text", "text": json.dumps(told)}], "structuredContent": told}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Answer a request."""
    if method in LISTS:
        key = LISTS[method]
        return {key: offers().get("templates" if key == "resourceTemplates" else key, [])}
    if method == "tools/call":
        return call(params)
    if method == "prompts/get":
        return {"messages": [{"role": "user", "content": {"type": "text", "text": json.dumps(params["arguments"])}}]}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": f"This is {params['uri']}."}]}
    if method == "completion/complete":
        return {"completion": {"values": [params["argument"]["value"] + "!"]}}
    return {}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if number is None:
            continue
        if method == "server/discover":
            send(id=number, error={"code": -32601, "message": "Method not found"})
        elif method == "initialize":
            capabilities = {
                "tools": {"listChanged": True},
                "prompts": {"listChanged": True},
                "resources": {"listChanged": True, "subscribe": True},
                "completions": {},
            }
            info = {"name": "scripted", "version": "1"}
            send(
                id=number,
                result={"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info},
            )
        else:
            params = message.get("params") or {}
            send(id=number, result=answer(method, params))
            if method == "resources/subscribe":
                send(method="notifications/resources/updated", params={"uri": params["uri"]})


if __name__ == "__main__":
    main()
