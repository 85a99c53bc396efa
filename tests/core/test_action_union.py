"""A tool with actions: exact inside, flat on the wire."""

from __future__ import annotations

from typing import Literal

import jsonschema
import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel, Field

from trysquare import DeclarationError, ToolArguments, tool
from trysquare.testing import call


class Start(ToolArguments):
    action: Literal["start"] = Field("start", description="What the job does")
    program: str = Field(description="What to run")
    wait: bool = False


class Stop(ToolArguments):
    action: Literal["stop", "kill"]
    job: int
    wait: int = 0


class One(ToolArguments):
    action: Literal["one"] = "one"


class Two(ToolArguments):
    action: Literal["two"] = "two"


class Plain(ToolArguments):
    name: str


class Again(ToolArguments):
    action: Literal["kill"]


async def jobs(args: Start | Stop) -> str:
    return f"{args.action} {args.model_dump(exclude={'action'})}"


def test_the_wire_shows_one_flat_closed_object() -> None:
    assert tool(jobs).input_schema == snapshot(
        {
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["start", "stop", "kill"],
                    "description": "What the job does",
                    "default": "start",
                },
                "program": {"type": "string", "description": "What to run (start)"},
                "wait": {"description": "wait", "anyOf": [{"type": "boolean"}, {"type": "integer"}]},
                "job": {"type": "integer", "description": "(stop, kill)"},
            },
            "additionalProperties": False,
        }
    )


def test_the_exact_schema_holds_each_action_to_its_own_fields() -> None:
    exact = jsonschema.Draft202012Validator(tool(jobs).arguments.exact)
    assert exact.is_valid({"action": "stop", "job": 3})
    assert not exact.is_valid({"action": "stop", "program": "x"})


async def test_a_call_without_an_action_means_the_one_default() -> None:
    made = tool(jobs)
    assert (await call(made, "jobs", program="ls")).value == "start {'program': 'ls', 'wait': False}"
    assert (await call(made, "jobs", action="kill", job=3)).value == "kill {'job': 3, 'wait': 0}"


async def test_where_every_model_has_a_default_the_action_must_be_named() -> None:
    async def pick(args: One | Two) -> str:
        return args.action

    made = tool(pick)
    assert (await call(made, "pick")).code == "VALIDATION_MISSING_PARAM"
    assert (await call(made, "pick", action="two")).value == "two"


def test_a_model_without_an_action_and_two_for_one_action_are_refused() -> None:
    async def unnamed(args: Start | Plain) -> None: ...
    async def doubled(args: Stop | Again) -> None: ...

    with pytest.raises(DeclarationError, match="`Plain`"):
        tool(unnamed)
    with pytest.raises(DeclarationError, match=r"`Again`.*`Stop`.*`kill`"):
        tool(doubled)


class Tree(BaseModel):
    name: str
    inside: list[Tree] = []


class Plant(ToolArguments):
    action: Literal["plant"]
    tree: Tree


class Fell(ToolArguments):
    action: Literal["fell"]
    tree: Tree


async def garden(args: Plant | Fell) -> str:
    return args.tree.name


def test_types_that_hold_themselves_keep_their_definitions() -> None:
    arguments = tool(garden).arguments
    good = {"action": "fell", "tree": {"name": "oak", "inside": [{"name": "elm"}]}}
    bad = {"action": "fell", "tree": {"name": "oak", "inside": [{"title": "elm"}]}}
    for schema in (arguments.wire, arguments.exact):
        validator = jsonschema.Draft202012Validator(schema)
        assert validator.is_valid(good)
        assert not validator.is_valid(bad)


class ReadFile(ToolArguments):
    action: Literal["read"]
    path: str = Field(description="Where", json_schema_extra={"x-trysquare-kind": "existing_file"})


class WriteFile(ToolArguments):
    action: Literal["write"]
    path: str = Field(description="Where", json_schema_extra={"x-trysquare-kind": "workspace_path"})


def test_words_for_our_own_rooms_stand_in_the_exact_schema_and_never_on_the_wire() -> None:
    def union(args: ReadFile | WriteFile) -> None: ...

    def single(args: ReadFile) -> None: ...

    both, one = tool(union), tool(single)
    kinds = [option["properties"]["path"]["x-trysquare-kind"] for option in both.arguments.exact["oneOf"]]
    assert kinds == ["existing_file", "workspace_path"]
    assert both.input_schema["properties"]["path"] == {"type": "string", "description": "Where"}
    assert one.arguments.exact["properties"]["path"]["x-trysquare-kind"] == "existing_file"
    assert one.input_schema["properties"]["path"] == {"type": "string", "description": "Where"}
    assert ReadFile.model_json_schema()["properties"]["path"]["x-trysquare-kind"] == "existing_file"
