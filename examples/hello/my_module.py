"""One tool: it greets."""

from typing import Literal

from pydantic import Field

from trysquare import Result, ToolArguments, Tools

tools = Tools()


class Greet(ToolArguments):
    name: str = Field(description="Who to greet, as they write it themselves")
    tone: Literal["warm", "formal"] = Field("warm", description="How the greeting sounds")


@tools.tool(category="example", use_when="the user wants to be greeted")
async def greet(args: Greet) -> Result[str]:
    """Greet a person by name."""
    opening = "Hello" if args.tone == "warm" else "Good day"
    return Result.ok(f"{opening}, {args.name}", instruction="Show the greeting as it is.")
