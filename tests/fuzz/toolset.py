"""Tools of every kind of schema and of every kind of behaviour, for bad inputs to be thrown at."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import enum
import uuid
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from trysquare import CallContext, Declarations, Result, ToolArguments, ToolError, Toolset

tools = Declarations()


class Color(enum.Enum):
    """A few colors."""

    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    """A place in the plane."""

    x: float
    y: float = 0.0


class Branch(BaseModel):
    """A tree without end."""

    name: str
    children: list[Branch] = []


class Write(ToolArguments):
    """Write a note."""

    action: Literal["write"]
    text: str = Field(max_length=1000, description="What to write")


class Remove(ToolArguments):
    """Remove notes."""

    action: Literal["remove"]
    ids: list[int] = Field(description="Which notes to remove")
    force: bool = Field(False, description="Whether to remove without asking")


class Search(ToolArguments):
    """What to look for."""

    query: str = Field(min_length=1, max_length=50, pattern=r"^[a-z ]+$", description="Words in small letters")
    limit: Annotated[int, Field(ge=1, le=100, description="How many at most")] = 10
    colors: list[Color] = Field(default_factory=list[Color], max_length=3, description="Only these colors")
    since: datetime.date | None = Field(None, description="Only newer ones")


@tools.declare()
async def echo(text: str) -> str:
    """Give a text back."""
    return text


@tools.declare()
def add(left: int, right: int = 1) -> int:
    """Add two integers."""
    return left + right


@tools.declare()
async def search(args: Search) -> Result[list[str]]:
    """Search for something."""
    return Result.ok([args.query] * args.limit)


@tools.declare()
async def note(args: Write | Remove) -> Result[str]:
    """Write or remove notes."""
    return Result.ok(args.action)


@tools.declare()
async def grow(tree: Branch, depth: int | None = None) -> str:
    """Name the top of a tree."""
    return tree.name


@tools.declare()
async def measure(points: list[Point], unit: Literal["mm", "cm"] = "mm", factor: float = 1.0) -> int:
    """Count some places."""
    return len(points)


@tools.declare()
async def mixed(
    either: int | str | list[bool],
    when: datetime.datetime,
    price: decimal.Decimal,
    key: uuid.UUID,
    folder: Path = Path(),
    pairs: dict[str, int] | None = None,
) -> str:
    """Take one of everything."""
    return f"{either} {when} {price} {key} {folder} {pairs}"


@tools.declare()
async def anything(value: Any, more: dict[str, Any] | None = None) -> Any:
    """Give back whatever came."""
    return value


@tools.declare()
def nothing() -> None:
    """Take nothing and give nothing."""


@tools.declare()
async def ask(context: CallContext) -> str:
    """Ask the person."""
    answer = await context.ask("Sure?", {"type": "object", "properties": {"sure": {"type": "boolean"}}})
    return answer.action


@tools.declare(timeout=0.01)
async def linger(context: CallContext) -> str:
    """Take longer than allowed."""
    await context.progress(0.5, 1.0, "half way")
    await asyncio.Event().wait()
    return "never"


@tools.declare()
async def refuse(text: str = "") -> str:
    """Fail in a foreseen way, with whatever text."""
    raise ToolError(text or "no", fields={"given": text})


@tools.declare()
def crash(kind: Literal["value", "recursion", "text"] = "value", text: str = "") -> str:
    """Crash."""
    if kind == "recursion":
        return crash(kind, text)
    if kind == "text":
        raise KeyError(text)
    raise ZeroDivisionError("a crash on purpose")


_STRANGE: dict[str, Any] = {
    "nan": float("nan"),
    "infinity": {"deep": [float("inf"), -float("inf")]},
    "surrogate": "\ud800",
    "surrogate_key": {"\udfff": 1},
    "bytes": b"\xff\xfe",
    "set": {3},
    "huge": 10**5000,
    "object": object(),
    "number_keys": {1: 2, None: 3},
}


@tools.declare()
async def strange(kind: str) -> Any:
    """Return a value that has no obvious JSON form."""
    if kind == "cycle":
        cycle: list[Any] = []
        cycle.append(cycle)
        return cycle
    return _STRANGE.get(kind, kind)


STRANGE_KINDS = ("cycle", *_STRANGE)


@tools.prompt()
def greeting(name: str, tone: str = "warm") -> str:
    """A greeting."""
    return f"Greet {name} in a {tone} tone."


@tools.resource("note://{name}")
def named_note(name: str) -> str:
    """A note."""
    return name


@tools.resource("note://fixed")
def fixed_note() -> str:
    """A note that is always there."""
    return "fixed"


def fuzz_toolset() -> Toolset:
    """All of them."""
    return tools.toolset()
