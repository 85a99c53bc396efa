"""A toolset with one of everything, which the tests serve in memory, over stdio and over HTTP."""

from __future__ import annotations

import asyncio
import os
import subprocess
from typing import Any

from trysquare import (
    Audio,
    CallContext,
    Declarations,
    DynamicToolset,
    Image,
    ResourceContents,
    ResourceLink,
    Result,
    ToolError,
    tool,
)

declared = Declarations()
WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}


@declared.declare(title="Add numbers", read_only=True, idempotent=True, version="1.2", category="arithmetic")
async def add(a: int, b: int) -> Result[int]:
    """Add two numbers.

    Args:
        a: The first number
        b: The second number
    """
    return Result.ok(a + b, instruction="Tell the sum.")


@declared.declare(destructive=True, deprecated="Use `add`.", toolset="bots")
async def refuse(reason: str) -> Result[str]:
    """Fail in a way that was foreseen."""
    raise ToolError(f"No: {reason}", instruction="Ask for something else.")


@declared.declare()
async def crash() -> Result[str]:
    """Fail in a way that nobody foresaw."""
    raise RuntimeError("the secret of the house")


@declared.declare()
async def echo(value: Any) -> Result[Any]:
    """Give back what was sent."""
    return Result.ok(value)


@declared.declare()
async def steps(context: CallContext) -> Result[str]:
    """Tell progress in three steps."""
    for step in (1, 2, 3):
        await context.progress(step, 3, f"step {step}")
    return Result.ok("done")


@declared.declare()
async def chatter(context: CallContext) -> Result[str]:
    """Log one line of each of three levels."""
    for level in ("debug", "info", "error"):
        await context.log(f"a line of {level}", level)
    return Result.ok("said")


@declared.declare()
async def converse(topic: str, context: CallContext) -> Result[str]:
    """Ask the person two things, one after the other."""
    first = await context.ask(f"First word about {topic}?", WORD, key="first")
    if first.action != "accept":
        return Result.failure(f"the person chose to {first.action}")
    second = await context.ask(f"A word after {first.content['word']}?", WORD, key="second")
    return Result.ok(f"{first.content['word']} {second.content.get('word')}")


@declared.declare()
async def whoami(context: CallContext) -> Result[dict[str, Any]]:
    """Tell who calls."""
    return Result.ok({"subject": context.principal.subject, "client": context.client, "asks": context.can_ask()})


@declared.declare()
async def pieces() -> Result[None]:
    """Answer with pieces that are not text."""
    return Result.ok(
        content=(
            Image(data="aGk=", mime_type="image/png"),
            Audio(data="aGk=", mime_type="audio/wav"),
            ResourceContents(uri="test://a", text="inside"),
            ResourceLink(uri="test://b", name="b"),
        )
    )


@declared.declare()
def printing(text: str) -> Result[str]:
    """Print, as a library might."""
    print(text)  # noqa: T201 - the point of this tool
    os.write(1, b"straight to the descriptor\n")
    subprocess.run(["echo", "from a child"], check=True)
    return Result.ok("printed")


@declared.declare()
async def bulky(size: int) -> Result[str]:
    """Answer with so many characters."""
    return Result.ok("x" * size)


@declared.declare()
async def relay(body: str, repeated: int = 1, is_error: bool = False) -> Result[Any]:
    """Answer as another server did: with a text of Latin-1 as bytes, in which `*` is repeated."""
    whole = body.encode("latin-1").replace(b"*", b"*" * repeated)
    return Result.relay(whole, is_error=is_error, meta={"trysquare/origin": {"server": "other"}})


@declared.declare()
async def slow(seconds: float) -> Result[str]:
    """Take a while."""
    await asyncio.sleep(seconds)
    return Result.ok("slept")


@declared.declare()
async def late(context: CallContext) -> Result[str]:
    """Report, and take a while."""
    await context.progress(1)
    await asyncio.sleep(1)
    return Result.ok("late")


@declared.declare()
def filename() -> Result[str]:
    """A file name that is no text."""
    return Result.ok("caf\udce9.txt")


async def _complete(argument: str, typed: str, others: dict[str, str]) -> list[str]:
    return [f"{argument}-{typed}{number}" for number in range(150)]


@declared.prompt(complete=_complete)
async def letter(to: str, context: CallContext, tone: str = "warm") -> str:
    """Write a letter.

    Args:
        to: Who gets it
        tone: How it sounds
    """
    total = await context.call_tool("add", {"a": 1, "b": 2})
    return f"Write to {to}, {tone}, {total.value} times."


@declared.prompt()
async def broken() -> str:
    """Fail."""
    raise RuntimeError("the secret of the house")


@declared.prompt()
async def questioning(context: CallContext) -> str:
    """Ask the person before rendering."""
    answer = await context.ask("Which word?", WORD)
    return f"The word is {answer.content.get('word')}."


@declared.resource("test://notes", mime_type="text/plain")
async def notes() -> str:
    """Some notes."""
    return "these are the notes"


@declared.resource("test://broken")
async def broken_resource() -> str:
    """Fail."""
    raise RuntimeError("the secret of the house")


@declared.resource("test://people/{name}", mime_type="text/plain", complete=_complete)
async def person(name: str) -> str:
    """One person."""
    return f"about {name}"


def changing() -> DynamicToolset:
    """The sample as a toolset that can change."""
    fixed = declared.toolset()
    return DynamicToolset(
        fixed.tools(), prompts=fixed.prompts(), resources=fixed.resources(), templates=fixed.templates()
    )


async def extra() -> Result[str]:
    """A tool that comes later."""
    return Result.ok("here now")


EXTRA = tool(extra)

if __name__ == "__main__":
    from trysquare.server import serve_stdio

    asyncio.run(serve_stdio(declared.toolset()))
