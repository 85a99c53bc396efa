"""Built-in tools of the loop: finish, give up, notes, find tools, ask the user."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from trysquare.agents.conversation import MAX_NOTE, Notes
from trysquare.catalog.descriptions import usage_line
from trysquare.catalog.search import ASK_AGAIN, Match, doubts
from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode
from trysquare.core.json import JsonObject
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool

Search: TypeAlias = Callable[[str], Awaitable[list[Match]]]

FINISH, GIVE_UP, ASK_PERSON = "finish", "give_up", "ask_person"
BUILTIN_NAMES = frozenset({FINISH, GIVE_UP, "note", "find_tools", ASK_PERSON})
ANSWER_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"answer": {"type": "string", "title": "Answer"}},
    "required": ["answer"],
}


def _builtin_tool(
    function: Callable[..., Any], example: JsonObject, *, use_when: str, avoid_when: str | None = None
) -> Tool:
    examples, category = (Example(arguments=example, explanation=""),), "this run"
    return tool(
        function, toolset="agent", category=category, use_when=use_when, avoid_when=avoid_when, examples=examples
    )


class FinishArguments(ToolArguments):
    summary: Annotated[str, Field(description="What was done, for the user", min_length=1, max_length=2000)]
    files: list[str] = Field(
        default_factory=list[str], description="Files created or changed, relative to the project", max_length=100
    )


NoteText = Annotated[str, Field(description="What you decided and why, or what is left to do", max_length=MAX_NOTE)]


class DecideArguments(ToolArguments):
    action: Literal["decide"]
    text: NoteText


class OpenTaskArguments(ToolArguments):
    action: Literal["open_task"]
    text: NoteText


class CloseTaskArguments(ToolArguments):
    action: Literal["close_task"]
    number: Annotated[int, Field(description="Number of the task", ge=1, le=10_000)]


# Documented as in guide/tools/README.md.
def all_tools(notes: Notes, search: Search, *, can_ask: bool) -> list[Tool]:
    own = [finish_tool(), give_up_tool(), note_tool(notes), find_tools_tool(search)]
    return [*own, ask_person_tool()] if can_ask else own


def finish_tool() -> Tool:
    async def finish(args: FinishArguments) -> Result[Any]:
        """End the run because the task is done; your claims are verified."""
        return Result[Any].ok(args.summary)

    return _builtin_tool(
        finish,
        {"summary": "Fixed total()", "files": ["shop.py"]},
        use_when="the task is done and its tests pass",
        avoid_when="anything is left to do",
    )


def give_up_tool() -> Tool:
    async def give_up(reason: Annotated[str, Field(min_length=1, max_length=2000)]) -> Result[Any]:
        """End the run without success, with the reason."""
        return Result[Any].ok(reason)

    return _builtin_tool(
        give_up,
        {"reason": "The test needs a network that is not there"},
        use_when="the task cannot be done with what is allowed here",
    )


def note_tool(notes: Notes) -> Tool:
    async def note(args: DecideArguments | OpenTaskArguments | CloseTaskArguments) -> Result[Any]:
        """Record a decision or an open task."""
        if isinstance(args, DecideArguments):
            return Result[Any].ok(message=notes.decide(args.text))
        if isinstance(args, OpenTaskArguments):
            return Result[Any].ok(message=notes.open_task(args.text))
        return Result[Any].ok(message=notes.close_task(args.number))

    return _builtin_tool(
        note,
        {"action": "open_task", "text": "update the docs"},
        use_when="a decision or an open task must not be forgotten in a long run",
    )


def find_tools_tool(search: Search) -> Tool:
    async def find_tools(query: Annotated[str, Field(min_length=1, max_length=300)]) -> Result[Any]:
        """Find further tools; you can call them afterwards. Ask by the action and its object in a few words."""
        matches = await search(query)
        found = [
            {
                "name": one.tool.name,
                "fit": one.fit,
                "signature": usage_line(one.tool.name, one.tool.input_schema),
                "purpose": one.tool.description.partition("\n")[0],
            }
            for one in matches
        ]
        if not found:
            return Result[Any].ok(found, message="There are no further tools.")
        unsure = doubts(matches)
        return Result[Any].ok(found, message=unsure, instruction=f"If none fits, {ASK_AGAIN}." if unsure else None)

    return _builtin_tool(find_tools, {"query": "read an RSS feed"}, use_when="no tool that is shown fits")


def ask_person_tool() -> Tool:
    async def ask_person(
        question: Annotated[str, Field(min_length=1, max_length=1000)], context: CallContext
    ) -> Result[Any]:
        """Ask the user something that only they can know. The answer is not a permission."""
        answer = await context.ask(f"The agent asks: {question}", ANSWER_SCHEMA, key="agent-question")
        if answer.action != "accept":
            return Result.failure("The user did not answer.", code=ErrorCode.CONSENT_REFUSED)
        return Result[Any].ok(str(answer.content.get("answer", "")))

    return _builtin_tool(
        ask_person,
        {"question": "Should empty names be refused or trimmed?"},
        use_when="the task can be understood in two ways that lead to different work",
        avoid_when="a tool can find it out",
    )
