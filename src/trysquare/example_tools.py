"""Example tools: a small notebook that shows what a tool can be. Served when MCP_INCLUDE_EXAMPLE_TOOLS is "true".

`make demo` drives these tools, and the pages of the documentation show them. The notebook is kept in memory:
it ends with the server.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trysquare import CallContext, Consent, Example, Result, ToolArguments, ToolError, Tools

tools = Tools()

_notes = {
    "shopping": "oat milk, bread, two lemons",
    "holiday": "ask Ada about the night train to Vienna",
}


class Greet(ToolArguments):
    """Arguments of `greet`."""

    name: str = Field(description="Who to greet, as they write it themselves")
    tone: Literal["warm", "formal"] = Field("warm", description="How the greeting sounds")


# Documented as in guide/tools/README.md.
@tools.tool(
    category="example",
    use_when="the user wants to be greeted",
    read_only=True,
    examples=(Example(arguments={"name": "Ada", "tone": "formal"}, explanation="A formal greeting"),),
)
async def greet(args: Greet) -> Result[str]:
    """Greet a person by name."""
    opening = "Hello" if args.tone == "warm" else "Good day"
    return Result.ok(f"{opening}, {args.name}", instruction="Show the greeting as it is.")


@tools.tool(category="example", use_when="the user asks what a note says", read_only=True)
def read_note(title: str) -> str:
    """Read one note of the notebook.

    Args:
        title: Title of the note, such as shopping
    """
    return _note(title)


class DeleteNote(ToolArguments):
    """Arguments of `delete_note`."""

    title: str = Field(description="Title of the note, such as shopping")


@tools.tool(
    category="example",
    use_when="the user asks for a note to be deleted",
    avoid_when="the user only wants to see it",
    destructive=True,
    consent=Consent(question="Delete the note {title}?"),
)
async def delete_note(args: DeleteNote) -> Result[str]:
    """Delete one note, after the user agreed."""
    _note(args.title)
    del _notes[args.title]
    return Result.ok(f"The note {args.title} is deleted.", instruction="Tell the user that it is gone.")


@tools.tool(category="example", use_when="a long table of squares is wanted", read_only=True, result_limit=2_000)
async def list_squares(count: int = 1000) -> Result[str]:
    """List the squares of integers, one per line.

    Args:
        count: How many lines to list
    """
    return Result.ok("\n".join(f"{number} squared is {number * number}" for number in range(1, count + 1)))


@tools.tool(category="example", use_when="one number is to be divided by another", read_only=True)
def divide(dividend: float, divisor: float) -> float:
    """Divide one number by another.

    Its author forgot about zero, which shows what a crash looks like.

    Args:
        dividend: The number to divide
        divisor: The number to divide it by
    """
    return dividend / divisor


@tools.tool(category="example", use_when="progress is to be shown", read_only=True)
async def count_slowly(context: CallContext, steps: int = 3) -> Result[str]:
    """Count up and report each step to the client.

    Args:
        steps: How far to count
    """
    for step in range(1, steps + 1):
        await context.progress(step, steps, f"step {step} of {steps}")
    return Result.ok(f"Counted to {steps}.")


# Documented as in guide/prompts/README.md.
@tools.prompt(examples=(("@letter Ada", "a letter to Ada"),))
async def letter(context: CallContext, to: str, tone: str = "warm") -> str:
    """Write a letter to somebody.

    Args:
        to: Who the letter is for
        tone: How it sounds: warm or formal
    """
    opening = await context.call_tool("greet", {"name": to, "tone": tone})
    if not opening.success:
        raise ToolError(opening.error or "The greeting failed.", instruction=opening.instruction)
    return f"Write a {tone} letter of five lines. Begin it with: {opening.value}"


@tools.resource("note://{title}", name="note", mime_type="text/plain", description="One note of the notebook")
async def note(title: str) -> str:
    """The text of a note."""
    return _note(title)


@tools.resource("note://index", name="notes", mime_type="text/plain", description="Titles of all notes")
async def notes() -> str:
    """The titles of all notes, one per line."""
    return "\n".join(sorted(_notes))


def _note(title: str) -> str:
    if title not in _notes:
        raise ToolError(
            f"There is no note `{title}`.", instruction=f"Use one of these titles: {', '.join(sorted(_notes))}."
        )
    return _notes[title]
