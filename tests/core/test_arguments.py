"""ToolArguments: closed models, their Markdown, and the seed's way of declaring."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import date
from typing import Any, Literal
from uuid import UUID

import pytest
from inline_snapshot import snapshot
from pydantic import Field, ValidationError

from trysquare import DeclarationError, ToolArguments, tool
from trysquare.testing import call


class Greet(ToolArguments):
    """How to greet."""

    name: str = Field(description="Who to greet")
    tone: Literal["warm", "formal"] = Field(default="warm", description="How it sounds")
    times: int | None = None
    tags: list[str] = Field(default_factory=list)


@pytest.fixture(autouse=True)
def no_declarations_left() -> Iterator[None]:
    ToolArguments.get_declared_tools()
    yield
    ToolArguments.get_declared_tools()


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValidationError, match="extra_forbidden"):
        Greet.model_validate({"name": "Ada", "nam": "Ada"})


def test_an_assignment_is_checked() -> None:
    greet = Greet(name="Ada")
    with pytest.raises(ValidationError):
        greet.tone = "loud"  # pyright: ignore[reportAttributeAccessIssue]


def test_markdown_lists_names_types_need_and_descriptions() -> None:
    assert Greet.to_schema_markdown() == snapshot("""\
## Arguments

- `name` (string, required): Who to greet
- `tone` ("warm" | "formal", optional, default 'warm'): How it sounds
- `times` (integer, optional)
- `tags` (list of string, optional)\
""")


def test_a_model_without_fields_says_that_there_are_none() -> None:
    class Nothing(ToolArguments):
        pass

    assert Nothing.to_schema_markdown() == "## Arguments\n\nNone."


def test_the_tool_description_is_the_docstring_and_the_arguments() -> None:
    def greet(args: Greet) -> None:
        """Greet a person.

        Twice, if need be.
        """

    description = Greet.build_tool_description(greet)
    assert description == f"Greet a person.\n\nTwice, if need be.\n\n{Greet.to_schema_markdown()}"


def test_a_declared_function_stays_as_it_is_and_is_collected_once() -> None:
    def hello(args: Greet) -> str:
        return args.name

    assert ToolArguments.declare(hello) is hello
    assert ToolArguments.get_declared_tools() == {"hello": hello}
    assert ToolArguments.get_declared_tools() == {}


def test_subclasses_share_one_collection() -> None:
    @Greet.declare
    def hello(args: Greet) -> str:
        return args.name

    assert ToolArguments.get_declared_tools() == {"hello": hello}


def test_two_functions_of_one_name_are_refused() -> None:
    def hello() -> None: ...

    ToolArguments.declare(hello)
    with pytest.raises(DeclarationError, match="`hello`"):
        ToolArguments.declare(hello)


def test_nothing_is_lost_or_collected_twice_under_threads() -> None:
    collected: list[str] = []
    start = threading.Barrier(8)

    def declare(number: int) -> None:
        start.wait()
        for step in range(50):

            def made() -> None: ...

            made.__name__ = f"tool_{number}_{step}"
            ToolArguments.declare(made)
            collected.extend(ToolArguments.get_declared_tools())

    threads = [threading.Thread(target=declare, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    collected.extend(ToolArguments.get_declared_tools())
    assert sorted(collected) == sorted(f"tool_{number}_{step}" for number in range(8) for step in range(50))


async def test_nothing_is_lost_or_collected_twice_under_tasks() -> None:
    async def declare(number: int) -> dict[str, object]:
        def made() -> None: ...

        made.__name__ = f"task_tool_{number}"
        await asyncio.sleep(0)
        ToolArguments.declare(made)
        await asyncio.sleep(0)
        return dict(ToolArguments.get_declared_tools())

    collected = await asyncio.gather(*(declare(number) for number in range(20)))
    names = [name for part in collected for name in part]
    assert sorted(names) == sorted(f"task_tool_{number}" for number in range(20))


def book(
    name: str,
    seats: int = 2,
    price: float | None = None,
    is_inside: bool = True,
    day: date | None = None,
    tone: Literal["warm", "formal"] = "warm",
    ticket: UUID | None = None,
    tags: list[str] | None = None,
    greet: Greet | None = None,
    extra: dict[str, int] | None = None,
    note: str | None = None,
) -> dict[str, Any]:
    """Book a table."""
    return {key: part for key, part in locals().items() if key != "name"}


@pytest.mark.parametrize("blank", [None, "", " ", "null", "None", "undefined"])
async def test_a_blank_for_what_is_optional_is_taken_as_not_given(blank: Any) -> None:
    made = tool(book)
    unset = (await call(made, "book", {"name": "Ada"})).value
    optional = {key: blank for key in made.input_schema["properties"] if key not in ("name", "note")}
    result = await call(made, "book", {"name": "Ada", **optional})
    assert (result.error, result.value) == (None, unset)
    assert (await call(made, "book", {"name": blank, **optional})).success is (blank is not None)


@pytest.mark.parametrize("blank", ["", "null", "None"])
async def test_a_text_may_be_any_text(blank: str) -> None:
    result = await call(tool(book), "book", {"name": "Ada", "note": blank})
    assert (result.value or {})["note"] == blank
