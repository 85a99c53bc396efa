"""The loop's own tools: finish, give up, notes, further tools, and a question to the person."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.agent.completion import FINISH, GIVE_UP
from trysquare.agent.notes import LONGEST_NOTE, Notes
from trysquare.agent.toolbox import Toolbox
from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject

NOTE, FIND_TOOLS, ASK_PERSON = "note", "find_tools", "ask_person"
OWN_NAMES = frozenset({FINISH, GIVE_UP, NOTE, FIND_TOOLS, ASK_PERSON})
ROOM = "agent"
CATEGORY = "this run"
_ANSWER: JsonObject = {
    "type": "object",
    "properties": {"answer": {"type": "string", "title": "Answer"}},
    "required": ["answer"],
}


class FinishArguments(ToolArguments):
    """Arguments of finish."""

    summary: Annotated[str, Field(description="What was done, for the person", min_length=1, max_length=2000)]
    files: Annotated[
        list[str],
        Field(
            default_factory=list[str], description="Files made or changed, from the project's folder", max_length=100
        ),
    ]


class DecideArguments(ToolArguments):
    """Arguments of note decide."""

    action: Literal["decide"]
    text: Annotated[str, Field(description="What you decided and why, or what is left to do", max_length=LONGEST_NOTE)]


class OpenTaskArguments(ToolArguments):
    """Arguments of note open_task."""

    action: Literal["open_task"]
    text: Annotated[str, Field(description="What you decided and why, or what is left to do", max_length=LONGEST_NOTE)]


class CloseTaskArguments(ToolArguments):
    """Arguments of note close_task."""

    action: Literal["close_task"]
    number: Annotated[int, Field(description="The task's number", ge=1, le=10_000)]


def finish_tool() -> Tool:
    """The tool that ends a run whose work is done. The loop checks what it claims before it believes it."""

    async def finish(args: FinishArguments) -> Result[Any]:
        """End the run: the work is done, and what you claim is checked."""
        return Result[Any].ok(args.summary)

    return tool(
        finish,
        name=FINISH,
        room=ROOM,
        category=CATEGORY,
        use_when="the task is done and its tests pass",
        avoid_when="anything is left to do",
        examples=(Example(arguments={"summary": "Fixed total()", "files": ["shop.py"]}, explanation=""),),
    )


def give_up_tool() -> Tool:
    """The tool that ends a run which cannot reach its goal."""

    async def give_up(reason: Annotated[str, Field(min_length=1, max_length=2000)]) -> Result[Any]:
        """End the run without success, and say why."""
        return Result[Any].ok(reason)

    return tool(
        give_up,
        name=GIVE_UP,
        room=ROOM,
        category=CATEGORY,
        use_when="the task cannot be done with what is allowed here",
        examples=(Example(arguments={"reason": "The test needs a network that is not there"}, explanation=""),),
    )


def note_tool(notes: Notes) -> Tool:
    """The tool that keeps decisions and tasks when a dialogue is made shorter."""

    async def note(args: DecideArguments | OpenTaskArguments | CloseTaskArguments) -> Result[Any]:
        """Keep a decision or a task in mind."""
        if isinstance(args, DecideArguments):
            return Result[Any].ok(message=notes.decide(args.text))
        if isinstance(args, OpenTaskArguments):
            return Result[Any].ok(message=notes.open_task(args.text))
        return Result[Any].ok(message=notes.close_task(args.number))

    return tool(
        note,
        name=NOTE,
        room=ROOM,
        category=CATEGORY,
        use_when="a decision or an open task must not be forgotten in a long run",
        examples=(Example(arguments={"action": "open_task", "text": "update the docs"}, explanation=""),),
    )


def find_tools_tool(toolbox: Toolbox) -> Tool:
    """The tool that shows further tools of this run."""

    async def find_tools(query: Annotated[str, Field(min_length=1, max_length=300)]) -> Result[Any]:
        """Find further tools by what you want to do; they can be called from then on."""
        found = toolbox.search(query)
        if not found:
            return Result[Any].ok([], message="No further tool fits that.")
        return Result[Any].ok([{"name": one.name, "purpose": one.description.partition("\n")[0]} for one in found])

    return tool(
        find_tools,
        name=FIND_TOOLS,
        room=ROOM,
        category=CATEGORY,
        use_when="no tool that is shown fits",
        examples=(Example(arguments={"query": "read an RSS feed"}, explanation=""),),
    )


def ask_person_tool() -> Tool:
    """The tool that asks the person who started the run."""

    async def ask_person(
        question: Annotated[str, Field(min_length=1, max_length=1000)], context: CallContext
    ) -> Result[Any]:
        """Ask the person something that only they can know. Their answer is no permission for anything."""
        answer = await context.ask(f"The agent asks: {question}", _ANSWER, key="agent-question")
        if answer.action != "accept":
            return Result.failure("The person did not answer.", code=ErrorCode.CONSENT_REFUSED)
        return Result[Any].ok(str(answer.content.get("answer", "")))

    return tool(
        ask_person,
        name=ASK_PERSON,
        room=ROOM,
        category=CATEGORY,
        use_when="the task can be understood in two ways that lead to different work",
        avoid_when="a tool can tell",
        examples=(Example(arguments={"question": "Should empty names be refused or trimmed?"}, explanation=""),),
    )
