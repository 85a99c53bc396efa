"""Repair: inputs that fit pass untouched, slips are mended and told, and the rest is refused with the way out."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from jsonschema import Draft202012Validator

from tests.gateway.schema_strategies import SCHEMAS, VALUES
from tests.support import size
from trysquare.core.errors import ErrorCode
from trysquare.core.types import JsonObject
from trysquare.gateway.checking.repair import checked, refusal
from trysquare.gateway.server import Definition

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "owner": {"type": "string", "description": "Who owns it. A name."},
        "count": {"type": "integer", "minimum": 1},
        "labels": {"type": "array", "items": {"type": "string"}},
        "state": {"enum": ["open", "closed"]},
        "when": {"type": "string"},
        "options": {
            "type": "object",
            "properties": {"deep": {"type": "boolean"}, "ratio": {"type": "number"}},
            "required": ["deep"],
        },
        "confirm": {"type": "string", "const": "DELETE"},
    },
    "required": ["owner", "count"],
    "additionalProperties": False,
}
_TOOL = Definition(name="count_issues", description="Count the issues.", input_schema=_SCHEMA)


def _open(**properties: Any) -> Definition:
    """A tool whose schema says nothing about other names, as most servers write them."""
    return Definition(name="tool", input_schema={"type": "object", "properties": properties})


def test_inputs_that_fit_are_the_very_same_object() -> None:
    inputs = {"owner": "ann", "count": 3}
    found = checked(_TOOL, inputs)
    assert found.inputs is inputs
    assert (found.is_sendable, found.notes, found.problems) == (True, (), ())


@pytest.mark.parametrize(
    ("given_inputs", "mended"),
    [
        ({"count": "3"}, {"count": 3}),
        ({"count": " -3.0 "}, None),
        ({"count": "3.0"}, {"count": 3}),
        ({"labels": "bug"}, {"labels": ["bug"]}),
        ({"labels": '["bug", "old"]'}, {"labels": ["bug", "old"]}),
        ({"labels": [1, "two"]}, {"labels": ["1", "two"]}),
        ({"options": '{"deep": "true", "ratio": "0.5"}'}, {"options": {"deep": True, "ratio": 0.5}}),
        ({"state": "OPEN"}, {"state": "open"}),
        ({"when": None}, {}),
        ({"when": 2026}, {"when": "2026"}),
        ({"COUNT": 3, "labels": "bug"}, {"count": 3, "labels": ["bug"]}),
    ],
)
def test_what_is_only_written_differently_is_mended_and_told(
    given_inputs: JsonObject, mended: JsonObject | None
) -> None:
    base = {"owner": "ann"} if {"count", "COUNT"} & given_inputs.keys() else {"owner": "ann", "count": 1}
    before = copy.deepcopy(given_inputs)
    found = checked(_TOOL, {**base, **given_inputs})
    assert given_inputs == before
    if mended is None:
        assert not found.is_sendable
        return
    assert found.inputs == {**base, **mended}
    assert len(found.notes) >= 1


def test_each_mending_is_told() -> None:
    found = checked(_TOOL, {"ownr": "ann", "count": "3", "labels": "bug", "when": None, "state": "Closed"})
    assert found.notes == snapshot(
        (
            "`count`: the text '3' was read as a number.",
            "`labels`: 'bug' was put into a list.",
            "`when` was null, which is not allowed, and was left out.",
            "`state`: 'Closed' was read as 'closed'.",
            "`ownr` was taken for `owner`.",
        )
    )


def test_all_that_is_wrong_is_told_at_once_with_a_call_ready_to_be_filled_in() -> None:
    found = checked(_TOOL, {"count": 0, "state": "opne", "labels": [["x"]], "zz": 1, "options": {}})
    error = refusal(_TOOL, found, call=lambda corrected: {"tool": "mcp_x", "arguments": {"tool_inputs": corrected}})
    assert error.code is ErrorCode.VALIDATION_UNKNOWN_PARAM
    assert error.message == " ".join(found.problems)
    assert found.problems == snapshot(
        (
            "`count` must be at least 1; got 0.",
            '`state` must be "open"|"closed"; got \'opne\'.',
            "`labels[0]` must be str; got ['x'].",
            "`options.deep` is missing (bool).",
            "`owner` is missing (str, Who owns it).",
            "There is no input `zz`; the inputs are `owner`, `count`, `labels`, `state`, `when`, `options`, `confirm`.",
        )
    )
    assert error.instruction == snapshot(
        "Fill in `options.deep`, `owner`, `count`, then send the call in `next`. Nothing was sent yet."
    )
    assert error.next == snapshot(
        {
            "tool": "mcp_x",
            "arguments": {
                "tool_inputs": {
                    "count": "<int>",
                    "state": "open",
                    "labels": ["x"],
                    "options": {"deep": "<bool>"},
                    "owner": "<str>",
                }
            },
        }
    )
    assert error.fields["signature"] == (
        'count_issues(owner, count: int, labels?: str[], state?: "open"|"closed", when?, '
        'options?: {deep: bool, ratio?: num}, confirm?: "DELETE") - Count the issues'
    )


def test_a_correction_without_blanks_is_ready_to_send() -> None:
    found = checked(_TOOL, {"owner": "ann", "count": 1, "state": "close"})
    assert (found.corrected, found.open_places) == ({"owner": "ann", "count": 1, "state": "closed"}, ())
    error = refusal(_TOOL, found, call=lambda corrected: {"tool": "x", "arguments": corrected})
    assert error.instruction == "Send the call in `next`. Nothing was sent yet."
    assert checked(_TOOL, found.corrected).is_sendable


def test_a_word_of_consent_is_never_put_in_for_the_caller() -> None:
    found = checked(_TOOL, {"owner": "ann", "count": 1, "confirm": "delete"})
    assert not found.is_sendable
    assert found.open_places == ("confirm",)


def test_a_large_value_is_not_repeated() -> None:
    found = checked(_TOOL, {"owner": "x" * 10_000, "count": 0})
    assert found.corrected == {"owner": "<as you sent it>", "count": "<int>"}
    assert found.kept == ("owner",)
    assert "put `owner` back" in str(refusal(_TOOL, found, call=lambda inputs: inputs).instruction)


def test_a_missing_input_with_a_default_is_offered_with_it() -> None:
    schema: JsonObject = {"properties": {"limit": {"type": "integer", "default": 10}}, "required": ["limit"]}
    found = checked(Definition(name="tool", input_schema=schema), {})
    assert (found.corrected, found.open_places) == ({"limit": 10}, ())


@pytest.mark.parametrize("name", ["value", "args", "arguments", "inputs", "kwargs"])
def test_an_input_with_the_name_of_a_wrapper_arrives_untouched(name: str) -> None:
    for schema in ({"type": "object"}, {"type": "string"}, {}):
        inputs = {name: {"a": 1} if schema.get("type") != "string" else "text"}
        assert checked(_open(**{name: schema}), inputs).inputs is inputs


def test_a_name_that_an_open_schema_does_not_know_arrives_untouched_with_a_note() -> None:
    tool = _open(labels={"type": "array"})
    inputs = {"lables": ["x"], "something": 1}
    found = checked(tool, inputs)
    assert found.inputs is inputs
    assert found.notes == snapshot(
        ("`lables` is sent as it is, but the tool names no such input; `labels` may be meant.",)
    )


@pytest.mark.parametrize("wrapper", ["args", "arguments", "value", "tool_inputs"])
def test_inputs_one_level_too_deep_are_taken_out(wrapper: str) -> None:
    found = checked(_TOOL, {wrapper: {"owner": "ann", "count": 1}})
    assert found.inputs == {"owner": "ann", "count": 1}
    assert found.notes == (f"The inputs lay inside of `{wrapper}` and were taken out of it.",)


def test_inputs_as_text_are_read_and_nothing_is_an_empty_object() -> None:
    assert checked(_TOOL, '{"owner": "ann", "count": 1}').inputs == {"owner": "ann", "count": 1}
    assert checked(_open(), None).inputs == {}


@pytest.mark.parametrize("inputs", [5, [], "text", True])
def test_what_is_no_object_is_refused(inputs: Any) -> None:
    found = checked(_TOOL, inputs)
    assert found.code is ErrorCode.VALIDATION_INVALID_REQUEST
    assert refusal(_TOOL, found).next is None


def test_a_name_that_could_mean_two_things_is_not_guessed() -> None:
    schema: JsonObject = {
        "properties": {"fromm": {"type": "string"}, "fromo": {"type": "string"}},
        "additionalProperties": False,
    }
    found = checked(Definition(name="tool", input_schema=schema), {"froma": "x"})
    assert not found.is_sendable


@settings(max_examples=size(150, 1_000))
@given(SCHEMAS, st.dictionaries(st.sampled_from(["a", "b", "c", "A", "args"]), VALUES, max_size=3))
def test_whatever_comes_of_a_repair_holds(schema: Any, inputs: JsonObject) -> None:
    definition = Definition(name="tool", input_schema=schema)
    validator = Draft202012Validator(schema)
    before = copy.deepcopy(inputs)
    found = checked(definition, inputs)
    assert inputs == before
    if found.is_sendable:
        assert validator.is_valid(found.inputs)
        assert found.notes or found.inputs is inputs or found.inputs == inputs
    elif found.corrected is not None and not found.open_places:
        assert validator.is_valid(found.corrected)
    if validator.is_valid(inputs):
        assert found.inputs is inputs
