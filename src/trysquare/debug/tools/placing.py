"""breakpoint: where a program stops, and when: at lines, functions, exceptions and values."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.debug.arguments import ActionArguments
from trysquare.debug.debugger import BreakpointSpec, FunctionBreakpoint
from trysquare.debug.desk import Desk, unbound
from trysquare.debug.guarding import require_parts
from trysquare.debug.locations import Location, read_location
from trysquare.debug.names import BreakpointAction, ToolName
from trysquare.debug.responses import answer
from trysquare.debug.session import Breakpoint, Session
from trysquare.debug.stop_rules import Entered
from trysquare.debug.tools.looking import frame_at


class BreakpointArguments(ActionArguments):
    """Arguments of breakpoint."""

    also: ClassVar = {"add": "set", "delete": "remove", "rm": "remove", "clear": "clear_all", "ls": "list"}

    action: BreakpointAction = "set"
    location: Annotated[str | None, Field(description="file:line or file:line:column")] = None
    column: Annotated[int | None, Field(ge=1)] = None
    condition: Annotated[str | None, Field(description="Stop only where this holds")] = None
    hit_condition: Annotated[str | None, Field(description='Such as "5", ">=3" or "%2"')] = None
    log_message: Annotated[str | None, Field(description="Tell this instead of stopping: i is {i}")] = None
    name: Annotated[str | None, Field(description="Of the function, or the value to watch")] = None
    access_type: Annotated[Literal["read", "write", "readWrite"], Field(description="For watch")] = "write"
    filters: Annotated[list[str] | None, Field(description="For exceptions: raised, uncaught …; [] for none")] = None
    session_id: str | None = None


def breakpoint_tool(desk: Desk) -> Tool:
    """The tool for breakpoints."""

    async def breakpoint(args: BreakpointArguments, context: CallContext) -> Result[Any]:
        """Set, remove or list places to stop at."""
        operation = " ".join(["breakpoint", args.action, *filter(None, [args.location, args.name])])
        async with desk.session(args.session_id, context, operation=operation) as session:
            summary = await _DONE[args.action](desk, session, args)
            return answer(session, summary, places_json(session), warnings=unbound(session))

    return tool(breakpoint, name=ToolName.BREAKPOINT, room="debug", category="debug", result_limit=None)


async def _list(desk: Desk, session: Session, args: BreakpointArguments) -> str:
    return f"{len(session.breakpoints)} breakpoints"


async def _clear_all(desk: Desk, session: Session, args: BreakpointArguments) -> str:
    gone = await session.remove_breakpoints([each.number for each in session.breakpoints])
    others = await session.rules.clear()
    return f"Removed {len(gone) + others} breakpoints."


async def _remove(desk: Desk, session: Session, args: BreakpointArguments) -> str:
    if args.name and not args.location:
        await session.rules.forget_function(args.name)
        return f"It no longer stops in `{args.name}`."
    place = _location(desk, session, args)
    numbers = [each.number for each in session.breakpoints if _is_at(each, place)]
    if not numbers:
        raise InvalidArguments(f"There is no breakpoint at {place}.", instruction="See them with action=list.")
    await session.remove_breakpoints(numbers)
    return f"Removed the breakpoint at {place}."


async def _set(desk: Desk, session: Session, args: BreakpointArguments) -> str:
    place = _location(desk, session, args)
    _require_reading(session, args, place.file)
    made = await session.add_breakpoint(
        BreakpointSpec(
            file=place.file,
            line=place.line,
            column=place.column,
            condition=args.condition,
            hit_condition=args.hit_condition,
            log_message=args.log_message,
            guarded=not session.allows_side_effects,
        )
    )
    return f"{'Set' if made.bound.verified else 'Not bound yet:'} a breakpoint at {made.location}."


async def _watch(desk: Desk, session: Session, args: BreakpointArguments) -> str:
    name = _needed(args.name, "name", "Name the value to watch.")
    _require_reading(session, args)
    frame = await frame_at(session, 0)
    await session.rules.watch(name, frame=frame.id, access=args.access_type, condition=args.condition)
    return f"It stops when `{name}` is {_ACCESSED[args.access_type]}."


async def _unwatch(desk: Desk, session: Session, args: BreakpointArguments) -> str:
    name = _needed(args.name, "name", "Name the value that is watched.")
    await session.rules.unwatch(name)
    return f"`{name}` is no longer watched."


async def _function(desk: Desk, session: Session, args: BreakpointArguments) -> str:
    name = _needed(args.name, "name", "Name the function to stop in.")
    session.require_alive()
    if session.language == "python" and not name.isidentifier():
        raise InvalidArguments(
            f"`{name}` is not a name that Python's debugger knows a function by.",
            instruction=f"Give its own name, `{name.rpartition('.')[2]}`: it stops in every function of that name.",
        )
    _require_reading(session, args)
    guarded = not session.allows_side_effects
    wanted = FunctionBreakpoint(name=name, condition=args.condition, hit_condition=args.hit_condition, guarded=guarded)
    bound = await session.rules.stop_at_function(wanted)
    return f"It stops where `{name}` is entered." if bound.verified else f"Not bound yet: {bound.message or name}."


async def _exceptions(desk: Desk, session: Session, args: BreakpointArguments) -> str:
    if args.filters is None:
        known = ", ".join(session.debugger.abilities.exception_filters) or "none"
        raise InvalidArguments(
            "`filters` is missing.",
            code=ErrorCode.VALIDATION_MISSING_PARAM,
            instruction=f"The debugger of {session.language} knows: {known}.",
        )
    await session.rules.stop_at_exceptions(args.filters)
    return f"It stops at exceptions that are: {', '.join(args.filters)}." if args.filters else "It stops at none."


_DONE = {
    "set": _set,
    "remove": _remove,
    "list": _list,
    "clear_all": _clear_all,
    "watch": _watch,
    "unwatch": _unwatch,
    "exceptions": _exceptions,
    "function": _function,
}
_ACCESSED = {"read": "read", "write": "written", "readWrite": "read or written"}


def _require_reading(session: Session, args: BreakpointArguments, file: str = "") -> None:
    require_parts(
        session.language, args.condition, args.hit_condition, args.log_message,
        allowed=session.allows_side_effects, file=file,
    )  # fmt: skip


def _location(desk: Desk, session: Session, args: BreakpointArguments) -> Location:
    text = _needed(args.location, "location", "Write it as file:line, such as src/app.py:42.")
    return read_location(text, session.root or desk.config.root, column=args.column)


def _needed(given: str | None, name: str, instruction: str) -> str:
    if given:
        return given
    raise InvalidArguments(f"`{name}` is missing.", code=ErrorCode.VALIDATION_MISSING_PARAM, instruction=instruction)


def _is_at(breakpoint: Breakpoint, place: Location) -> bool:
    """Whether a breakpoint was asked for at a place, or is there now. Without a column any on the line is meant."""
    spec = breakpoint.spec
    if spec.file != place.file or place.line not in (spec.line, breakpoint.bound.line):
        return False
    return place.column is None or place.column == spec.column


def places_json(session: Session) -> JsonObject:
    """Everything at which a session stops, as a result tells it."""
    rules = session.rules
    told: JsonObject = {
        "functions": [_function_json(name, each) for name, each in rules.functions.items()],
        "watched": [{"name": name, "access_type": each.wanted.access} for name, each in rules.watched.items()],
        "exceptions": None if rules.exception_filters is None else list(rules.exception_filters),
    }
    more = {name: part for name, part in told.items() if part}
    return {"breakpoints": [breakpoint_json(each) for each in session.breakpoints], **more}


def _function_json(name: str, entered: Entered) -> JsonObject:
    told: JsonObject = {"name": name, "bound": entered.bound.verified}
    return told if entered.bound.verified else {**told, "why": entered.bound.message}


def breakpoint_json(breakpoint: Breakpoint) -> JsonObject:
    """A breakpoint as a result tells it."""
    spec = breakpoint.spec
    told = {
        "location": breakpoint.location,
        "bound": breakpoint.bound.verified,
        "why": None if breakpoint.bound.verified else breakpoint.bound.message,
        "condition": spec.condition,
        "column": spec.column,
        "hit_condition": spec.hit_condition,
        "log_message": spec.log_message,
    }
    return {name: value for name, value in told.items() if value is not None}
