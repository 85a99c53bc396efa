"""A server whose answers are bytes that a test dictates, over every transport and in both eras. Standard library only.

    python dictated_server.py dictation.json

The file says `modern`, and under `answers` what to send for a method or for `tools/call NAME`, in Latin-1: whole
messages, in which ID stands for the id of the request. What nobody dictated is answered as any server would.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TOOLS = ["plain", "odd"]


def usual(method: str, modern: bool) -> dict[str, Any] | None:
    """The result of a request that nobody dictated; None for an unknown method."""
    capabilities = {"tools": {}, "prompts": {}, "resources": {}, "logging": {}}
    if method == "server/discover" and modern:
        return {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}
    if method == "initialize" and not modern:
        info = {"name": "dictated", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
    if method == "tools/list":
        return {
            "tools": [{"name": name, "description": "A tool.", "inputSchema": {"type": "object"}} for name in TOOLS]
        }
    if method in ("prompts/list", "resources/list", "resources/templates/list"):
        return {"resourceTemplates" if "templates" in method else method.partition("/")[0]: []}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "plain"}]}
    return None


def reply(dictation: dict[str, Any], message: dict[str, Any]) -> bytes | None:
    """What goes back for one message; None for a notification."""
    if "id" not in message or "method" not in message:
        return None
    method, params = message["method"], message.get("params") or {}
    number = json.dumps(message["id"])
    for key in (f"{method} {params.get('name')}", method):
        if key in dictation["answers"]:
            return dictation["answers"][key].replace("ID", number).encode("latin-1")
    result = usual(method, dictation["modern"])
    if result is None:
        error = {"code": -32601, "message": "Method not found"}
        return json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


def main() -> None:
    """Serve over standard input and output."""
    dictation = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for line in sys.stdin.buffer:
        answer = reply(dictation, json.loads(line))
        if answer is not None:
            sys.stdout.buffer.write(answer + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
