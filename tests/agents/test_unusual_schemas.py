"""One tool whose schema no grammar can express does not cost a run the others, whatever way its model is held in."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.agents.scripted import definition, run_script
from tests.models.stand_in import Kind, serving
from tests.models.tiny_gguf import write_tiny_gguf
from trysquare import Tool, tool
from trysquare.agents.budget import Budget
from trysquare.agents.run import call_constraint
from trysquare.models import ModelOptions, ToolSpec, open_model

THREE_STEPS = definition(budget=Budget(steps=3))


def unusual() -> list[Tool]:
    async def pick(numbers: set[int]) -> str:
        """Pick numbers, each once."""
        return str(sorted(numbers))

    async def look(path: str) -> str:
        """Look at something."""
        return path

    return [tool(pick), tool(look)]


@pytest.mark.parametrize("kind", ["llama.cpp", "sglang", "vllm", "old vllm", "schema", "tools", "free"])
async def test_a_run_with_such_a_tool_goes_on_with_every_kind_of_server(kind: Kind) -> None:
    with serving(kind, sentence='[{"name":"look","args":{"path":"a"}}]') as server:
        async with open_model(f"openai:m@{server.url}/v1", ModelOptions(retries=0)) as model:
            outcome = await run_script(model, unusual(), agent=THREE_STEPS, constraint=call_constraint)
        assert outcome.status in ("out_of_budget", "stuck", "gave_up")
        sent = json.dumps(server.requests[0])
    assert "pick" in sent
    assert "look" in sent


async def test_a_run_with_such_a_tool_goes_on_with_a_local_model(tmp_path: Path) -> None:
    tiny = write_tiny_gguf(tmp_path / "tiny.gguf")
    async with open_model(f"local:{tiny}", ModelOptions(threads=1)) as model:
        outcome = await run_script(model, unusual(), agent=THREE_STEPS, constraint=call_constraint)
    assert outcome.status in ("out_of_budget", "stuck", "gave_up")
    assert outcome.calls > 0


STRANGE: list[dict[str, Any]] = [
    {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
    {"type": "object", "propertyNames": {"pattern": "^a"}},
    {"not": {"type": "string"}},
    {"type": "string", "pattern": "(?=a)b"},
    {"$ref": "https://example.org/schema"},
    {"type": "number", "multipleOf": 0.01},
    {"if": {"type": "string"}, "then": {"minLength": 3}},
    {"type": "array", "contains": {"const": 1}},
    {"$ref": "#/$defs/strange"},
    False,  # type: ignore[list-item]
]


@pytest.mark.parametrize("strange", STRANGE, ids=str)
def test_an_inexpressible_keyword_is_left_out_and_reported_and_the_rest_still_holds(
    strange: Any, caplog: pytest.LogCaptureFixture
) -> None:
    schema = {
        "type": "object",
        "properties": {"level": {"enum": ["low", "high"]}, "strange": strange},
        "required": ["level", "strange"],
        "additionalProperties": False,
        "$defs": {"strange": {"type": "array", "uniqueItems": True}},
    }
    plain = {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}
    offers = [
        ToolSpec(name=f"pick{STRANGE.index(strange)}", description="", schema=schema, flat=schema),
        ToolSpec(name="turn", description="", schema=plain, flat=plain),
    ]
    with caplog.at_level(logging.WARNING):
        grammar = call_constraint(offers, parallel=False)
        assert grammar is not None
        written = grammar.json_schema()
        assert grammar.gbnf()
        assert grammar.gbnf(tokens=400)
        assert grammar.lark()
        assert grammar.walk().next(tokens_left=200) is not None
    assert any(f"pick{STRANGE.index(strange)}" in record.getMessage() for record in caplog.records)
    jsonschema.validate({"name": "turn", "args": {"on": True}}, written)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "turn", "args": {"on": 3}}, written)
