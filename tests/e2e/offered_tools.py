"""What the walks serve: a little of everything, written as a user would write it."""

from __future__ import annotations

import asyncio
from typing import Literal
from weakref import WeakKeyDictionary

from pydantic import Field

from trysquare import CallContext, Declarations, Image, Result, ToolArguments, ToolError

tools = Declarations()
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
_cancelled: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Queue[str]] = WeakKeyDictionary()


def cancelled_calls() -> asyncio.Queue[str]:
    """The lingering calls that were cancelled, of this event loop: a queue belongs to one."""
    return _cancelled.setdefault(asyncio.get_running_loop(), asyncio.Queue())


class Greet(ToolArguments):
    """Whom to greet, and how."""

    name: str = Field(description="Who to greet, as they write it themselves")
    tone: Literal["warm", "formal"] = Field("warm", description="How the greeting sounds")


class Add(ToolArguments):
    """Add an entry."""

    action: Literal["add"]
    text: str = Field(description="What the entry says")


class Clear(ToolArguments):
    """Remove all entries."""

    action: Literal["clear"]
    keep: int = Field(0, ge=0, description="How many of the newest to keep")


@tools.declare(category="example", use_when="the user wants to be greeted")
async def greet(args: Greet) -> Result[str]:
    """Greet a person by name."""
    words = {"warm": "Hello", "formal": "Good day"}
    return Result.ok(f"{words[args.tone]}, {args.name}", instruction="Show the greeting as it is.")


@tools.declare(category="example")
def total(amounts: list[float], rounded: bool = False) -> float:
    """Add amounts up.

    Args:
        amounts: What to add up
        rounded: Whether to round to a whole number
    """
    return round(sum(amounts)) if rounded else sum(amounts)


@tools.declare(category="example")
async def journal(args: Add | Clear) -> Result[str]:
    """Add to a journal, or clear it."""
    return Result.ok(f"done: {args.action}")


@tools.declare(category="example")
async def fail(reason: str) -> str:
    """Fail for a reason.

    Args:
        reason: Why to fail
    """
    raise ToolError(f"It failed: {reason}")


@tools.declare(category="example")
async def count(upto: int, context: CallContext) -> int:
    """Count, and tell how far it is.

    Args:
        upto: Where to stop
    """
    for number in range(upto):
        await context.progress(number + 1, upto, f"at {number + 1}")
    return upto


@tools.declare(category="example")
async def confirm(question: str, context: CallContext) -> str:
    """Ask the person.

    Args:
        question: What to ask
    """
    schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
    answer = await context.ask(question, schema)
    return f"{answer.action}: {answer.content.get('sure')}"


@tools.declare(category="example")
def picture() -> Result[None]:
    """Return an image."""
    return Result.ok(content=(Image(data=PIXEL, mime_type="image/png"),))


@tools.declare(category="example")
async def linger(name: str, context: CallContext) -> str:
    """Report progress once, then run until cancelled.

    Args:
        name: What `await_cancelled` returns once the call is cancelled
    """
    try:
        await context.progress(1, 2)
        await asyncio.Event().wait()
    finally:
        cancelled_calls().put_nowait(name)
    return "never"


@tools.declare(category="example")
async def await_cancelled() -> str:
    """Wait until a lingering call was cancelled, and return its name."""
    return await cancelled_calls().get()


@tools.prompt()
def welcome(name: str) -> str:
    """Welcome someone.

    Args:
        name: Who to welcome
    """
    return f"Please welcome {name}."


@tools.resource("walk://{name}", mime_type="text/plain")
def step(name: str) -> str:
    """One step of the walk."""
    return f"step {name}"


@tools.resource("walk://start", mime_type="text/plain")
def start() -> str:
    """Where the walk starts."""
    return "start"
