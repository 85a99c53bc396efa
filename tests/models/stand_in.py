"""A stand-in for the servers of models: it answers the documented requests of each kind, and has no model behind it.

What it writes follows from what holds the answer: the literal of a grammar, the smallest instance of a schema, a call
of the first tool. A server of a kind ignores the fields that only other kinds know, as the real ones do.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Kind = Literal["llama.cpp", "sglang", "vllm", "old vllm", "tools", "fenced", "schema", "free", "anthropic"]
FREE_TEXT = "Good morning to you too!"


@dataclass
class StandIn:
    """What the server is and does, and what it was asked."""

    kind: Kind
    url: str = ""
    key: str | None = None
    troubles: list[tuple[int, dict[str, str], str]] = field(default_factory=list)
    """Answers that come before the right ones: status, headers, body. A status of 0 closes the connection."""
    refuses: list[str] = field(default_factory=list)
    """Fields that are refused by name, as some servers do."""
    models: dict[str, Any] = field(default_factory=lambda: {"data": [{"id": "m"}]})
    answer: dict[str, Any] | None = None
    """Sent instead of an answer of its own."""
    sentence: str | None = None
    """What it writes under a grammar that is more than one literal."""
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """What was asked, without the probes."""
        return [body for body in self.asked if body["messages"][0].get("content") != "Good morning!"]


@contextmanager
def serving(kind: Kind, **about: Any) -> Generator[StandIn]:
    """The stand-in of a kind, on a port of its own."""
    stand_in = StandIn(kind=kind, **about)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(stand_in))
    stand_in.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield stand_in
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(stand_in: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(200, {}, json.dumps(stand_in.models))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            stand_in.headers.append({key.lower(): value for key, value in self.headers.items()})
            if stand_in.troubles:
                status, headers, text = stand_in.troubles.pop(0)
                if status == 0:
                    self.close_connection = True
                    return
                self._send(status, headers, text)
                return
            stand_in.asked.append(body)
            self._send(*_answered(stand_in, body, self.headers))

        def _send(self, status: int, headers: dict[str, str], text: str) -> None:
            self.send_response(status)
            for name, value in {"content-length": str(len(text.encode())), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: a test's output is its own."""

    return Handler


def _answered(stand_in: StandIn, body: dict[str, Any], headers: Any) -> tuple[int, dict[str, str], str]:
    given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    if stand_in.key is not None and given != stand_in.key:
        return 401, {}, json.dumps({"error": {"message": "Incorrect API key provided."}})
    for name in stand_in.refuses:
        if name in body:
            instead = ", use 'max_completion_tokens' instead" if name == "max_tokens" else ""
            return 400, {}, json.dumps({"error": {"message": f"Unsupported parameter: '{name}'{instead}."}})
    if stand_in.answer is not None:
        return 200, {}, json.dumps(stand_in.answer)
    made = _message_of_anthropic(body) if stand_in.kind == "anthropic" else _completion(stand_in, body)
    return 200, {}, json.dumps(made)


def _completion(stand_in: StandIn, body: dict[str, Any]) -> dict[str, Any]:
    kind, calls, text = stand_in.kind, None, FREE_TEXT
    if kind == "llama.cpp" and "grammar" in body:
        text = _literal(body["grammar"], stand_in.sentence)
    elif kind == "sglang" and "ebnf" in body:
        text = _literal(body["ebnf"], stand_in.sentence)
    elif kind == "vllm" and "structured_outputs" in body:
        text = json.dumps(instance(body["structured_outputs"]["json"]))
    elif kind == "old vllm" and "guided_json" in body:
        text = json.dumps(instance(body["guided_json"]))
    elif kind == "schema" and "response_format" in body:
        text = json.dumps(instance(body["response_format"]["json_schema"]["schema"]))
    elif kind in ("tools", "fenced") and body.get("tools"):
        calls, text = _native(kind, body["tools"][0]["function"])
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})},
                "finish_reason": "tool_calls" if calls else "stop",
            }
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16},
    }


def _native(kind: Kind, function: dict[str, Any]) -> tuple[list[dict[str, Any]] | None, str | None]:
    arguments = instance(function["parameters"])
    if kind == "fenced":
        written = json.dumps({"name": function["name"], "arguments": arguments})
        return None, f"```json\n{written}\n```"
    call = {"name": function["name"], "arguments": json.dumps(arguments)}
    return [{"id": "call_abc", "type": "function", "function": call}], None


def _message_of_anthropic(body: dict[str, Any]) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": FREE_TEXT}]
    if body.get("tools"):
        tool = body["tools"][0]
        content.append(
            {"type": "tool_use", "id": "toolu_1", "name": tool["name"], "input": instance(tool["input_schema"])}
        )
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": "tool_use" if body.get("tools") else "end_turn",
        "usage": {"input_tokens": 7, "cache_read_input_tokens": 3, "output_tokens": 4},
    }


def _literal(grammar: str, sentence: str | None) -> str:
    """The one text of a grammar that is a literal; any other form needs the sentence that the test gives."""
    found = re.fullmatch(r'root ::= ("(?:[^"\\]|\\.)*")', grammar.strip())
    if found is None and sentence is not None:
        return sentence
    assert found, grammar
    return json.loads(found[1])


def instance(schema: dict[str, Any]) -> Any:
    """A small instance of a schema, of the kinds that the tests use."""
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return instance(schema[key][0])
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return {name: instance(schema["properties"][name]) for name in schema.get("required", [])}
    return {"string": "x", "integer": schema.get("minimum", 1), "boolean": True, "array": []}[schema["type"]]
