"""execute and step: letting a stopped program go on, and what came of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.debug.dap.client import ConnectionLost, RequestFailed
from trysquare.debug.debugger import Stopped
from trysquare.debug.desk import Desk
from trysquare.debug.locations import Location, read_location
from trysquare.debug.names import Field as Named
from trysquare.debug.names import StepAction, ToolName
from trysquare.debug.session import Outcome, Session, Status
from trysquare.debug.tools.running import run_to

_AT_ONCE = 0.05
_JUMP_SECONDS = 10.0
_OUTPUT = 1500


class Execute(ToolArguments):
    """Arguments of execute."""

    action: Literal["continue", "run", "pause", "wait", "goto"] = "continue"
    until: Annotated[str | None, Field(description="file:line to run to")] = None
    jump_target: Annotated[str | None, Field(description="file:line to go on at, skipping what is between")] = None
    wait_for_stop: Annotated[bool, Field(description="False answers at once, while it runs")] = True
    collect_output: Annotated[bool, Field(description="Show what it wrote meanwhile")] = True
    session_id: str | None = None
    timeout: Annotated[float, Field(description="Seconds to wait for a stop", gt=0, le=600)] = 30.0
    budget: Annotated[int, Field(description="Tokens for values", ge=50)] = 800


class Step(ToolArguments):
    """Arguments of step."""

    action: Annotated[StepAction, Field(description="Which step")] = "over"
    count: Annotated[int, Field(description="How many", ge=1, le=1000)] = 1
    session_id: str | None = None
    timeout: Annotated[float, Field(gt=0, le=600)] = 10.0
    budget: Annotated[int, Field(description="Tokens for values", ge=50)] = 800


def execute_tool(desk: Desk) -> Tool:
    """The tool that runs on, pauses and waits."""

    async def execute(args: Execute, context: CallContext) -> Result[Any]:
        """Run on to the next stop, pause, or wait."""
        session = desk.sessions.find(args.session_id, principal=context.principal.subject)
        if args.action == "pause":
            # Without waiting for a turn: whoever has it may be waiting for the very stop that this brings.
            await _ask_to_pause(session)
        async with desk.session(args.session_id, context, operation=f"execute {args.action}") as session:
            outcome, warnings = await _executed(desk, session, args)
            in_vain = args.action == "pause" and outcome is None
            result = await desk.report(session, outcome, budget=args.budget, warnings=warnings, paused_in_vain=in_vain)
            return _with_output(result, session, collects=args.collect_output)

    return tool(execute, name=ToolName.EXECUTE, room="debug", category="debug", result_limit=None)


async def _executed(desk: Desk, session: Session, args: Execute) -> tuple[Outcome, tuple[str, ...]]:
    timeout = args.timeout if args.wait_for_stop else _AT_ONCE
    if args.action in ("wait", "pause"):
        return await session.wait(timeout=args.timeout), ()
    session.require_stopped()
    root = session.root or desk.config.root
    if args.jump_target or args.action == "goto":
        outcome = await _jumped(session, _place(args.jump_target or args.until, root))
        if args.action == "goto" or not isinstance(outcome, Stopped):
            return outcome, ()
    if args.until:
        return await run_to(session, [_place(args.until, root)], timeout=timeout)
    return await session.run(session.debugger.resume, timeout=timeout), ()


def _place(text: str | None, root: Path) -> Location:
    if text:
        return read_location(text, root)
    raise InvalidArguments(
        "`jump_target` is missing.",
        code=ErrorCode.VALIDATION_MISSING_PARAM,
        instruction="Write the place to go on at as file:line.",
    )


async def _jumped(session: Session, place: Location) -> Outcome:
    """Let the program stand somewhere else, without running what is between."""
    if not session.debugger.abilities.goto:
        raise ToolError(
            f"The debugger of {session.language} cannot go on at another line.",
            code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
            instruction="Use `until` to run to the line, or variable patch to do what the skipped lines do not.",
        )
    return await session.run(
        lambda thread: session.debugger.goto(place.file, place.line, thread), timeout=_JUMP_SECONDS
    )


async def _ask_to_pause(session: Session) -> None:
    if session.status is not Status.RUNNING:
        raise ToolError(
            f"The program is not running; it is {session.status}.",
            code=ErrorCode.STATE_NOT_RUNNING,
            instruction="Look into it, or run it on with `execute continue`.",
        )
    try:
        threads = await session.debugger.threads()
        await session.debugger.pause(threads[0].id if threads else 0)
    except (RequestFailed, ConnectionLost, TimeoutError) as error:
        raise ToolError(
            f"The debugger could not pause the program: {error or 'no answer in time'}.",
            code=ErrorCode.EXECUTION_FAILED,
            instruction="See with `execute wait` whether it ended, or end it with `session stop`.",
        ) from None


def _with_output(result: Result[Any], session: Session, *, collects: bool) -> Result[Any]:
    """The result with what the program wrote and was not shown yet, in place of the last of all that it wrote."""
    if not collects:
        data = {name: value for name, value in result.fields["data"].items() if name != Named.OUTPUT}
        return replace(result, fields={**result.fields, "data": data})
    page = session.output.page(max(session.output_shown, session.output.total - _OUTPUT), size=_OUTPUT)
    session.output_shown = session.output.total
    data = {name: value for name, value in result.fields["data"].items() if name != Named.OUTPUT}
    if page.text:
        data[str(Named.OUTPUT)] = page.text
    return replace(result, fields={**result.fields, "data": data})


def step_tool(desk: Desk) -> Tool:
    """The tool that steps."""

    async def step(args: Step, context: CallContext) -> Result[Any]:
        """Step over, into or out of the current line."""
        async with desk.session(args.session_id, context, operation=f"step {args.action} x{args.count}") as session:
            if args.action == "back" and not session.debugger.abilities.step_back:
                raise ToolError(
                    f"The debugger of {session.language} cannot step back.",
                    code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
                    instruction="Start again with a breakpoint at the earlier line, or use explain or trace.",
                )
            outcome = await _stepped(session, args)
            return await desk.report(session, outcome, budget=args.budget)

    return tool(step, name=ToolName.STEP, room="debug", category="debug", result_limit=None)


async def _stepped(session: Session, args: Step) -> Outcome:
    outcome: Outcome = None
    for _ in range(args.count):
        outcome = await session.run(lambda thread: session.debugger.step(args.action, thread), timeout=args.timeout)
        if not isinstance(outcome, Stopped) or outcome.reason != "step":
            break
    return outcome
