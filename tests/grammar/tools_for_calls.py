"""Tools as an agent offers them, for tests of calls."""

from __future__ import annotations

import json
from typing import Any

import jsonschema

from trysquare.core.json import JsonObject
from trysquare.grammar.calls.call_set import CallSet


def closed(required: list[str] | None = None, **properties: Any) -> JsonObject:
    """A closed object; all properties are required unless some are named."""
    names = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


NULLABLE: JsonObject = {"type": ["string", "null"]}
TOOLS: dict[str, JsonObject] = {
    "read": closed(path={"type": "string", "maxLength": 12}),
    "read_file": closed(["line"], line={"type": "integer", "minimum": 1, "maximum": 500}, mode={"enum": ["r", "rb"]}),
    "git": {
        "anyOf": [
            closed(["action"], action={"const": "status"}, short={"type": "boolean"}),
            closed(["action", "count"], action={"const": "log"}, count={"type": "integer"}, ref=NULLABLE),
            closed(action={"const": "show"}, paths={"type": "array", "items": {"type": "string"}, "maxItems": 3}),
        ]
    },
    "search": closed(
        ["query"],
        query={"type": "string"},
        ratio={"type": "number"},
        where={"type": "array", "items": closed(folder={"type": "string"}, depth={"type": "integer"}), "maxItems": 2},
    ),
    "bash": closed(["command"], command={"type": "string", "minLength": 3}, why={"type": "string", "minLength": 1}),
    "now": closed(),
}  # fmt: skip


def check_answer(text: str, calls: CallSet) -> list[JsonObject]:
    """The calls of an answer, each checked by a validator that knows nothing of grammars."""
    answer = json.loads(text)
    found = answer if calls.parallel else [answer]
    assert 1 <= len(found) <= (calls.most_calls if calls.parallel else 1)
    for call in found:
        assert list(call) == ["name", "args"]
        jsonschema.Draft202012Validator(calls.tools[call["name"]]).validate(call["args"])
    return found
