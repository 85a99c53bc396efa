"""run_until: on to a place, past every other, with all breakpoints as they were afterwards."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.debug.debugger import BreakpointSpec, Frame, Stopped
from trysquare.debug.desk import Desk
from trysquare.debug.guarding import require_reading
from trysquare.debug.locations import Location, read_location
from trysquare.debug.names import ToolName
from trysquare.debug.session import Breakpoint, Outcome, Session


class RunUntil(ToolArguments):
    """Arguments of run_until."""

    location: Annotated[str, Field(description="file:line to run to")]
    alternative_locations: Annotated[list[str] | None, Field(description="Other places to stop at")] = None
    condition: Annotated[str | None, Field(description="Stop only where this holds")] = None
    session_id: str | None = None
    timeout: Annotated[float, Field(description="Seconds to wait", gt=0, le=600)] = 30.0
    budget: Annotated[int, Field(description="Tokens for values", ge=50)] = 800


def run_until_tool(desk: Desk) -> Tool:
    """The tool that runs to a place."""

    async def run_until(args: RunUntil, context: CallContext) -> Result[Any]:
        """Run on to a line, and say if it was not reached."""
        async with desk.session(args.session_id, context, operation=f"run_until {args.location}") as session:
            root = session.root or desk.config.root
            places = [read_location(text, root) for text in [args.location, *(args.alternative_locations or ())]]
            outcome, missed = await run_to(session, places, condition=args.condition, timeout=args.timeout)
            return await desk.report(session, outcome, budget=args.budget, warnings=missed)

    return tool(
        run_until,
        name=ToolName.RUN_UNTIL,
        room="debug",
        category="debug",
        result_limit=None,
    )


async def run_to(
    session: Session, places: list[Location], *, condition: str | None = None, timeout: float
) -> tuple[Outcome, tuple[str, ...]]:
    """Run on to one of the places, and tell what came of it, with a warning where it is none of them.

    The breakpoints at the places are there only for now; what stood at them before stands there again after.
    """
    session.require_stopped()
    if condition is not None:
        for place in places:
            require_reading(condition, session.language, allowed=session.allows_side_effects, file=place.file)
    outcome = await _ran(session, places, condition, timeout)
    return outcome, await _missed(session, outcome, places)


async def _ran(session: Session, places: list[Location], condition: str | None, timeout: float) -> Outcome:
    earlier = {(each.spec.file, each.spec.line): each.spec for each in session.breakpoints}
    guarded = not session.allows_side_effects
    made = [await session.add_breakpoint(_spec(place, condition, guarded=guarded)) for place in places]
    try:
        return await session.run(session.debugger.resume, timeout=timeout)
    finally:
        await _restore(session, made, earlier)


async def _restore(session: Session, made: list[Breakpoint], earlier: dict[tuple[str, int], BreakpointSpec]) -> None:
    for each in made:
        before = earlier.get((each.spec.file, each.spec.line))
        if before is None or session.ended is not None:
            await session.remove_breakpoints([each.number])
        else:
            await session.add_breakpoint(before)


def _spec(place: Location, condition: str | None, *, guarded: bool) -> BreakpointSpec:
    return BreakpointSpec(file=place.file, line=place.line, column=place.column, condition=condition, guarded=guarded)


async def _missed(session: Session, outcome: Outcome, places: list[Location]) -> tuple[str, ...]:
    """A warning where the program is somewhere else than it was to run to."""
    wanted = ", ".join(str(place) for place in places)
    if not isinstance(outcome, Stopped):
        return () if outcome is None else (f"The program ended before it came to {wanted}.",)
    frames, _ = await session.debugger.stack(outcome.thread, count=1)
    if any(_is_at(frame, place) for frame in frames for place in places):
        return ()
    return (f"It stopped elsewhere, before it came to {wanted}.",)


def _is_at(frame: Frame, place: Location) -> bool:
    return frame.file == place.file and abs(frame.line - place.line) <= 3
