"""breakpoint: set, list and remove breakpoints; stop at exceptions, functions and changes of data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.debug.debugger import Access, BreakpointSpec, FunctionBreakpoint
from trysquare.debug.guard import require_parts
from trysquare.debug.responses import answer
from trysquare.debug.service import ActionArguments, DebugService, debug_tool, require_argument, unbound
from trysquare.debug.sessions.launch import Location, read_location
from trysquare.debug.sessions.session import Breakpoint, DebugSession
from trysquare.debug.tools.inspection import frame_at

_MOST = 1000
_LISTED = 20
"""Breakpoints that are listed one by one; of more, the lines per file are."""
_ACCESSED = {"read": "read", "write": "written", "readWrite": "read or written"}


class BreakpointArguments(ActionArguments):
    also: ClassVar = {"add": "set", "delete": "remove", "rm": "remove", "clear": "clear_all", "ls": "list"}

    action: Literal["set", "remove", "list", "clear_all", "watch", "unwatch", "exceptions", "function"] = "set"
    location: Annotated[str | None, Field(description="file:line or file:line:column")] = None
    locations: Annotated[list[str] | None, Field(description="Or many, each file:line", max_length=_MOST)] = None
    column: Annotated[int | None, Field(ge=1)] = None
    condition: Annotated[str | None, Field(description="Stop only where this is true")] = None
    hit_condition: Annotated[str | None, Field(description='Such as "5", ">=3" or "%2"')] = None
    log_message: Annotated[str | None, Field(description="Log this instead of stopping: i is {i}")] = None
    name: Annotated[str | None, Field(description="Of the function, or the value to watch")] = None
    access_type: Annotated[Access, Field(description="For watch")] = "write"
    filters: Annotated[list[str] | None, Field(description="For exceptions: raised, uncaught …; [] for none")] = None
    session_id: str | None = None


# Documented as in guide/tools/README.md.
@debug_tool()
async def breakpoint(service: DebugService, args: BreakpointArguments, context: CallContext) -> Result[Any]:
    """Set, remove or list breakpoints."""
    operation = " ".join(["breakpoint", args.action, *filter(None, [args.location, args.name])])
    async with service.session(args.session_id, context, operation=operation) as session:
        summary = await _ACTIONS[args.action](session, args)
        return answer(session, summary, stops_json(session), warnings=unbound(session))


async def _list(session: DebugSession, args: BreakpointArguments) -> str:
    return f"{len(session.breakpoints)} breakpoints"


async def _clear_all(session: DebugSession, args: BreakpointArguments) -> str:
    gone = await session.remove_breakpoints([each.number for each in session.breakpoints])
    others = await session.rules.clear()
    return f"Removed {len(gone) + others} breakpoints."


async def _remove(session: DebugSession, args: BreakpointArguments) -> str:
    if args.name and not (args.location or args.locations):
        await session.rules.remove_function(args.name)
        return f"Removed the breakpoint at function `{args.name}`."
    locations = _locations(session, args)
    numbers: list[int] = []
    for location in locations:
        found = [each.number for each in session.breakpoints if _is_at(each, location)]
        if not found:
            raise InvalidArguments(f"No breakpoint at {location}.", instruction="List them with action=list.")
        numbers += found
    await session.remove_breakpoints(numbers)
    if len(locations) > 1:
        return f"Removed {len(numbers)} breakpoints."
    return f"Removed the breakpoint at {locations[0]}."


async def _set(session: DebugSession, args: BreakpointArguments) -> str:
    locations = _locations(session, args)
    specs = [
        breakpoint_spec(args, each, language=session.language, allowed=session.allows_side_effects)
        for each in locations
    ]  # fmt: skip
    made = await session.add_breakpoints(specs)
    if len(made) > 1:
        bound = sum(each.bound.verified for each in made)
        return f"Set {len(made)} breakpoints: {bound} bound, {len(made) - bound} not bound."
    [only] = made
    moved = f" (not at line {only.spec.line}, which has no code)" if only.is_moved else ""
    return f"{'Set' if only.bound.verified else 'Not bound yet:'} a breakpoint at {only.location}{moved}."


async def _watch(session: DebugSession, args: BreakpointArguments) -> str:
    name = require_argument(args.name, "name", "Name the value to watch.")
    _require_reading(session, args)
    frame = await frame_at(session)
    await session.rules.watch(name, frame=frame.id, access=args.access_type, condition=args.condition)
    return f"It stops when `{name}` is {_ACCESSED[args.access_type]}."


async def _unwatch(session: DebugSession, args: BreakpointArguments) -> str:
    name = require_argument(args.name, "name", "Name the value that is watched.")
    await session.rules.unwatch(name)
    return f"`{name}` is no longer watched."


async def _function(session: DebugSession, args: BreakpointArguments) -> str:
    name = require_argument(args.name, "name", "Name the function to stop in.")
    session.require_alive()
    if session.language == "python" and not name.isidentifier():
        raise InvalidArguments(
            f"`{name}` is not a plain function name.",
            instruction=f"Send `{name.rpartition('.')[2]}`: it stops in every function of that name.",
        )
    _require_reading(session, args)
    guarded = not session.allows_side_effects
    wanted = FunctionBreakpoint(name=name, condition=args.condition, hit_condition=args.hit_condition, guarded=guarded)
    bound = await session.rules.stop_at_function(wanted)
    return f"It stops where `{name}` is entered." if bound.verified else f"Not bound yet: {bound.message or name}."


async def _exceptions(session: DebugSession, args: BreakpointArguments) -> str:
    if args.filters is None:
        known = ", ".join(session.debugger.capabilities.exception_filters) or "none"
        raise InvalidArguments(
            "`filters` is missing.",
            code=ErrorCode.VALIDATION_MISSING_PARAM,
            instruction=f"Filters of the {session.language} debugger: {known}.",
        )
    await session.rules.stop_at_exceptions(args.filters)
    return f"It stops at exceptions: {', '.join(args.filters) or 'none'}."


_ACTIONS = {
    "set": _set, "remove": _remove, "list": _list, "clear_all": _clear_all, "watch": _watch, "unwatch": _unwatch,
    "exceptions": _exceptions, "function": _function,
}  # fmt: skip


def breakpoint_spec(given: ToolArguments, location: Location, *, language: str, allowed: bool) -> BreakpointSpec:
    """The breakpoint of a call; its conditions are refused if they could do more than read."""
    parts = given.model_dump(include={"condition", "hit_condition", "log_message"})
    require_parts(language, **parts, allowed=allowed, file=location.file)
    return BreakpointSpec(file=location.file, line=location.line, column=location.column, guarded=not allowed, **parts)


def _require_reading(session: DebugSession, args: BreakpointArguments) -> None:
    conditions = (args.condition, args.hit_condition, args.log_message)
    require_parts(session.language, *conditions, allowed=session.allows_side_effects)


def _locations(session: DebugSession, args: BreakpointArguments) -> list[Location]:
    if args.locations and not args.location:
        return [read_location(text, session.root, column=args.column) for text in args.locations]
    text = require_argument(args.location, "location", "Write it as file:line, such as src/app.py:42.")
    return [read_location(each, session.root, column=args.column) for each in (text, *(args.locations or ()))]


def _is_at(breakpoint: Breakpoint, location: Location) -> bool:
    """Whether a breakpoint was requested at a location or is bound there; without a column, anywhere on the line."""
    spec = breakpoint.spec
    if spec.file != location.file or location.line not in (spec.line, breakpoint.bound.line):
        return False
    return location.column is None or location.column == spec.column


def stops_json(session: DebugSession) -> JsonObject:
    rules = session.rules
    others: JsonObject = {
        "functions": [_function_json(each) for each in rules.functions.values()],
        "watched": [{"name": name, "access_type": each.access} for name, each in rules.watched.items()],
        "exceptions": None if rules.exception_filters is None else list(rules.exception_filters),
    }
    listed = _many_json if len(session.breakpoints) > _LISTED else _each_json
    return listed(session.breakpoints) | {name: part for name, part in others.items() if part}


def _each_json(breakpoints: Sequence[Breakpoint]) -> JsonObject:
    return {"breakpoints": [_breakpoint_json(each) for each in breakpoints]}


def _many_json(breakpoints: Sequence[Breakpoint]) -> JsonObject:
    """Many breakpoints: the bound lines per file, and the others with their reasons."""
    bound: dict[str, list[int]] = {}
    for each in breakpoints:
        if each.bound.verified:
            bound.setdefault(each.spec.file, []).append(each.bound.line or each.spec.line)
    reasons: dict[str, list[str]] = {}
    for each in breakpoints:
        if not each.bound.verified:
            reasons.setdefault(each.bound.message or "no reason given", []).append(each.location)
    moved = [f"{each.spec.file}:{each.spec.line} -> {each.bound.line}" for each in breakpoints if each.is_moved]
    found: JsonObject = {"count": len(breakpoints), "bound": bound, "not_bound": reasons, "moved": moved}
    return {"breakpoints": {name: part for name, part in found.items() if part}}


def _function_json(wanted: FunctionBreakpoint) -> JsonObject:
    found: JsonObject = {"name": wanted.name, "bound": wanted.bound.verified}
    return found if wanted.bound.verified else {**found, "why": wanted.bound.message}


def _breakpoint_json(breakpoint: Breakpoint) -> JsonObject:
    spec = breakpoint.spec
    fields = {
        "location": breakpoint.location,
        "bound": breakpoint.bound.verified,
        "moved_from": spec.line if breakpoint.is_moved else None,
        "why": None if breakpoint.bound.verified else breakpoint.bound.message,
        **{name: getattr(spec, name) for name in ("condition", "column", "hit_condition", "log_message")},
    }
    return {name: value for name, value in fields.items() if value is not None}
