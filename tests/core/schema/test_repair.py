"""Repair: inputs that fit pass untouched, slips are mended and told, and the rest is refused with the way out."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.gateway.schema_strategies import SCHEMAS, VALUES
from tests.support import quoted_names, size
from trysquare import ErrorCode
from trysquare.core.errors import InvalidArguments
from trysquare.core.schema.repair import Repaired
from trysquare.gateway.dispatcher import repaired_inputs
from trysquare.gateway.models import ToolDefinition

_SCHEMA: dict[str, Any] = {
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
_TOOL = ToolDefinition(name="count_issues", description="Count the issues.", input_schema=_SCHEMA)


def _open(**properties: Any) -> ToolDefinition:
    """A tool whose schema says nothing about other names, as most servers write them."""
    return ToolDefinition(name="tool", input_schema={"type": "object", "properties": properties})


def repaired(definition: ToolDefinition, inputs: Any) -> Repaired:
    return repaired_inputs(definition, inputs, lambda corrected: corrected)


def refusal(definition: ToolDefinition, inputs: Any) -> InvalidArguments:
    """The error for these inputs; its `next` holds the corrected inputs themselves."""
    with pytest.raises(InvalidArguments) as caught:
        repaired(definition, inputs)
    return caught.value


def test_inputs_that_fit_are_the_very_same_object() -> None:
    inputs = {"owner": "ann", "count": 3}
    found = repaired(_TOOL, inputs)
    assert found.arguments is inputs
    assert found.notes == ()


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
    given_inputs: dict[str, Any], mended: dict[str, Any] | None
) -> None:
    base = {"owner": "ann"} if {"count", "COUNT"} & given_inputs.keys() else {"owner": "ann", "count": 1}
    before = copy.deepcopy(given_inputs)
    if mended is None:
        refusal(_TOOL, {**base, **given_inputs})
        return
    found = repaired(_TOOL, {**base, **given_inputs})
    assert given_inputs == before
    assert found.arguments == {**base, **mended}
    assert len(found.notes) >= 1


def test_each_mending_is_told() -> None:
    found = repaired(_TOOL, {"ownr": "ann", "count": "3", "labels": "bug", "when": None, "state": "Closed"})
    names = [quoted_names(note) for note in found.notes]
    assert names == [["ownr", "owner"], ["count"], ["labels"], ["when"], ["state"]]
    shown = ("owner", "'3'", "'bug'", "null", "'Closed'")
    assert all(value in note for value, note in zip(shown, found.notes, strict=True))


def test_all_that_is_wrong_is_told_at_once_with_a_call_ready_to_be_filled_in() -> None:
    inputs = {"count": 0, "state": "opne", "labels": [["x"]], "zz": 1, "options": {}}
    with pytest.raises(InvalidArguments) as caught:
        repaired_inputs(_TOOL, inputs, lambda right: {"tool": "mcp_x", "arguments": {"tool_inputs": right}})
    error = caught.value
    assert error.code is ErrorCode.VALIDATION_UNKNOWN_PARAM
    known = list(_SCHEMA["properties"])
    assert quoted_names(error.message) == ["zz", *known, "count", "state", "labels[0]", "options.deep", "owner"]
    assert quoted_names(error.instruction) == ["count", "options.deep", "owner", "next"]
    corrected: dict[str, Any] = {
        "count": "<integer>",
        "state": "open",
        "labels": ["x"],
        "options": {"deep": "<boolean>"},
    }
    assert error.next == {"tool": "mcp_x", "arguments": {"tool_inputs": {**corrected, "owner": "<string>"}}}
    assert error.fields["signature"] == (
        'count_issues(owner, count: int, labels?: str[], state?: "open"|"closed", when?, '
        'options?: {deep: bool, ratio?: num}, confirm?: "DELETE") - Count the issues'
    )


def test_a_correction_without_blanks_is_ready_to_send() -> None:
    error = refusal(_TOOL, {"owner": "ann", "count": 1, "state": "close"})
    assert error.next == {"owner": "ann", "count": 1, "state": "closed"}
    assert quoted_names(error.instruction) == ["next"]
    assert repaired(_TOOL, error.next).arguments is error.next


def test_a_word_of_consent_is_never_put_in_for_the_caller() -> None:
    error = refusal(_TOOL, {"owner": "ann", "count": 1, "confirm": "delete"})
    assert quoted_names(error.instruction) == ["confirm", "next"]
    assert error.next == {"owner": "ann", "count": 1, "confirm": '<"DELETE">'}


def test_a_large_value_is_not_repeated() -> None:
    error = refusal(_TOOL, {"owner": "x" * 10_000, "count": 0})
    assert error.next == {"owner": "<as you sent it>", "count": "<integer>"}
    assert set(quoted_names(error.instruction)) == {"count", "owner", "next"}


def test_a_secret_value_is_not_repeated() -> None:
    tool = _open(password={"type": "string"}, count={"type": "integer"})
    error = refusal(tool, {"password": ["hunter2-and-more"], "count": "many"})
    assert "hunter2" not in error.message + str(error.next)


def test_many_values_of_the_wrong_type_are_repaired() -> None:
    inputs = {"owner": "ann", "count": 1, "labels": list(range(300))}
    assert repaired(_TOOL, inputs).arguments["labels"] == [str(number) for number in range(300)]


def test_a_wrong_key_is_replaced_by_the_closest_allowed_one() -> None:
    tool = _open(sizes={"type": "object", "propertyNames": {"enum": ["width", "height"]}})
    assert refusal(tool, {"sizes": {"widht": 1}}).next == {"sizes": {"width": 1}}


def test_a_missing_input_with_a_default_is_offered_with_it() -> None:
    schema: dict[str, Any] = {"properties": {"limit": {"type": "integer", "default": 10}}, "required": ["limit"]}
    error = refusal(ToolDefinition(name="tool", input_schema=schema), {})
    assert error.next == {"limit": 10}
    assert quoted_names(error.instruction) == ["next"]


@pytest.mark.parametrize("name", ["value", "args", "arguments", "inputs", "kwargs"])
def test_an_input_with_the_name_of_a_wrapper_arrives_untouched(name: str) -> None:
    for schema in ({"type": "object"}, {"type": "string"}, {}):
        inputs = {name: {"a": 1} if schema.get("type") != "string" else "text"}
        assert repaired(_open(**{name: schema}), inputs).arguments is inputs


def test_a_name_that_an_open_schema_does_not_know_arrives_untouched_with_a_note() -> None:
    tool = _open(labels={"type": "array"})
    inputs = {"lables": ["x"], "something": 1}
    found = repaired(tool, inputs)
    assert found.arguments is inputs
    assert [quoted_names(note) for note in found.notes] == [["lables", "labels"]]


@pytest.mark.parametrize("wrapper", ["args", "arguments", "value", "tool_inputs"])
def test_inputs_one_level_too_deep_are_taken_out(wrapper: str) -> None:
    found = repaired(_TOOL, {wrapper: {"owner": "ann", "count": 1}})
    assert found.arguments == {"owner": "ann", "count": 1}
    assert [quoted_names(note) for note in found.notes] == [[wrapper]]


def test_inputs_as_text_are_read_and_nothing_is_an_empty_object() -> None:
    assert repaired(_TOOL, '{"owner": "ann", "count": 1}').arguments == {"owner": "ann", "count": 1}
    assert repaired(_open(), None).arguments == {}


@pytest.mark.parametrize("inputs", [5, [], "text", True])
def test_what_is_no_object_is_refused(inputs: Any) -> None:
    error = refusal(_TOOL, inputs)
    assert (error.code, error.next) == (ErrorCode.VALIDATION_INVALID_REQUEST, None)


def test_a_name_that_could_mean_two_things_is_not_guessed() -> None:
    schema: dict[str, Any] = {
        "properties": {"fromm": {"type": "string"}, "fromo": {"type": "string"}},
        "additionalProperties": False,
    }
    refusal(ToolDefinition(name="tool", input_schema=schema), {"froma": "x"})


def test_an_argument_that_another_one_requires_is_reported_as_missing() -> None:
    schema: dict[str, Any] = {"properties": {"b": {"type": "integer"}}, "dependentRequired": {"a": ["b"]}}
    error = refusal(ToolDefinition(name="tool", input_schema=schema), {"a": None})
    assert error.code is ErrorCode.VALIDATION_MISSING_PARAM
    assert error.next == {"a": None, "b": "<integer>"}


@settings(max_examples=size(150, 1_000))
@given(SCHEMAS, st.dictionaries(st.sampled_from(["a", "b", "c", "A", "args"]), VALUES, max_size=3))
def test_whatever_comes_of_a_repair_holds(schema: Any, inputs: dict[str, Any]) -> None:
    definition = ToolDefinition(name="tool", input_schema=schema)
    validator = Draft202012Validator(schema)
    before = copy.deepcopy(inputs)
    if validator.is_valid(inputs):
        assert repaired(definition, inputs).arguments is inputs
        return
    try:
        found = repaired(definition, inputs)
    except InvalidArguments as error:
        is_ready = quoted_names(error.instruction) == ["next"]
        sendable = [error.next] if is_ready else []
    else:
        assert found.notes or found.arguments == inputs
        sendable = [found.arguments]
    assert inputs == before
    assert all(validator.is_valid(each) for each in sendable)
