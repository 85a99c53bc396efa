"""A toy server that asks for everything that a client may be asked for, and says how it wants to be used.

python asking_server.py [--era legacy|modern]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from toy_server import Params, Server, options_of, send, text  # pyright: ignore[reportMissingImports]

SAMPLING: Params = {
    "messages": [
        {"role": "user", "content": {"type": "text", "text": "What is this?"}},
        {"role": "assistant", "content": {"type": "text", "text": "Show me."}},
        {"role": "user", "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}},
    ],
    "maxTokens": 7,
    "systemPrompt": "Be brief.",
    "temperature": 0.5,
    "stopSequences": ["END"],
    "modelPreferences": {"hints": [{"name": "small"}], "speedPriority": 1.0},
}
VISIT: Params = {"mode": "url", "message": "Sign in", "url": "https://example.com/in", "elicitationId": "e1"}


class Asking(Server):
    """The toy server with other tools."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.tools = ["sample", "visit", "must_visit", "roots", "logs", "level"]

    def capabilities(self) -> Params:
        return {**super().capabilities(), "logging": {}}

    def do_server_discover(self, number: Any, params: Params) -> None:
        result = {"supportedVersions": ["2026-07-28"], "capabilities": self.capabilities(), "resultType": "complete"}
        send(
            {"id": number, "result": {**result, "instructions": "Be kind.\u200b", "ttlMs": 0, "cacheScope": "private"}}
        )

    def asking(self, number: Any, params: Params, method: str, question: Params) -> Params | None:
        if self.options.era == "modern":
            return self.ask_modern(params, method, question)
        self.request(number, method, question)
        return None

    def tool_sample(self, number: Any, arguments: Params, params: Params) -> Params | None:
        return self.asking(number, params, "sampling/createMessage", SAMPLING)

    def tool_visit(self, number: Any, arguments: Params, params: Params) -> Params | None:
        return self.asking(number, params, "elicitation/create", VISIT)

    def tool_must_visit(self, number: Any, arguments: Params, params: Params) -> None:
        error = {"code": -32042, "message": "Sign in first", "data": {"elicitations": [VISIT]}}
        send({"id": number, "error": error})

    def tool_logs(self, number: Any, arguments: Params, params: Params) -> Params:
        for level in ("debug", "warning", "shout"):
            told = {"level": level, "logger": "disk\u200b", "data": {"text": f"{level}\u200b", "free": 1}}
            send({"method": "notifications/message", "params": told})
        return text("told")

    def tool_level(self, number: Any, arguments: Params, params: Params) -> Params:
        return text(json.dumps((params.get("_meta") or {}).get("io.modelcontextprotocol/logLevel")))


if __name__ == "__main__":
    Asking(options_of(sys.argv[1:])).run()
