"""OpenAI ways: the ways in which servers with the same API hold an answer, and how each is tried."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.models.model import Constraint, HowHeld, ModelRequest
from trysquare.models.openai_bodies import native_body, plain_body
from trysquare.models.options import Hold

_WORD = "trysquare"
_PROBE = {"probe": _WORD}
_PROBE_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"probe": {"type": "string", "enum": [_WORD]}},
    "required": ["probe"],
    "additionalProperties": False,
}
# What no model would write by itself in answer to a greeting: if it comes back, the server held the answer.
_PROBE_GBNF = 'root ::= "{\\"probe\\":\\"trysquare\\"}"'
_PROBE_BODY: JsonObject = {
    "messages": [{"role": "user", "content": "Good morning!"}],
    "max_tokens": 48,
    "temperature": 0,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """A way to hold an answer."""

    name: str
    about: str
    kind: Hold
    held: HowHeld
    fields: Callable[[Constraint, int], JsonObject] | None
    """What a constraint adds to a plain request; None for the server's own tool calling, which wants no constraint."""
    probe: JsonObject

    def body(self, request: ModelRequest) -> JsonObject:
        """The request in this way."""
        if self.fields is None or request.constraint is None:
            return native_body(request) if self.fields is None else plain_body(request)
        return {**plain_body(request), **self.fields(request.constraint, request.max_tokens)}

    def fits(self, request: ModelRequest) -> bool:
        """Whether the request has what this way needs."""
        return bool(request.tools) if self.fields is None else request.constraint is not None

    def probe_body(self) -> JsonObject:
        """A small request whose answer shows whether the server honours this way."""
        return {**_PROBE_BODY, **self.probe}

    def honoured(self, found: JsonObject) -> bool:
        """Whether the answer to the probe is what the way promises."""
        message = _message(found)
        if self.fields is None:
            return _called(message)
        content = message.get("content")
        return isinstance(content, str) and _json(content) == _PROBE


def _schema_format(schema: JsonObject) -> JsonObject:
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "calls", "strict": True, "schema": schema},
        }
    }


def _in_object(schema: JsonObject) -> JsonObject:
    """The schema of the calls inside of an object: OpenAI and others take nothing else at the top."""
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    shared = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {
        "type": "object",
        "properties": {"calls": inner},
        "required": ["calls"],
        "additionalProperties": False,
        **shared,
    }


WAYS: tuple[Way, ...] = (
    Way(
        name="grammar",
        about="a GBNF grammar in the field `grammar`, as llama.cpp's server takes it",
        kind="grammar",
        held="grammar",
        fields=lambda constraint, tokens: {"grammar": constraint.gbnf(tokens=tokens)},
        probe={"grammar": _PROBE_GBNF},
    ),
    Way(
        name="ebnf",
        about="the same grammar in the field `ebnf`, as SGLang takes it",
        kind="guided",
        held="grammar",
        fields=lambda constraint, tokens: {"ebnf": constraint.gbnf(tokens=tokens)},
        probe={"ebnf": _PROBE_GBNF},
    ),
    Way(
        name="structured_outputs",
        about="a JSON schema in `structured_outputs`, as vLLM takes it",
        kind="guided",
        held="schema",
        fields=lambda constraint, tokens: {"structured_outputs": {"json": constraint.json_schema()}},
        probe={"structured_outputs": {"json": _PROBE_SCHEMA}},
    ),
    Way(
        name="guided_json",
        about="a JSON schema in `guided_json`, as older vLLM takes it",
        kind="guided",
        held="schema",
        fields=lambda constraint, tokens: {"guided_json": constraint.json_schema()},
        probe={"guided_json": _PROBE_SCHEMA},
    ),
    Way(
        name="native",
        about="the API's own `tools`, where calls truly come back as `tool_calls`",
        kind="native",
        held="native",
        fields=None,
        probe={
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "probe", "description": "Greets back.", "parameters": _PROBE_SCHEMA},
                }
            ],
            "tool_choice": "required",
        },
    ),
    Way(
        name="response_format",
        about="a JSON schema in `response_format`",
        kind="schema",
        held="schema",
        fields=lambda constraint, tokens: _schema_format(_in_object(constraint.json_schema())),
        probe=_schema_format(_PROBE_SCHEMA),
    ),
)
"""Best first: what is held exactly, then what models were trained for, then what is left."""

KINDS: Mapping[Hold, tuple[Way, ...]] = MappingProxyType(
    {
        "auto": WAYS,
        "free": (),
        **{kind: tuple(way for way in WAYS if way.kind == kind) for kind in ("grammar", "guided", "native", "schema")},
    }
)


def _message(found: JsonObject) -> JsonObject:
    choices: Any = found.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return {}
    message: Any = cast(JsonObject, choices[0]).get("message")
    return cast(JsonObject, message) if isinstance(message, dict) else {}


def _called(message: JsonObject) -> bool:
    calls: Any = message.get("tool_calls")
    if not isinstance(calls, list) or not calls or not isinstance(calls[0], dict):
        return False
    function: Any = cast(JsonObject, calls[0]).get("function")
    if not isinstance(function, dict):
        return False
    arguments: Any = cast(JsonObject, function).get("arguments")
    read = _json(arguments) if isinstance(arguments, str) else arguments
    return cast(JsonObject, function).get("name") == "probe" and isinstance(read, dict)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
