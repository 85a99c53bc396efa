"""The sample server: one tool of every kind, and what a client must make of each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from pydantic import BaseModel, Field

from trysquare import Audio, CallContext, Consent, File, Image, ResourceLink, ToolError, Tools

tools = Tools("sample", instructions="One tool of every kind.")
PNG = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\xdac\xfc\xcf\xc0P\x0f\0"
    b"\4\x85\1\x80\x84\xa9\x8c!\0\0\0\0IEND\xaeB`\x82"
)
WAV = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\0\0\0\0"
LINES = [f"line {number} of a long answer" for number in range(40)]


class Place(BaseModel):
    """A place, as a pydantic model."""

    name: str
    height: float | None = None


@dataclass
class Stock:
    """A stock, as a dataclass."""

    item: str
    count: int


class Weather(TypedDict):
    """Weather, as a TypedDict."""

    sky: str
    degrees: float


class Table(BaseModel):
    """What the user is asked for."""

    guests: int = Field(ge=1, le=12)
    where: Literal["inside", "terrace"] = "inside"


@tools.tool
def plain_text(name: str, tone: Literal["warm", "formal"] = "warm", note: str | None = None) -> str:
    """Greet somebody in plain text."""
    return f"{'Hello' if tone == 'warm' else 'Good day'}, {name}"


@tools.tool
async def awaited_number(amounts: list[float]) -> float:
    """Add amounts up, asynchronously."""
    return sum(amounts)


@tools.tool
def generated_list(upto: int) -> Iterator[int]:
    """Count, as a generator."""
    yield from range(1, upto + 1)


@tools.tool
async def generated_texts(words: list[str]) -> AsyncIterator[str]:
    """Shout words, as an async generator."""
    for word in words:
        yield word.upper()


@tools.tool
def model_result(place: Place) -> Place:
    """Return a pydantic model that was given."""
    return place


@tools.tool
def dataclass_result(item: str) -> Stock:
    """Return a dataclass."""
    return Stock(item=item, count=3)


@tools.tool
def typed_dict_result() -> Weather:
    """Return a TypedDict."""
    return {"sky": "clear", "degrees": 21.5}


@tools.tool
def models_result() -> list[Place]:
    """Return a list of models."""
    return [Place(name="Vienna"), Place(name="Graz", height=353)]


@tools.tool
def yes_or_no() -> bool:
    """Return a boolean."""
    return True


@tools.tool
def untyped_result() -> dict[str, Any]:
    """Return a mapping."""
    return {"a": [1, None, "x"]}


@tools.tool
def nothing() -> None:
    """Return nothing."""


@tools.tool
def image_result() -> Image:
    """Return an image."""
    return Image(data=PNG)


@tools.tool
def audio_result() -> Audio:
    """Return a sound."""
    return Audio(data=WAV)


@tools.tool
def file_result() -> File:
    """Return a file."""
    return File(data="month,sales\n1,12\n", name="sales.csv")


@tools.tool
def link_result() -> ResourceLink:
    """Return a link to a resource."""
    return ResourceLink(uri="sample://start", name="start")


@tools.tool
def mixed_result() -> list[str | Image | ResourceLink]:
    """Return text, an image and a link."""
    return ["Sales by month.", Image(data=PNG), ResourceLink(uri="sample://start", name="start")]


@tools.tool(result_limit=400)
def long_result() -> list[str]:
    """Return more than one page."""
    return LINES


@tools.tool
async def asked(context: CallContext) -> str:
    """Ask the user for a table."""
    table = await context.ask("Which table?", Table)
    return f"{table.guests} guests, {table.where}"


@tools.tool
async def sampled(context: CallContext) -> str:
    """Have the client's model write something."""
    return await context.sample("Write a greeting.")


@tools.tool
async def reported(upto: int, context: CallContext) -> int:
    """Report progress."""
    for number in range(upto):
        await context.progress(number + 1, upto, f"at {number + 1}")
    return upto


@tools.tool(destructive=True, consent=Consent(question="Erase {name}?"))
def erased(name: str) -> str:
    """Erase something, after a human has agreed."""
    return f"{name} is erased"


@tools.tool
def failing(reason: str) -> str:
    """Fail for a reason."""
    raise ToolError(f"It failed: {reason}", instruction="Tell the user.")


@tools.tool
def crashing() -> int:
    """Crash."""
    return 1 // 0


@tools.resource("sample://start", mime_type="text/plain")
def start() -> str:
    """Where the sample starts."""
    return "start"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of tool: how to call it, and what comes back."""

    tool: str
    arguments: dict[str, Any]
    data: dict[str, Any] | None = None
    """Its structured content; None where there is none."""
    text: str | None = None
    """What its text contains."""
    blocks: tuple[str, ...] = ("text",)
    fails: bool = False
    needs: str | None = None
    """What a client must be able to do."""


def _value(tool: str, value: Any, /, *, needs: str | None = None, **arguments: Any) -> Kind:
    """A tool whose value is no object, which is sent as `{"result": value}`."""
    return Kind(tool=tool, arguments=arguments, data={"result": value}, needs=needs)


KINDS = (
    _value("plain_text", "Hello, Ada", name="Ada"),
    _value("awaited_number", 3.5, amounts=[1, 2.5]),
    _value("generated_list", [1, 2, 3], upto=3),
    _value("generated_texts", ["A", "B"], words=["a", "b"]),
    Kind(tool="model_result", arguments={"place": {"name": "Vienna"}}, data={"name": "Vienna", "height": None}),
    Kind(tool="dataclass_result", arguments={"item": "apple"}, data={"item": "apple", "count": 3}),
    Kind(tool="typed_dict_result", arguments={}, data={"sky": "clear", "degrees": 21.5}),
    _value("models_result", [{"name": "Vienna", "height": None}, {"name": "Graz", "height": 353}]),
    _value("yes_or_no", True),
    Kind(tool="untyped_result", arguments={}, data={"a": [1, None, "x"]}),
    Kind(tool="nothing", arguments={}),
    Kind(tool="image_result", arguments={}, blocks=("image",)),
    Kind(tool="audio_result", arguments={}, blocks=("audio",), needs="audio"),
    Kind(tool="file_result", arguments={}, blocks=("resource",)),
    Kind(tool="link_result", arguments={}, blocks=("resource_link",)),
    Kind(tool="mixed_result", arguments={}, text="Sales by month.", blocks=("text", "image", "resource_link")),
    Kind(tool="long_result", arguments={}, text=LINES[0], blocks=("text", "resource_link")),
    _value("asked", "4 guests, terrace", needs="elicitation"),
    _value("sampled", "a greeting", needs="sampling"),
    _value("reported", 3, upto=3),
    _value("erased", "apple is erased", name="apple", needs="elicitation"),
    Kind(tool="failing", arguments={"reason": "rain"}, text="It failed: rain", fails=True),
    Kind(tool="crashing", arguments={}, text="incident", fails=True),
)
"""A call of every tool of the sample."""
