"""execute, step, run_until: resume a stopped program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.result import Result
from trysquare.debug.debugger import DEBUGGER_ERRORS, BreakpointSpec, StepKind, Stopped, unsupported
from trysquare.debug.guard import require_reading
from trysquare.debug.service import DebugService, debug_tool, require_argument
from trysquare.debug.sessions.launch import Location, read_location
from trysquare.debug.sessions.session import DebugSession, Outcome, Status

_NO_WAIT = 0.05
_JUMP_SECONDS = 10.0
_OUTPUT = 1500
_NEARBY_LINES = 3


class Execute(ToolArguments):
    action: Literal["continue", "run", "pause", "wait", "goto"] = "continue"
    until: Annotated[str | None, Field(description="file:line to run to")] = None
    jump_target: Annotated[str | None, Field(description="file:line to jump to, without running what is between")] = (
        None
    )
    stdin: Annotated[str | None, Field(description="Input to write first")] = None
    wait_for_stop: Annotated[bool, Field(description="False: return at once")] = True
    collect_output: Annotated[bool, Field(description="Include its output")] = True
    session_id: str | None = None
    timeout: Annotated[float, Field(description="Seconds to wait for a stop", gt=0, le=600)] = 30.0
    budget: Annotated[int, Field(description="Tokens for values", ge=50)] = 800


# Documented as in guide/tools/README.md.
@debug_tool()
async def execute(service: DebugService, args: Execute, context: CallContext) -> Result[Any]:
    """Continue to the next stop, pause, or wait."""
    session = service.sessions.find(args.session_id, principal=context.principal.subject)
    if args.action == "pause":
        # Before taking the session's lock: whoever has it may be waiting for the very stop that this brings.
        await _pause(session)
    async with service.session(args.session_id, context, operation=f"execute {args.action}") as session:
        if args.stdin is not None:
            _send_input(session, args.stdin)
        outcome, warnings = await _execute(session, args)
        in_vain = args.action == "pause" and outcome is None
        result = await service.report(session, outcome, budget=args.budget, warnings=warnings, paused_in_vain=in_vain)
        return _with_output(result, session, collects=args.collect_output)


async def _execute(session: DebugSession, args: Execute) -> tuple[Outcome, tuple[str, ...]]:
    timeout = args.timeout if args.wait_for_stop else _NO_WAIT
    if args.action in ("wait", "pause"):
        return await session.wait(timeout=args.timeout), ()
    session.require_stopped()
    if args.jump_target or args.action == "goto":
        outcome = await _jump(session, _location(args.jump_target or args.until, session.root))
        if args.action == "goto" or not isinstance(outcome, Stopped):
            return outcome, ()
    if args.until:
        return await _run_to(session, [_location(args.until, session.root)], timeout=timeout)
    return await session.run(session.debugger.resume, timeout=timeout), ()


def _send_input(session: DebugSession, text: str) -> None:
    session.require_alive()
    if session.send_input is None:
        raise unsupported(
            "The input of this program cannot be written to: it was given at the start, or belongs to another process.",
            "Start the program with session_start and without `stdin`, then send `stdin` with `execute`.",
        )
    session.send_input(text)


def _location(text: str | None, root: Path) -> Location:
    return read_location(require_argument(text, "jump_target", "Write the line to jump to as file:line."), root)


async def _jump(session: DebugSession, location: Location) -> Outcome:
    if not session.debugger.capabilities.goto:
        raise unsupported(
            f"The {session.language} debugger cannot jump to another line.",
            "Use `until` to run to the line, or variable patch to do what the skipped lines do not.",
        )
    return await session.run(
        lambda thread: session.debugger.goto(location.file, location.line, thread), timeout=_JUMP_SECONDS
    )


async def _pause(session: DebugSession) -> None:
    if session.status is not Status.RUNNING:
        raise ToolError(
            f"The program is not running; it is {session.status}.",
            code=ErrorCode.STATE_NOT_RUNNING,
            instruction="Inspect it, or resume it with `execute continue`.",
        )
    try:
        threads = await session.debugger.threads()
        await session.debugger.pause(threads[0].id if threads else 0)
    except DEBUGGER_ERRORS as error:
        raise ToolError(
            f"The debugger could not pause the program: {error or 'timeout'}.",
            code=ErrorCode.EXECUTION_FAILED,
            instruction="Call `execute wait` to see whether it ended, or end it with `session stop`.",
        ) from None


def _with_output(result: Result[Any], session: DebugSession, *, collects: bool) -> Result[Any]:
    """Replace the tail of all output by the output that was not shown yet."""
    data = {name: value for name, value in result.fields["data"].items() if name != "output"}
    if collects:
        page = session.output.page(max(session.output_shown, session.output.total - _OUTPUT), size=_OUTPUT)
        session.output_shown = session.output.total
        if page.text:
            data["output"] = page.text
    return replace(result, fields={**result.fields, "data": data})


class Step(ToolArguments):
    action: StepKind = "over"
    count: Annotated[int, Field(ge=1, le=1000)] = 1
    session_id: str | None = None
    timeout: Annotated[float, Field(gt=0, le=600)] = 10.0
    budget: Annotated[int, Field(description="Tokens for values", ge=50)] = 800


@debug_tool()
async def step(service: DebugService, args: Step, context: CallContext) -> Result[Any]:
    """Step over, into or out of the current line."""
    async with service.session(args.session_id, context, operation=f"step {args.action} x{args.count}") as session:
        if args.action == "back" and not session.debugger.capabilities.step_back:
            raise unsupported(
                f"The {session.language} debugger cannot step back.",
                "Start again with a breakpoint at the earlier line, or use explain or trace.",
            )
        outcome: Outcome = None
        for _ in range(args.count):
            outcome = await session.run(lambda thread: session.debugger.step(args.action, thread), timeout=args.timeout)
            if not isinstance(outcome, Stopped) or outcome.reason != "step":
                break
        return await service.report(session, outcome, budget=args.budget)


class RunUntil(ToolArguments):
    location: Annotated[str, Field(description="file:line to run to")]
    alternative_locations: Annotated[list[str] | None, Field(description="Other lines to stop at")] = None
    condition: Annotated[str | None, Field(description="Stop only where this is true")] = None
    session_id: str | None = None
    timeout: Annotated[float, Field(description="Seconds to wait", gt=0, le=600)] = 30.0
    budget: Annotated[int, Field(description="Tokens for values", ge=50)] = 800


@debug_tool()
async def run_until(service: DebugService, args: RunUntil, context: CallContext) -> Result[Any]:
    """Run to a line, and report if it was not reached."""
    async with service.session(args.session_id, context, operation=f"run_until {args.location}") as session:
        wanted = [read_location(text, session.root) for text in [args.location, *(args.alternative_locations or ())]]
        outcome, missed = await _run_to(session, wanted, condition=args.condition, timeout=args.timeout)
        return await service.report(session, outcome, budget=args.budget, warnings=missed)


async def _run_to(
    session: DebugSession, wanted: list[Location], *, condition: str | None = None, timeout: float
) -> tuple[Outcome, tuple[str, ...]]:
    """Run to one of the locations by temporary breakpoints; warn if the program is elsewhere afterwards."""
    session.require_stopped()
    guarded = not session.allows_side_effects
    if condition is not None:
        for each in wanted:
            require_reading(condition, session.language, allowed=not guarded, file=each.file)
    earlier = {(each.spec.file, each.spec.line): each.spec for each in session.breakpoints}
    specs = [
        BreakpointSpec(file=each.file, line=each.line, column=each.column, condition=condition, guarded=guarded)
        for each in wanted
    ]
    temporary = [await session.add_breakpoint(spec) for spec in specs]
    try:
        outcome = await session.run(session.debugger.resume, timeout=timeout)
    finally:
        for each in temporary:
            before = earlier.get((each.spec.file, each.spec.line))
            if before is None or session.ended is not None:
                await session.remove_breakpoints([each.number])
            else:
                await session.add_breakpoint(before)
    return outcome, await _missed(session, outcome, wanted)


async def _missed(session: DebugSession, outcome: Outcome, wanted: list[Location]) -> tuple[str, ...]:
    names = ", ".join(str(each) for each in wanted)
    if not isinstance(outcome, Stopped):
        return () if outcome is None else (f"The program ended before it reached {names}.",)
    frames, _ = await session.debugger.stack(outcome.thread, count=1)
    is_reached = any(
        frame.file == each.file and abs(frame.line - each.line) <= _NEARBY_LINES for frame in frames for each in wanted
    )
    return () if is_reached else (f"It stopped elsewhere before it reached {names}.",)
