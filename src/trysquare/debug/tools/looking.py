"""inspect: values, stack, threads and output of a program, and expressions in it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.nearest import nearest
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.debug.dap.client import RequestFailed
from trysquare.debug.debugger import Frame, NotReadable, Variable
from trysquare.debug.desk import Desk
from trysquare.debug.guarding import not_only_reading, require_reading
from trysquare.debug.names import InspectTarget, ToolName
from trysquare.debug.rendering import ranked, text_of, within_budget
from trysquare.debug.responses import answer, execution_state
from trysquare.debug.session import Session
from trysquare.debug.snapshot import locals_of, source_line

_DETAILED = 5
"""How many times more frames a detailed stack has."""
_LONG = 2000
_WORD = re.compile(r"[A-Za-z_$][\w$]*")


class Values(ToolArguments):
    """How values are shown."""

    frame: Annotated[int, Field(description="0 is the innermost", ge=0)] = 0
    session_id: str | None = None
    detailed: Annotated[bool, Field(description="With types; more frames")] = False
    budget: Annotated[int, Field(description="Tokens for values", ge=50)] = 800


class Inspect(Values):
    """Arguments of inspect."""

    target: InspectTarget = "locals"
    expression: Annotated[str | None, Field(description="For expression: a name or path like self.items[3].tags")] = (
        None
    )
    cursor: Annotated[int, Field(description="For output: where to read on", ge=0)] = 0


def inspect_tool(desk: Desk) -> Tool:
    """The tool that looks."""

    async def inspect(args: Inspect, context: CallContext) -> Result[Any]:
        """Look at values, the stack, threads, output or an expression."""
        async with desk.session(args.session_id, context, operation=f"inspect {args.target}") as session:
            data = await _LOOKS[args.target](session, _Looking(args=args, frames=desk.frames(session)))
            return answer(session, f"{args.target} of {session.title}", data)

    return tool(inspect, name=ToolName.INSPECT, room="debug", category="debug", read_only=True, result_limit=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Looking:
    """What is looked for, and how many frames of a stack are shown."""

    args: Inspect
    frames: int


async def _all(session: Session, looking: _Looking) -> JsonObject:
    return {
        "execution_state": execution_state(session),
        **await _stack(session, looking),
        **await _locals(session, looking),
        **await _threads(session, looking),
    }


async def _locals(session: Session, looking: _Looking) -> JsonObject:
    frame = await frame_at(session, looking.args.frame)
    return _values("locals", await locals_of(session.debugger, frame), looking.args, line=source_line(frame))


async def _globals(session: Session, looking: _Looking) -> JsonObject:
    frame = await frame_at(session, looking.args.frame)
    scopes = [scope for scope in await session.debugger.scopes(frame.id) if scope.kind == "globals"]
    if not scopes:
        raise ToolError(
            f"The debugger of {session.language} shows no globals.",
            code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
            instruction="Ask for a global by its name, with target=expression.",
        )
    return _values("globals", await session.debugger.variables(scopes[0].reference), looking.args)


async def _stack(session: Session, looking: _Looking) -> JsonObject:
    return await stack_of(session, looking.frames * (_DETAILED if looking.args.detailed else 1))


async def stack_of(session: Session, count: int) -> JsonObject:
    """The innermost frames, and how many there are where that is more."""
    stop = session.require_stopped()
    frames, total = await session.debugger.stack(stop.thread, count=count)
    data: JsonObject = {
        "stack": [f"{index} {frame.name} {frame.file}:{frame.line}" for index, frame in enumerate(frames)]
    }
    if total > len(frames):
        data |= {"truncated": True, "total_frames": total, "showing_frames": len(frames)}
    return data


async def _threads(session: Session, looking: _Looking) -> JsonObject:
    threads = await session.debugger.threads()
    shown = [f"{thread.id} {thread.name}" for thread in threads[: looking.frames]]
    if len(threads) == len(shown):
        return {"threads": shown}
    return {"threads": shown, "truncated": True, "total_threads": len(threads), "showing_threads": len(shown)}


async def _expression(session: Session, looking: _Looking) -> JsonObject:
    args = looking.args
    if not args.expression:
        raise InvalidArguments(
            "`expression` is missing.",
            code=ErrorCode.VALIDATION_MISSING_PARAM,
            instruction="Name what to look at, such as self.items[3].tags.",
        )
    frame = await frame_at(session, args.frame)
    found = await read(session, args.expression, frame)
    data: JsonObject = {"expression": args.expression, "value": text_of(found, longest=_LONG), "type": found.type}
    return data | await parts_of(session, found, args)


async def read(session: Session, expression: str, frame: Frame, *, may_run: bool = False) -> Variable:
    """The value of an expression under its own text. Code of the program's runs only where that is allowed."""
    may_run = may_run and session.allows_side_effects
    try:
        if session.language == "python":
            # Only whether it is an expression: whether it reads is told inside the program.
            require_reading(expression, "python", allowed=True)
        debugger = session.debugger
        found = await (debugger.evaluate if may_run else debugger.read)(expression, frame.id)
    except NotReadable as refused:
        raise not_only_reading(
            expression, str(refused), open_session=session.id if session.allows_side_effects else None
        ) from None
    except RequestFailed as error:
        known = [variable.name for variable in await locals_of(session.debugger, frame)]
        raise ToolError(
            f"`{expression[:200]}` has no value here: {error.message[:500]}",
            code=ErrorCode.INTROSPECTION_EVAL_ERROR,
            instruction=_instead(expression, known),
        ) from None
    return replace(found, name=expression)


def _instead(expression: str, known: list[str]) -> str:
    words = [word for word in _WORD.findall(expression) if word not in known]
    near = dict.fromkeys(name for word in words for name in nearest(word, known))
    if near:
        return f"There is {', '.join(f'`{name}`' for name in near)} in this frame."
    return "See what is there with target=locals, or name another frame."


async def _output(session: Session, looking: _Looking) -> JsonObject:
    page = session.output.page(looking.args.cursor)
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


async def parts_of(session: Session, found: Variable, args: Values) -> JsonObject:
    """What a value is made of, one level deep; deeper parts are asked for by their path."""
    if not found.reference:
        return {}
    return _values("parts", await session.debugger.variables(found.reference), args)


def _values(name: str, variables: list[Variable], args: Values, *, line: str = "") -> JsonObject:
    shown = within_budget(ranked(variables, line=line), args.budget)
    values: JsonObject = dict(shown.values)
    if args.detailed:
        types = {variable.name: variable.type for variable in variables}
        values = {each: {"value": text, "type": types[each]} for each, text in values.items()}
    return {name: values, **shown.about_left_out()}


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
