"""A server with every kind of thing that a client meets; run as a program, over stdio or HTTP."""

from __future__ import annotations

import asyncio
import sys

from trysquare import CallContext, Consent, Image, Result, ToolError, Tools

tools = Tools("sample", instructions="Use it in tests.")


@tools.tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tools.tool
def weather(city: str) -> dict[str, str]:
    """The weather of a city."""
    return {"city": city, "sky": "clear"}


@tools.tool
async def count(to: int, context: CallContext) -> str:
    """Count, and report each step."""
    for number in range(to):
        await context.progress(number, to, f"at {number}")
    await context.log("counted", level="warning")
    return "done"


@tools.tool(consent=Consent(question="Wipe {what}?"))
def wipe(what: str) -> str:
    """Wipe a thing."""
    return f"wiped {what}"


@tools.tool
async def paint(context: CallContext) -> str:
    """Ask for a colour."""
    schema = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
    answer = await context.ask("Which colour?", schema)
    return f"{answer.action} {answer.content.get('colour', '')}".strip()


@tools.tool
async def consult(context: CallContext) -> str:
    """Ask the client's model and for its directories."""
    return f"{await context.sample('Well?')} in {', '.join(await context.roots())}"


@tools.tool(task=True)
async def bake(what: str, context: CallContext) -> str:
    """Bake a thing, once it is known how dark."""
    schema = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
    answer = await context.ask("How dark?", schema)
    return f"{answer.content['colour']} {what}"


@tools.tool
def fail() -> str:
    """Fail on purpose."""
    raise ToolError("It did not work.", instruction="Leave it.", next={"tool": "add", "arguments": {"a": 1}})


@tools.tool
def picture() -> Result[None]:
    """Draw a picture."""
    return Result.ok(content=(Image(data="iVBORw0KGgo=", mime_type="image/png"),))


@tools.tool
async def hang(context: CallContext) -> str:
    """Never end."""
    await context.progress(0, None, "began")
    await asyncio.Event().wait()
    return ""


async def complete_name(argument: str, value: str, known: dict[str, str]) -> list[str]:
    return [name for name in ("Ada", "Alan", "Grace") if name.startswith(value)]


@tools.prompt(complete=complete_name)
def hello(name: str) -> str:
    """Have somebody greeted."""
    return f"Greet {name}."


@tools.resource("note://{topic}")
def note(topic: str) -> str:
    """A note."""
    return f"About {topic}."


@tools.resource("note:///all")
def notes() -> str:
    """All notes."""
    return "none"


if __name__ == "__main__":
    tools.run(http="127.0.0.1:0") if "--http" in sys.argv else tools.run()
