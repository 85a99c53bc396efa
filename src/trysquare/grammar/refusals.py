"""Refusals: what a grammar cannot say of a schema, by name and place."""

from __future__ import annotations

from trysquare.core.errors import ErrorCode, ToolError


class Unsupported(ToolError):
    """A part of a schema that no grammar of ours can hold a text to."""

    default_code = ErrorCode.GRAMMAR_UNSUPPORTED

    def __init__(self, keyword: str, pointer: str, why: str, *, tool: str | None = None) -> None:
        whose = f" in the arguments of `{tool}`" if tool else ""
        super().__init__(
            f"`{keyword}` at `{pointer or '/'}`{whose} cannot be expressed as a grammar: {why}.",
            instruction="Change that part of the schema, or call the tool with a model that is not held to a grammar.",
            fields={"keyword": keyword, "pointer": pointer or "/"} | ({"tool": tool} if tool else {}),
        )
        self.keyword, self.pointer, self.why = keyword, pointer, why

    def of_tool(self, name: str) -> Unsupported:
        """The same, saying whose schema it is."""
        return Unsupported(self.keyword, self.pointer, self.why, tool=name)


def at(pointer: str, *steps: str | int) -> str:
    """The JSON pointer of something inside the place."""
    return pointer + "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
