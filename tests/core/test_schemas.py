"""Schemas: read off plain annotations as pydantic would write them, and tidied without losing a reference."""

from __future__ import annotations

from typing import Annotated, Any, List, Literal, Optional, Union  # noqa: UP035 - both spellings are in use

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model, field_validator

from trysquare import ToolArguments
from trysquare.core.arguments import model_schema
from trysquare.core.schema.build import normalize_schema, plain_object_schema
from trysquare.core.schema.describe import schema_markdown, type_text

choices = st.one_of(
    st.lists(st.sampled_from(["a", "b", "", "é"]), min_size=1, max_size=3, unique=True),
    st.lists(st.integers(-3, 3), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from([1, True, "a", None, False, 0]), min_size=1, max_size=4),
).map(lambda options: Literal[tuple(options)])
leaves = st.sampled_from([str, int, float, bool, type(None), Any, bytes, list, dict, object]) | choices
annotations = st.recursive(
    leaves,
    lambda inner: st.one_of(
        inner.map(lambda part: list[part]),
        inner.map(lambda part: List[part]),  # noqa: UP006
        inner.map(lambda part: dict[str, part]),
        inner.map(lambda part: dict[int, part]),
        inner.map(lambda part: Optional[part]),  # noqa: UP045
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: Union[tuple(parts)]),  # noqa: UP007
    ),
    max_leaves=5,
)
defaults = st.one_of(
    st.just(...), st.none(), st.integers(), st.text(max_size=3), st.lists(st.integers(), max_size=2), st.floats()
)


@given(annotations, defaults, st.sampled_from([None, "", "about"]))
def test_a_plain_schema_is_the_one_that_pydantic_writes(annotation: Any, default: Any, about: str | None) -> None:
    described: Any = Field(default, description=about)
    model = create_model("Model", __config__=ConfigDict(extra="forbid"), field=(annotation, described))
    plain = plain_object_schema(model.model_fields)
    if plain is not None:
        assert normalize_schema(plain) == normalize_schema(model.model_json_schema())


bounds = st.dictionaries(
    st.sampled_from(["ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length"]), st.integers(1, 9), max_size=3
)
bounded = st.sampled_from(
    [str, int, float, list[int], dict[str, int], Literal[1, 2], bool, int | None, list[str] | str]
)


@given(bounded, bounds)
def test_a_plain_schema_with_bounds_is_the_one_that_pydantic_writes(annotation: Any, limits: dict[str, int]) -> None:
    described: Any = Field(..., description="about", **limits)  # pyright: ignore[reportCallIssue, reportArgumentType]
    try:
        model = create_model("Model", __config__=ConfigDict(extra="forbid"), field=(annotation, described))
    except (TypeError, ValueError):
        return
    plain = plain_object_schema(model.model_fields)
    if plain is not None:
        assert normalize_schema(plain) == normalize_schema(model.model_json_schema())


@pytest.mark.parametrize(
    ("annotation", "limits"),
    [(int, {"ge": 1, "le": 9}), (float, {"gt": 0}), (str, {"min_length": 1}), (list[str], {"max_length": 5})],
)
def test_the_common_bounds_are_plain(annotation: Any, limits: dict[str, Any]) -> None:
    model = create_model("Model", field=(annotation, Field(..., **limits)))
    assert plain_object_schema(model.model_fields) is not None


@pytest.mark.parametrize("annotation", [str, int | None, list[str], dict[str, int], Literal["a", "b"], list[Any]])
def test_the_common_annotations_are_plain(annotation: Any) -> None:
    model = create_model("Model", field=(annotation, ...))
    assert plain_object_schema(model.model_fields) is not None


def test_models_that_change_their_own_schema_are_left_to_pydantic() -> None:
    class Renamed(ToolArguments):
        model_config = ConfigDict(alias_generator=str.upper)
        name: str

    class Wider(ToolArguments):
        number: int

        @field_validator("number", mode="before", json_schema_input_type=str)
        @classmethod
        def read(cls, value: Any) -> Any:
            return value

    class Inherited(Renamed):
        other: str

    assert list(model_schema(Renamed)["properties"]) == ["NAME"]
    assert list(model_schema(Inherited)["properties"]) == ["NAME", "OTHER"]
    assert model_schema(Wider)["properties"]["number"] == {"type": "string"}


def test_the_docstring_of_a_model_is_not_part_of_its_schema() -> None:
    class Plain(ToolArguments):
        """For readers of the code."""

        name: str

    class Special(ToolArguments):
        """For readers of the code."""

        name: Annotated[str, StringConstraints(min_length=1)]

    assert "description" not in model_schema(Plain)
    assert "description" not in model_schema(Special)
    assert model_schema(Special)["properties"]["name"] == {"type": "string", "minLength": 1}


def test_fields_may_be_called_like_the_words_of_a_schema() -> None:
    fields: Any = {"title": (str, ...), "default": (str, "x"), "items": (list[str], []), "properties": (str, "y")}
    model = create_model("Model", **fields)
    model_fields = normalize_schema(model.model_json_schema())["properties"]
    assert list(model_fields) == ["title", "default", "items", "properties"]
    assert model_fields["title"] == {"type": "string"}


def test_a_property_called_ref_is_a_property() -> None:
    schema = {"type": "object", "properties": {"$ref": {"type": "string", "title": "Ref"}}}
    assert normalize_schema(schema) == {"type": "object", "properties": {"$ref": {"type": "string"}}}


class Leaf(BaseModel):
    name: str


class Branch(BaseModel):
    left: Leaf
    right: Leaf | None = None
    more: dict[Annotated[str, StringConstraints(pattern="^x")], Leaf] = {}
    pair: tuple[Leaf, int] | None = None


class Tree(BaseModel):
    value: Leaf
    children: list[Tree] = []


def dangling(schema: Any, whole: dict[str, Any]) -> list[str]:
    if isinstance(schema, list):
        return [name for part in schema for name in dangling(part, whole)]
    if not isinstance(schema, dict):
        return []
    own = [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
    missing = [name for name in own if name.removeprefix("#/$defs/") not in whole.get("$defs", {})]
    return missing + [name for part in schema.values() for name in dangling(part, whole)]


def test_definitions_are_written_where_they_are_used() -> None:
    schema = normalize_schema(Branch.model_json_schema())
    assert "$defs" not in schema
    assert "$ref" not in str(schema)
    leaf = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    assert schema["properties"]["left"] == leaf
    assert schema["properties"]["right"] == leaf
    assert schema["properties"]["more"]["patternProperties"] == {"^x": leaf}


def test_a_type_that_holds_itself_keeps_its_definition_alone() -> None:
    schema = normalize_schema(create_model("Model", tree=(Tree, ...)).model_json_schema())
    assert list(schema["$defs"]) == ["Tree"]
    assert schema["$defs"]["Tree"]["properties"]["value"]["type"] == "object"
    assert jsonschema.Draft202012Validator(schema).is_valid({"tree": {"value": {"name": "a"}, "children": []}})


def test_a_schema_that_would_explode_keeps_its_references() -> None:
    definitions: dict[str, Any] = {"Level0": {"type": "string"}}
    for level in range(1, 30):
        below = {"$ref": f"#/$defs/Level{level - 1}"}
        definitions[f"Level{level}"] = {"type": "object", "properties": {"a": below, "b": below}}
    whole = normalize_schema(
        {"type": "object", "properties": {"top": {"$ref": "#/$defs/Level29"}}, "$defs": definitions}
    )
    assert len(str(whole)) < 2_000_000
    assert dangling(whole, whole) == []


def test_a_reference_to_nowhere_stays_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/Gone"}, "b": {"$ref": "other.json"}}}
    assert normalize_schema(schema) == schema


def test_an_optional_field_is_told_without_null() -> None:
    model = create_model("Model", field=(int | None, None), either=(int | str | None, None), must=(int | None, ...))
    fields = normalize_schema(model.model_json_schema())["properties"]
    assert fields["field"] == {"type": "integer"}
    assert fields["either"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert fields["must"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}


def test_a_default_that_json_cannot_tell_is_left_out() -> None:
    model = create_model("Model", field=(float, float("inf")))
    assert normalize_schema(model.model_json_schema())["properties"]["field"] == {"type": "number"}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"const": "x"}, '"x"'),
        ({"enum": [1, True, "a"]}, '1 | true | "a"'),
        ({"type": "array", "items": {"type": "integer"}}, "list of integer"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string | null"),
        ({"$ref": "#/$defs/Tree"}, "Tree"),
        ({}, "any"),
    ],
)
def test_a_type_is_told_in_a_few_words(schema: dict[str, Any], text: str) -> None:
    assert type_text(schema) == text


def test_markdown_of_an_empty_schema() -> None:
    assert schema_markdown({"type": "object"}) == "## Arguments\n\nNone."
