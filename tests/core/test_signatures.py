"""How a function's signature becomes a tool's arguments."""

from __future__ import annotations

import functools
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel, ConfigDict, Field

from tests.support import quoted_names
from trysquare import CallContext, DeclarationError, Declarations, ToolArguments, tool
from trysquare.testing import ScriptedCaller, call, make_context

if TYPE_CHECKING:
    from decimal import Decimal


class Shape(TypedDict):
    width: int
    height: NotRequired[int]


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


class Held:
    def method(self, name: str) -> None: ...

    @classmethod
    def of_class(cls, name: str) -> None: ...


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (variadic, r"`\*names`"),
        (keywords, r"`\*\*names`.*dict\[str, str\]"),
        (positional, "`/`"),
        (Held.method, r"`method`.*`tools.tool\(Held\(\).method\)`"),
        (vars(Held)["of_class"], r"`of_class`.*`tools.tool\(Class.of_class\)`"),
        (Held, "`Held` is a class"),
        (lambda: None, "lambda.*name="),
        (opaque, "`thing` of `opaque`.*`Opaque`.*JSON schema.*Depends"),
        (unfit, "`unfit`.*JSON schema"),
        (unknown, "`unknown`.*'Missing'"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused_with_its_own_line(function: Any, said: str) -> None:
    with pytest.raises(DeclarationError, match=said) as raised:
        tool(function)
    assert raised.value.location is not None
    assert raised.value.location.startswith(f"{__file__}:")
    assert str(raised.value).endswith(f"({raised.value.location})")


async def test_a_parameter_without_a_type_takes_any_json() -> None:
    made = tool(unannotated)
    assert made.input_schema["properties"] == {"name": {}}
    assert (await call(made, "unannotated", name=[1, {"a": None}])).success
    assert (await call(tool(lambda a, b=2: [a, b], name="pair"), "pair", a="x")).value == ["x", 2]


def numpy_style(first: int, second: str = "", third: str = "") -> None:
    """Do it in NumPy's style.

    Parameters
    ----------
    first : int
        The first,
        continued.
    second, third : str, optional
        Either of them.

    Returns
    -------
    None
        Nothing.
    """


def sphinx_style(first: int, second: str = "", third: str = "") -> None:
    """Do it in Sphinx's style.

    :param first: The first,
        continued.
    :param str second: Either of them.
    :param third: Either of them.
    :type third: str
    :raises ValueError: Never.
    :returns: Nothing.
    """


def google_style(first: int, second: str = "", third: str = "") -> None:
    """Do it in Google's style.

    Args:
        first (int): The first,
            continued.
        second: Either of them.
        third (str, optional): Either of them.

    Raises:
        ValueError: Never.
    """


def annotated_style(
    first: Annotated[int, "The first, continued."],
    second: Annotated[str, Field(description="Either of them.")] = "",
    third: str = Field(default="", description="Either of them."),
) -> None:
    """Do it in annotations' style."""


@pytest.mark.parametrize("function", [numpy_style, sphinx_style, google_style, annotated_style])
def test_arguments_are_described_in_every_common_style(function: Any) -> None:
    made = tool(function)
    assert re.fullmatch(r"Do it in \w+'s? style\.", made.description)
    properties = made.input_schema["properties"]
    texts = ["The first, continued.", "Either of them.", "Either of them."]
    assert [part["description"] for part in properties.values()] == texts
    assert made.input_schema["required"] == ["first"]


def test_prose_after_the_sections_of_a_docstring_is_kept() -> None:
    def styled(word: str) -> None:
        """Say it.

        Note: this stays.

        Args:
            word: A word: any one.

                In a second paragraph.

        Use it seldom.
        """

    made = tool(styled)
    assert made.description == "Say it.\n\nNote: this stays.\n\nUse it seldom."
    assert made.input_schema["properties"]["word"]["description"] == "A word: any one. In a second paragraph."


def test_annotations_find_local_classes_and_names_for_type_checkers() -> None:
    @dataclass
    class Local:
        size: int

    def take(local: Local, amount: Decimal, shape: Shape) -> int:
        return local.size

    schema = tool(take).input_schema["properties"]
    assert schema["local"]["properties"] == {"size": {"type": "integer"}}
    assert schema["amount"]["anyOf"][0] == {"type": "number"}
    assert (schema["shape"]["required"], schema["shape"]["additionalProperties"]) == (["width"], False)


def test_a_default_in_the_annotation_makes_an_argument_optional() -> None:
    def collect(
        names: Annotated[list[int], Field(default_factory=list)], limit: Annotated[int, Field(default=3)]
    ) -> None: ...

    made = tool(collect)
    assert "required" not in made.input_schema
    assert made.input_schema["properties"]["limit"]["default"] == 3


async def test_a_partial_function_keeps_what_it_fills_in_out_of_the_schema() -> None:
    def send(text: str, token: str, times: int = 1) -> str:
        """Send a text."""
        return f"{text} {token} {times}"

    made = tool(functools.partial(send, token="secret"))
    assert (made.name, made.description) == ("send", "Send a text.")
    assert list(made.input_schema["properties"]) == ["text", "times"]
    assert (await call(made, "send", text="hi")).value == "hi secret 1"


def test_a_callable_object_is_described_by_its_call() -> None:
    class Adder:
        """An object that adds."""

        def __call__(self, by: int) -> int:
            """Add a number.

            Args:
                by: How much.
            """
            return by

    class Plain:
        """An object without words of its own."""

        def __call__(self, by: int) -> int:
            return by

    made = tool(Adder(), name="add")
    assert (made.description, made.input_schema["properties"]["by"]["description"]) == ("Add a number.", "How much.")
    assert tool(Plain(), name="plain").description == "An object without words of its own."


def counted(to: int) -> Iterator[dict[str, int]]:
    for number in range(to):
        yield {"n": number}


async def counted_later(to: int) -> AsyncIterator[dict[str, int]]:
    for number in range(to):
        yield {"n": number}


@pytest.mark.parametrize("function", [counted, counted_later])
async def test_a_generator_reports_what_it_yields_and_arrives_whole(function: Any) -> None:
    caller = ScriptedCaller()
    result = await call(tool(function, name="count"), "count", context=make_context(caller=caller), to=3)
    assert result.value == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert [(each.done, each.message) for each in caller.progress_reports] == [
        (1, '{"n":0}'), (2, '{"n":1}'), (3, '{"n":2}')
    ]  # fmt: skip


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


async def test_a_choice_that_json_cannot_hold_leaves_the_others() -> None:
    def push(value: bytes | bytearray | memoryview | str | int) -> str:
        return repr(value)

    made = tool(push)
    assert {"type": "integer"} in made.input_schema["properties"]["value"]["anyOf"]
    assert (await call(made, "push", value=3)).value == "3"
    with pytest.raises(DeclarationError, match="no JSON schema"):
        tool(_buffered)


def _buffered(value: bytearray) -> str:
    return str(value)
