"""inspect, variable, watch: read and change values of a stopped program."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.core.text import closest_names
from trysquare.debug.adapters.registry import find_language
from trysquare.debug.debugger import Frame, NotReadable, RequestFailed, Variable, unsupported
from trysquare.debug.guard import not_only_reading, require_reading
from trysquare.debug.responses import answer, execution_state
from trysquare.debug.service import ActionArguments, DebugService, debug_tool, require_argument
from trysquare.debug.sessions.session import DebugSession
from trysquare.debug.snapshot import locals_of, ranked, source_line, text_of, watched_text, within_budget

_DETAILED = 5
"""Factor by which a detailed stack has more frames."""
_LONGEST = 2000
_MAX_WATCHES = 20
_WORD = re.compile(r"[A-Za-z_$][\w$]*")


class Values(ToolArguments):
    """Arguments of every tool that shows values."""

    frame: Annotated[int | None, Field(description="0 is the innermost; by default the one that was shown", ge=0)] = (
        None
    )
    session_id: str | None = None
    detailed: Annotated[bool, Field(description="With types; more frames")] = False
    budget: Annotated[int, Field(description="Tokens for values", ge=50)] = 800


class Inspect(Values):
    target: Literal["locals", "globals", "stack", "threads", "expression", "output", "all"] = "locals"
    expression: Annotated[str | None, Field(description="For expression: a name or path like self.items[3].tags")] = (
        None
    )
    cursor: Annotated[int, Field(description="For output: where to read on", ge=0)] = 0


# Documented as in guide/tools/README.md.
@debug_tool(read_only=True)
async def inspect(service: DebugService, args: Inspect, context: CallContext) -> Result[Any]:
    """Read values, the stack, threads, output or an expression."""
    async with service.session(args.session_id, context, operation=f"inspect {args.target}") as session:
        data = await _VIEWS[args.target](session, args, service.frames(session))
        return answer(session, f"{args.target} of {session.title}", data)


async def _all(session: DebugSession, args: Inspect, frames: int) -> JsonObject:
    data: JsonObject = {"execution_state": execution_state(session)}
    for view in (_stack, _locals, _threads):
        data |= await view(session, args, frames)
    return data


async def _locals(session: DebugSession, args: Inspect, frames: int) -> JsonObject:
    frame = await frame_at(session, args.frame)
    return _values("locals", await locals_of(session.debugger, frame), args, line=source_line(frame))


async def _globals(session: DebugSession, args: Inspect, frames: int) -> JsonObject:
    frame = await frame_at(session, args.frame)
    scopes = [scope for scope in await session.debugger.scopes(frame.id) if scope.kind == "globals"]
    if not scopes:
        raise unsupported(
            f"The {session.language} debugger does not list globals.",
            "Read a global by its name, with target=expression.",
        )
    found = [await session.debugger.readable(each) for each in await session.debugger.variables(scopes[0].reference)]
    return _values("globals", found, args)


async def _stack(session: DebugSession, args: Inspect, frames: int) -> JsonObject:
    return await stack_of(session, frames * (_DETAILED if args.detailed else 1))


async def stack_of(session: DebugSession, count: int) -> JsonObject:
    """The innermost frames, and the depth of the stack where that is more."""
    stop = session.require_stopped()
    frames, total = await session.debugger.stack(stop.thread, count=count)
    lines = [f"{index} {frame.name} {frame.file}:{frame.line}" for index, frame in enumerate(frames)]
    return {"stack": lines} | _truncation("frames", total, len(lines))


async def _threads(session: DebugSession, args: Inspect, frames: int) -> JsonObject:
    threads = await session.debugger.threads()
    shown = [f"{thread.id} {thread.name}" for thread in threads[:frames]]
    return {"threads": shown} | _truncation("threads", len(threads), len(shown))


def _truncation(what: str, total: int, shown: int) -> JsonObject:
    return {} if total <= shown else {"truncated": True, f"total_{what}": total, f"showing_{what}": shown}


async def _expression(session: DebugSession, args: Inspect, frames: int) -> JsonObject:
    expression = require_argument(args.expression, "expression", "Send a name or path like self.items[3].tags.")
    frame = await frame_at(session, args.frame)
    found = await _read(session, expression, frame)
    data: JsonObject = {"expression": expression, "value": text_of(found, longest=_LONGEST), "type": found.type}
    return data | await _parts(session, found, args)


async def _output(session: DebugSession, args: Inspect, frames: int) -> JsonObject:
    page = session.output.page(args.cursor)
    return {"output": page.text, "cursor": page.cursor, "more": page.more, "lost": page.lost}


_VIEWS = {
    "locals": _locals, "globals": _globals, "stack": _stack, "threads": _threads, "expression": _expression,
    "output": _output, "all": _all,
}  # fmt: skip


async def _read(session: DebugSession, expression: str, frame: Frame, *, may_run: bool = False) -> Variable:
    """Evaluate an expression. Code of the program runs only with `may_run` in a session that allows side effects."""
    may_run = may_run and session.allows_side_effects
    try:
        if session.language == "python":
            # Only whether it is an expression: whether it only reads is decided inside the program.
            require_reading(expression, "python", allowed=True)
        debugger = session.debugger
        found = await (debugger.evaluate if may_run else debugger.read)(expression, frame.id)
    except NotReadable as refused:
        raise _not_readable(session, expression, refused) from None
    except RequestFailed as error:
        known = [variable.name for variable in await locals_of(session.debugger, frame)]
        words = [word for word in _WORD.findall(expression) if word not in known]
        near = dict.fromkeys(f"`{name}`" for word in words for name in closest_names(word, known))
        raise ToolError(
            f"`{expression[:200]}` has no value here: {error.message[:500]}",
            code=ErrorCode.INTROSPECTION_EVAL_ERROR,
            instruction=f"Did you mean {', '.join(near)}?"
            if near
            else "List names with target=locals, or set `frame`.",
        ) from None
    return replace(await session.debugger.readable(found), name=expression)


def _not_readable(session: DebugSession, expression: str, refused: NotReadable) -> ToolError:
    open_session = session.id if session.allows_side_effects else None
    return not_only_reading(expression, str(refused), open_session=open_session)


async def _parts(session: DebugSession, found: Variable, args: Values) -> JsonObject:
    """The parts of a value, one level deep."""
    if not found.reference:
        return {}
    debugger = session.debugger
    parts = [await debugger.readable(each) for each in await debugger.variables(found.reference)]
    return _values("parts", parts, args)


def _values(name: str, variables: list[Variable], args: Values, *, line: str = "") -> JsonObject:
    shown = within_budget(ranked(variables, line=line), args.budget)
    values: JsonObject = dict(shown.values)
    if args.detailed:
        types = {variable.name: variable.type for variable in variables}
        values = {each: {"value": text, "type": types[each]} for each, text in values.items()}
    return {name: values, **shown.about_left_out()}


async def frame_at(session: DebugSession, wanted: int | None = None) -> Frame:
    """A frame by its number; without one, the frame that the stop showed."""
    stop = session.require_stopped()
    index = session.shown_frame if wanted is None else wanted
    frames, total = await session.debugger.stack(stop.thread, count=index + 1)
    if index < len(frames):
        return frames[index]
    raise InvalidArguments(
        f"Frame {index} does not exist; the stack has {total}.",
        code=ErrorCode.INTROSPECTION_INVALID_FRAME,
        instruction="List frames with target=stack.",
    )


class VariableArguments(ActionArguments, Values):
    also: ClassVar = {"read": "get", "write": "set", "modify": "set", "update": "set"}

    action: Literal["get", "set", "patch"] = "get"
    expression: Annotated[str | None, Field(description="For get")] = None
    name: Annotated[str | None, Field(description="For set: what to assign to")] = None
    value: Annotated[str | None, Field(description="For set: an expression")] = None
    code: Annotated[str | None, Field(description="For patch: statements to run in the frame")] = None


@debug_tool()
async def variable(service: DebugService, args: VariableArguments, context: CallContext) -> Result[Any]:
    """Get or set a value, or run code in a frame."""
    async with service.session(args.session_id, context, operation=f"variable {args.action}") as session:
        frame = await frame_at(session, args.frame)
        match args.action:
            case "get":
                return await _get_value(session, frame, args)
            case "set":
                return await _set_value(session, frame.id, args)
            case "patch":
                return await _run_code(session, frame.id, args)


async def _get_value(session: DebugSession, frame: Frame, args: VariableArguments) -> Result[Any]:
    expression = require_argument(args.expression or args.name, "expression")
    found = await _read(session, expression, frame, may_run=True)
    data: JsonObject = {"value": text_of(found, longest=_LONGEST), "type": found.type}
    data |= await _parts(session, found, args)
    return answer(session, f"{expression} = {data['value'][:200]}", data)


async def _set_value(session: DebugSession, frame: int, args: VariableArguments) -> Result[Any]:
    name, value = require_argument(args.name or args.expression, "name"), require_argument(args.value, "value")
    _require_side_effects(session, f"{name} = {value}")
    try:
        made = await session.debugger.assign(name, value, frame)
    except RequestFailed as error:
        raise ToolError(
            f"`{name}` cannot be set to `{value}`: {error.message[:300]}",
            code=ErrorCode.EXECUTION_VARIABLE_SET_FAILED,
            instruction="The value is an expression of the program's language: put quotes around a string.",
        ) from None
    text = text_of(replace(made, name=name))
    return answer(session, f"{name} is now {text}", {"name": name, "value": text, "type": made.type})


async def _run_code(session: DebugSession, frame: int, args: VariableArguments) -> Result[Any]:
    code = require_argument(args.code, "code")
    _require_side_effects(session, code)
    if not find_language(session.language).can_eval:
        raise unsupported(
            f"The {session.language} debugger cannot run code in a frame.",
            "Set single values with action=set, or change the source and restart the session.",
        )
    made = await session.debugger.evaluate(code, frame, "repl")
    return answer(session, "The code ran in the frame.", {"value": text_of(made)})


def _require_side_effects(session: DebugSession, what: str) -> None:
    if not session.allows_side_effects:
        raise ToolError(
            f"`{what[:80]}` changes the program, and this session only reads.",
            code=ErrorCode.EXECUTION_NOT_ALLOWED,
            instruction="Start the session with allow_side_effects, if the user agrees to it.",
        )


class Watch(ActionArguments):
    also: ClassVar = {"add": "set", "delete": "remove", "rm": "remove", "ls": "list"}

    action: Literal["set", "remove", "list"] = "list"
    expression: Annotated[str | None, Field(description="What to show at every stop")] = None
    session_id: str | None = None


@debug_tool()
async def watch(service: DebugService, args: Watch, context: CallContext) -> Result[Any]:
    """Show expressions at every stop."""
    async with service.session(args.session_id, context, operation=f"watch {args.action}") as session:
        watched = service.watches.setdefault(session.key, [])
        summary = await _change_watches(session, watched, args)
        values: dict[str, str | None] = dict.fromkeys(watched)
        if session.stop is not None:
            frame = await frame_at(session)
            values = {each: await watched_text(session.debugger, each, frame) for each in watched}
        return answer(session, summary, {"watch": values})


async def _change_watches(session: DebugSession, watched: list[str], args: Watch) -> str:
    if args.action == "list":
        return f"{len(watched)} watched"
    expression = require_argument(args.expression, "expression")
    if args.action == "set":
        return await _add_watch(session, watched, expression)
    if expression not in watched:
        raise InvalidArguments(f"`{expression}` is not watched.", instruction="List them with action=list.")
    watched.remove(expression)
    return f"`{expression}` is no longer shown."


async def _add_watch(session: DebugSession, watched: list[str], expression: str) -> str:
    """Add a watch; tools that only read evaluate it, so that it must only read in every session."""
    if session.language == "python":
        require_reading(expression, "python", allowed=False)
    elif session.stop is not None:
        try:
            await session.debugger.read(expression, (await frame_at(session)).id)
        except NotReadable as refused:
            raise _not_readable(session, expression, refused) from None
        except RequestFailed:
            # It may have a value elsewhere.
            pass
    if expression not in watched:
        if len(watched) >= _MAX_WATCHES:
            raise InvalidArguments(
                f"Too many watched expressions (limit {_MAX_WATCHES}).", instruction="Remove one first."
            )
        watched.append(expression)
    return f"`{expression}` is shown at every stop."
