"""breakpoint: where a program stops, and when."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.debug.debugger import BreakpointSpec
from trysquare.debug.desk import Desk, unbound
from trysquare.debug.guarding import log_expressions, require_reading
from trysquare.debug.locations import read_location
from trysquare.debug.names import ToolName
from trysquare.debug.responses import answer
from trysquare.debug.session import Breakpoint, Session


class BreakpointArguments(ToolArguments):
    """Arguments of breakpoint."""

    action: Annotated[Literal["set", "remove", "list", "clear_all"], Field(description="What to do")] = "set"
    location: Annotated[str | None, Field(description="file:line or file:line:column")] = None
    condition: Annotated[str | None, Field(description="Stop only where this holds")] = None
    hit_condition: Annotated[str | None, Field(description='Such as "5", ">=3" or "%2"')] = None
    log_message: Annotated[str | None, Field(description="Tell this instead of stopping: i is {i}")] = None
    session_id: str | None = None


def breakpoint_tool(desk: Desk) -> Tool:
    """The tool for breakpoints."""

    async def breakpoint(args: BreakpointArguments, context: CallContext) -> Result[Any]:
        """Set, remove or list breakpoints."""
        async with desk.session(
            args.session_id, context, operation=f"breakpoint {args.action} {args.location or ''}"
        ) as session:
            summary = await _done(desk, session, args)
            data: JsonObject = {"breakpoints": [breakpoint_json(each) for each in session.breakpoints]}
            return answer(session, summary, data, warnings=unbound(session))

    return tool(breakpoint, name=ToolName.BREAKPOINT, room="debug", category="debug", result_limit=None)


async def _done(desk: Desk, session: Session, args: BreakpointArguments) -> str:
    match args.action:
        case "list":
            return f"{len(session.breakpoints)} breakpoints"
        case "clear_all":
            gone = await session.remove_breakpoints([each.number for each in session.breakpoints])
            return f"Removed {len(gone)} breakpoints."
        case "remove":
            place = str(read_location(_needed(args.location), desk.config.root))
            numbers = [each.number for each in session.breakpoints if place in (_place(each), each.location)]
            if not numbers:
                raise InvalidArguments(f"There is no breakpoint at {place}.", instruction="See them with action=list.")
            await session.remove_breakpoints(numbers)
            return f"Removed the breakpoint at {place}."
        case "set":
            return await _set(desk, session, args)


async def _set(desk: Desk, session: Session, args: BreakpointArguments) -> str:
    place = read_location(_needed(args.location), desk.config.root)
    for expression in [*([args.condition] if args.condition else []), *log_expressions(args.log_message or "")]:
        require_reading(expression, session.language, allowed=session.allows_side_effects)
    made = await session.add_breakpoint(
        BreakpointSpec(
            file=place.file,
            line=place.line,
            column=place.column,
            condition=args.condition,
            hit_condition=args.hit_condition,
            log_message=args.log_message,
        )
    )
    return f"{'Set' if made.bound.verified else 'Not bound yet:'} a breakpoint at {made.location}."


def _needed(location: str | None) -> str:
    if location:
        return location
    raise InvalidArguments(
        "`location` is missing.",
        code=ErrorCode.VALIDATION_MISSING_PARAM,
        instruction="Write it as file:line, such as src/app.py:42.",
    )


def _place(breakpoint: Breakpoint) -> str:
    return f"{breakpoint.spec.file}:{breakpoint.spec.line}"


def breakpoint_json(breakpoint: Breakpoint) -> JsonObject:
    """A breakpoint as a result tells it."""
    spec = breakpoint.spec
    told = {
        "location": breakpoint.location,
        "bound": breakpoint.bound.verified,
        "why": None if breakpoint.bound.verified else breakpoint.bound.message,
        "condition": spec.condition,
        "hit_condition": spec.hit_condition,
        "log_message": spec.log_message,
    }
    return {name: value for name, value in told.items() if value is not None}
