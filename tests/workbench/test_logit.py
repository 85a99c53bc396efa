"""logit with a real model of random weights, whose nonsense fits all the same, and with scripted answers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate

from tests.models.conftest import tiny as tiny
from trysquare import ErrorCode, Result, StaticToolset
from trysquare.models import CallRequest, Model, ModelOptions, ModelRequest, ModelResponse, open_model
from trysquare.testing import call
from trysquare.workbench.generation import LogitConfig
from trysquare.workbench.tools.logit import logit_tool

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "legs": {"type": "integer", "minimum": 0, "maximum": 9},
    },
    "required": ["name", "legs"],
    "additionalProperties": False,
}
TOOLS: list[dict[str, Any]] = [
    {"name": "fly", "description": "Flies.", "parameters": SCHEMA},
    {
        "name": "sting",
        "parameters": {
            "type": "object",
            "properties": {"whom": {"enum": ["bear", "wasp"]}},
            "required": ["whom"],
            "additionalProperties": False,
        },
    },
]
BEES = 'root ::= "bee" ("s" | " " number)\nnumber ::= [0-9]{1,3}\n'


class Says:
    """A model that gives one answer, and keeps what it was asked."""

    name = "says"
    context_tokens = 4096

    def __init__(self, answer: ModelResponse) -> None:
        self._answer = answer
        self.requests: list[ModelRequest] = []

    async def answer(self, request: ModelRequest) -> ModelResponse:
        self.requests.append(request)
        return self._answer

    def count(self, text: str) -> int:
        return len(text)


async def generate(config: LogitConfig, action: str, **arguments: Any) -> Result[Any]:
    return await call(StaticToolset([logit_tool(config)]), "logit", {"action": action, **arguments})


def local(file: Path) -> LogitConfig:
    options = ModelOptions(threads=1, context_tokens=2048)
    return LogitConfig(spec=f"local:{file}", open_model=lambda spec: open_model(spec, options))


def saying(answer: ModelResponse) -> tuple[Says, LogitConfig]:
    model = Says(answer)

    @asynccontextmanager
    async def opened(spec: str) -> AsyncGenerator[Model]:
        yield model

    return model, LogitConfig(spec="openai:x@http://127.0.0.1:1", open_model=opened)


NOTHING = LogitConfig(spec=None, open_model=open_model)


async def test_whatever_a_model_writes_fits_the_schema(tiny: Path) -> None:
    result = await generate(local(tiny), "generate_structured", prompt="A bee.", json_schema=SCHEMA, max_tokens=120)
    assert result.success, result
    validate(json.loads(result.fields["output"]), SCHEMA)
    assert (result.fields["data"]["held"], result.fields["data"]["stop"]) == ("grammar", "text")


async def test_whatever_a_model_writes_fits_the_grammar(tiny: Path) -> None:
    result = await generate(local(tiny), "generate", prompt="Say.", grammar=BEES, preset="creative", max_tokens=40)
    text = result.fields["output"]
    assert text == "bees" or (text.startswith("bee ") and text[4:].isdigit() and len(text) <= 7)


async def test_whatever_a_model_writes_is_a_call_of_a_tool(tiny: Path) -> None:
    result = await generate(
        local(tiny), "generate_tool_call", prompt="Fly!", available_tools=TOOLS, preset="creative", max_tokens=120
    )
    assert result.success, result
    made = result.fields["data"]["value"]
    schemas = {tool["name"]: tool["parameters"] for tool in TOOLS}
    validate(made["args"], schemas[made["name"]])


async def test_free_text_may_be_cut_and_says_so(tiny: Path) -> None:
    result = await generate(local(tiny), "generate", prompt="Go on.", preset="creative", max_tokens=5)
    assert result.success
    assert result.fields["data"]["held"] == "free"
    assert [warning for warning in result.warnings if "max_tokens" in warning]


async def test_a_configuration_is_tried_and_counted(tiny: Path) -> None:
    result = await generate(
        local(tiny),
        "test_config",
        test_prompts=["A bee.", "A wasp."],
        iterations=2,
        json_schema=SCHEMA,
        preset="creative",
        max_tokens=120,
    )
    assert result.fields["data"] == {"runs": 4, "fitting": 4}
    assert result.fields["output"].startswith("4 of 4 fit.\n1. fits: ")


async def test_the_vocabulary_of_a_local_model_is_reported(tiny: Path) -> None:
    result = await generate(local(tiny), "analyze_vocabulary", contains="a")
    figures = result.fields["data"]
    assert figures["tokens"] > 256
    assert figures["containing"] >= 1
    assert all("a" in example for example in figures["containing_examples"])


async def test_the_presets_are_listed_without_a_model() -> None:
    result = await generate(NOTHING, "list_presets")
    assert "json_strict" in result.fields["data"]["presets"]


@pytest.mark.parametrize(
    ("action", "arguments"),
    [("generate", {"prompt": "x"}), ("analyze_vocabulary", {}), ("test_config", {"test_prompts": ["x"]})],
)
async def test_without_a_model_the_setting_is_named(action: str, arguments: dict[str, Any]) -> None:
    result = await generate(NOTHING, action, **arguments)
    assert (result.code, "set `model`" in (result.instruction or "")) == (ErrorCode.CONFIG_NOT_FOUND, True)


async def test_a_server_shows_no_vocabulary() -> None:
    _, config = saying(ModelResponse(text=""))
    assert (await generate(config, "analyze_vocabulary")).code == ErrorCode.CAPABILITY_NOT_SUPPORTED


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no json", "not JSON"),
        ('{"name": "a", "legs": 11}', "greater than the maximum"),
        ("{}", "required property"),
    ],
)
async def test_a_model_that_is_not_held_is_judged_by_the_schema(text: str, problem: str) -> None:
    _, config = saying(ModelResponse(text=text))
    result = await generate(config, "generate_structured", prompt="A bee.", json_schema=SCHEMA)
    assert (result.code, result.fields["output"] != "") == (ErrorCode.MODEL_REFUSED, True)
    assert problem in (result.error or "")


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        ((), "it is not one call"),
        ((CallRequest(id="1", name="swim", arguments={}),), "no tool `swim`"),
        ((CallRequest(id="1", name="sting", arguments={"whom": "me"}),), "is not one of"),
    ],
)
async def test_a_call_that_does_not_fit_is_refused(made: tuple[CallRequest, ...], problem: str) -> None:
    _, config = saying(ModelResponse(text="…", calls=made))
    result = await generate(config, "generate_tool_call", prompt="Sting!", available_tools=TOOLS)
    assert problem in (result.error or "")


async def test_the_preset_decides_how_the_model_samples() -> None:
    model, config = saying(ModelResponse(text="x"))
    await generate(config, "generate", prompt="x", preset="creative")
    assert model.requests[0].sampling.temperature == 0.8
    wrong = await generate(config, "generate", prompt="x", preset="creativ")
    assert "`creative`" in (wrong.error or "")


@pytest.mark.parametrize(
    ("action", "arguments", "said"),
    [
        ("generate", {"prompt": "x", "grammar": 'root ::= "a" missing'}, "undefined rule"),
        ("generate", {"prompt": "x", "grammar": 'root ::= root "a"'}, "left-recursive"),
        ("generate", {"prompt": "x", "grammar": "root ::= ("}, "the grammar"),
        ("generate_structured", {"prompt": "x", "json_schema": {"type": "nonsense"}}, "not a valid JSON schema"),
        ("generate_structured", {"prompt": "x", "json_schema": {"not": {"type": "string"}}}, "cannot be expressed"),
        ("generate_tool_call", {"prompt": "x", "available_tools": [TOOLS[0], TOOLS[0]]}, "same name"),
        ("test_config", {"test_prompts": ["x"], "grammar": BEES, "json_schema": SCHEMA}, "not both"),
        ("test_config", {"test_prompts": ["x"] * 20, "iterations": 20}, "more than 50 runs"),
    ],
)
async def test_what_cannot_be_held_to_is_refused_before_a_model_is_asked(
    action: str, arguments: dict[str, Any], said: str
) -> None:
    model, config = saying(ModelResponse(text="x"))
    result = await generate(config, action, **arguments)
    assert not result.success
    assert said in (result.error or "")
    assert model.requests == []


@pytest.mark.parametrize(("preset", "removed"), [("safe_chat", True), ("creative", False)])
async def test_the_preset_with_a_safety_filter_takes_out_what_the_filter_covers(preset: str, removed: bool) -> None:
    _, config = saying(ModelResponse(text="Then run: rm -rf / and be done."))
    result = await generate(config, "generate", prompt="How?", preset=preset)
    assert ("rm -rf" not in result.fields["output"]) == removed
    assert ["safety filter" in warning for warning in result.warnings] == [True] * removed
