"""How a function's signature becomes a tool's arguments."""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel, ConfigDict, Field

from tests.support import quoted_names
from trysquare import CallContext, DeclarationError, Declarations, ToolArguments, tool
from trysquare.testing import call, make_context


def test_a_plain_function_has_a_closed_schema_with_its_docstrings_descriptions() -> None:
    def search(query: str, limit: int = 10, kinds: list[Literal["a", "b"]] | None = None) -> list[str]:
        """Search the notes.

        Several lines may follow.

        Args:
            query: What to look for,
                in any language.
            limit (int): How many to return.
            kinds: Which kinds.

        Returns:
            The names.
        """
        return [query] * limit

    made = tool(search)
    assert made.description == "Search the notes.\n\nSeveral lines may follow."
    assert made.input_schema == snapshot(
        {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for, in any language."},
                "limit": {"type": "integer", "description": "How many to return.", "default": 10},
                "kinds": {
                    "type": "array",
                    "description": "Which kinds.",
                    "items": {"type": "string", "enum": ["a", "b"]},
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        }
    )


async def test_annotated_fields_are_checked_and_described() -> None:
    def scale(factor: Annotated[float, Field(gt=0, description="By how much")] = 1.0) -> float:
        return factor

    made = tool(scale)
    assert made.input_schema["properties"]["factor"]["description"] == "By how much"
    assert (await call(made, "scale")).value == 1.0
    refused = await call(made, "scale", factor=-1)
    assert refused.code == "VALIDATION_INVALID_PARAM"
    assert quoted_names(refused.error) == ["factor"]


async def test_parameters_may_have_names_that_pydantic_keeps_to_itself() -> None:
    def odd(schema: str, model_config: int, _hidden: int = 3, copy: bool = False) -> list[Any]:
        return [schema, model_config, _hidden, copy]

    made = tool(odd)
    assert list(made.input_schema["properties"]) == ["schema", "model_config", "_hidden", "copy"]
    result = await call(made, "odd", {"schema": "s", "model_config": 1, "_hidden": 2})
    assert result.value == ["s", 1, 2, False]
    refused = await call(made, "odd", {"schema": "s"})
    assert refused.code == "VALIDATION_MISSING_PARAM"
    assert quoted_names(refused.error) == ["model_config"]


async def test_a_parameter_may_go_by_another_name_on_the_wire() -> None:
    def between(from_: Annotated[int, Field(alias="from")], to: int) -> int:
        return to - from_

    made = tool(between)
    assert list(made.input_schema["properties"]) == ["from", "to"]
    assert (await call(made, "between", {"from": 1, "to": 3})).value == 2


async def test_the_context_is_given_whatever_the_parameter_is_called() -> None:
    def who(around: CallContext, greeting: str = "hi") -> str:
        return f"{greeting} {around.principal.subject}"

    async def maybe(context: CallContext | None = None) -> bool:
        return context is not None

    assert "around" not in tool(who).input_schema["properties"]
    assert (await call(tool(who), "who", context=make_context(principal="ada"))).value == "hi ada"
    assert (await call(tool(maybe), "maybe")).value is True


async def test_methods_partial_functions_and_callable_objects_are_tools() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        def add(self, by: int) -> int:
            self.count += by
            return self.count

        async def __call__(self, times: int) -> int:
            return self.count * times

    counter = Counter()

    def power(base: int, exponent: int) -> int:
        return base**exponent

    tools = Declarations()
    tools.add(tool(counter.add))
    tools.add(tool(counter, name="times"))
    tools.add(tool(functools.partial(power, exponent=2), name="square"))
    assert (await call(tools, "add", by=3)).value == 3
    assert (await call(tools, "times", times=2)).value == 6
    assert (await call(tools, "square", base=5)).value == 25


async def test_what_a_function_returns_becomes_the_value() -> None:
    async def nothing() -> None: ...

    assert (await call(tool(nothing), "nothing")).to_json() == {"success": True}


class Opaque:
    pass


class Unfit(ToolArguments):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    thing: Opaque


def variadic(*names: str) -> None: ...
def keywords(**names: str) -> None: ...
def positional(name: str, /) -> None: ...
def unannotated(name) -> None: ...  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType]
def opaque(thing: Opaque) -> None: ...
def unfit(args: Unfit) -> None: ...
def unknown(thing: Missing) -> None: ...  # pyright: ignore[reportUndefinedVariable]  # noqa: F821
def yielding() -> Any:
    yield 1


async def async_yielding() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (variadic, r"`\*names`"),
        (keywords, r"`\*names`"),
        (positional, "`/`"),
        (unannotated, "`name`.*`unannotated`.*annotation"),
        (opaque, "`opaque`.*JSON schema"),
        (unfit, "`unfit`.*JSON schema"),
        (unknown, "`unknown`.*'Missing'"),
        (yielding, "`yielding`.*yield"),
        (async_yielding, "`async_yielding`.*yield"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused_when_it_is_declared(function: Any, said: str) -> None:
    with pytest.raises(DeclarationError, match=said):
        tool(function)


class Node(BaseModel):
    name: str
    children: list[Node] = []


async def test_models_that_hold_themselves_are_understood() -> None:
    def count(tree: Node) -> int:
        return 1 + len(tree.children)

    made = tool(count)
    assert made.input_schema["properties"]["tree"] == {"$ref": "#/$defs/Node"}
    assert "Node" in made.input_schema["$defs"]
    assert (await call(made, "count", tree={"name": "a", "children": [{"name": "b"}]})).value == 2
