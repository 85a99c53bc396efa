"""execute and step: letting a stopped program go on, and what came of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.debug.debugger import Stopped
from trysquare.debug.desk import Desk
from trysquare.debug.names import StepAction, ToolName
from trysquare.debug.session import Outcome, Session, Status


class Execute(ToolArguments):
    """Arguments of execute."""

    action: Annotated[Literal["continue", "run", "pause", "wait"], Field(description="What to do")] = "continue"
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
        async with desk.session(args.session_id, context, operation=f"execute {args.action}") as session:
            outcome = await _executed(session, args)
            return await desk.report(session, outcome, timeout=args.timeout, budget=args.budget)

    return tool(execute, name=ToolName.EXECUTE, room="debug", category="debug", result_limit=None)


async def _executed(session: Session, args: Execute) -> Outcome:
    if args.action == "wait":
        return await session.wait(timeout=args.timeout)
    if args.action == "pause":
        return await _paused(session, args.timeout)
    return await session.run(session.debugger.resume, timeout=args.timeout)


async def _paused(session: Session, timeout: float) -> Outcome:
    if session.status is not Status.RUNNING:
        raise ToolError(
            f"The program is not running; it is {session.status}.",
            code=ErrorCode.STATE_NOT_RUNNING,
            instruction="Look into it, or run it on with `execute continue`.",
        )
    threads = await session.debugger.threads()
    await session.debugger.pause(threads[0].id if threads else 0)
    return await session.wait(timeout=timeout)


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
            return await desk.report(session, outcome, timeout=args.timeout, budget=args.budget)

    return tool(step, name=ToolName.STEP, room="debug", category="debug", result_limit=None)


async def _stepped(session: Session, args: Step) -> Outcome:
    outcome: Outcome = None
    for _ in range(args.count):
        outcome = await session.run(lambda thread: session.debugger.step(args.action, thread), timeout=args.timeout)
        if not isinstance(outcome, Stopped) or outcome.reason != "step":
            break
    return outcome
