"""inspect: values, stack, threads and output of a program, and expressions in it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.debug.debugger import Frame, Variable
from trysquare.debug.desk import Desk
from trysquare.debug.guarding import require_reading
from trysquare.debug.names import InspectTarget, ToolName
from trysquare.debug.rendering import ranked, text_of, within_budget
from trysquare.debug.responses import answer, execution_state
from trysquare.debug.session import Session
from trysquare.debug.snapshot import locals_of

FRAMES = 10


class Inspect(ToolArguments):
    """Arguments of inspect."""

    target: Annotated[InspectTarget, Field(description="What to look at")] = "locals"
    expression: Annotated[str | None, Field(description="For expression: a name or path like self.items[3].tags")] = (
        None
    )
    frame: Annotated[int, Field(description="0 is the innermost", ge=0)] = 0
    cursor: Annotated[int, Field(description="For output: where to read on", ge=0)] = 0
    session_id: str | None = None
    budget: Annotated[int, Field(description="Tokens for values", ge=50)] = 800


def inspect_tool(desk: Desk) -> Tool:
    """The tool that looks."""

    async def inspect(args: Inspect, context: CallContext) -> Result[Any]:
        """Look at values, the stack, threads, output or an expression."""
        async with desk.session(args.session_id, context, operation=f"inspect {args.target}") as session:
            data = await _LOOKS[args.target](session, args)
            return answer(session, f"{args.target} of {session.title}", data)

    return tool(inspect, name=ToolName.INSPECT, room="debug", category="debug", read_only=True, result_limit=None)


async def _all(session: Session, args: Inspect) -> JsonObject:
    return {
        "execution_state": execution_state(session),
        **await _stack(session, args),
        **await _locals(session, args),
        **await _threads(session, args),
    }


async def _locals(session: Session, args: Inspect) -> JsonObject:
    frame = await frame_at(session, args.frame)
    return _values("locals", await locals_of(session.debugger, frame), args.budget)


async def _globals(session: Session, args: Inspect) -> JsonObject:
    frame = await frame_at(session, args.frame)
    scopes = [scope for scope in await session.debugger.scopes(frame.id) if scope.kind == "globals"]
    if not scopes:
        raise ToolError(
            f"The debugger of {session.language} shows no globals.",
            code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
            instruction="Ask for a global by its name, with target=expression.",
        )
    return _values("globals", await session.debugger.variables(scopes[0].reference), args.budget)


async def _stack(session: Session, args: Inspect) -> JsonObject:
    stop = session.require_stopped()
    frames, total = await session.debugger.stack(stop.thread, count=FRAMES)
    data: JsonObject = {
        "stack": [f"{index} {frame.name} {frame.file}:{frame.line}" for index, frame in enumerate(frames)]
    }
    if total > len(frames):
        data |= {"truncated": True, "total_frames": total, "showing_frames": len(frames)}
    return data


async def _threads(session: Session, args: Inspect) -> JsonObject:
    threads = await session.debugger.threads()
    shown = [f"{thread.id} {thread.name}" for thread in threads[:FRAMES]]
    more: JsonObject = {"truncated": True, "total_threads": len(threads)} if len(threads) > len(shown) else {}
    return {"threads": shown, **more}


async def _expression(session: Session, args: Inspect) -> JsonObject:
    if not args.expression:
        raise InvalidArguments(
            "`expression` is missing.",
            code=ErrorCode.VALIDATION_MISSING_PARAM,
            instruction="Name what to look at, such as self.items[3].tags.",
        )
    require_reading(args.expression, session.language, allowed=session.allows_side_effects)
    frame = await frame_at(session, args.frame)
    found = await session.debugger.evaluate(args.expression, frame.id)
    data: JsonObject = {"expression": args.expression, "value": text_of(found, longest=2000), "type": found.type}
    return data | await parts_of(session, found, args.budget)


async def _output(session: Session, args: Inspect) -> JsonObject:
    page = session.output.page(args.cursor)
    return {"output": page.text, "cursor": page.cursor, "more": page.more, "lost": page.lost}


_LOOKS = {
    "locals": _locals,
    "globals": _globals,
    "stack": _stack,
    "threads": _threads,
    "expression": _expression,
    "output": _output,
    "all": _all,
}


async def parts_of(session: Session, found: Variable, budget: int) -> JsonObject:
    """What a value is made of, one level deep; deeper parts are asked for by their path."""
    if not found.reference:
        return {}
    return _values("parts", await session.debugger.variables(found.reference), budget)


def _values(name: str, variables: list[Variable], budget: int) -> JsonObject:
    shown = within_budget(ranked(variables), budget)
    data: JsonObject = {name: dict(shown.values)}
    if shown.left_out:
        data |= {"truncated": True, "left_out": list(shown.left_out[:20]), "total": len(variables)}
    return data


async def frame_at(session: Session, index: int) -> Frame:
    """A frame by its level, or an error that says how many there are."""
    stop = session.require_stopped()
    frames, total = await session.debugger.stack(stop.thread, count=index + 1)
    if index < len(frames):
        return frames[index]
    raise InvalidArguments(
        f"There is no frame {index}; the stack has {total}.",
        code=ErrorCode.INTROSPECTION_INVALID_FRAME,
        instruction="Look at the stack with target=stack.",
    )
