"""One tool: it greets."""

from typing import Annotated, Literal

from trysquare import Tools

tools = Tools("hello")


@tools.tool(use_when="the user wants to be greeted")
def greet(
    name: Annotated[str, "Who to greet, as they write it themselves"],
    tone: Annotated[Literal["warm", "formal"], "How the greeting sounds"] = "warm",
) -> str:
    """Greet a person by name."""
    return f"Hello, {name}" if tone == "warm" else f"Good day, {name}"
