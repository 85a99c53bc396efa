"""An agent as a tool: start answers with a handle, and status, wait and cancel are actions of the same tool."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.agent.definition import AgentDefinition
from trysquare.agent.request import AgentRequest
from trysquare.agent.runs import AgentJobs, RunView
from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject

ROOM = "agents"
LONGEST_WAIT = 300.0

Job = Annotated[str, Field(description="What start answered with", min_length=1, max_length=100)]


class StartArguments(ToolArguments):
    """Arguments of start."""

    action: Literal["start"]
    task: Annotated[str, Field(description="What it is to do, with everything it has to know", min_length=1)]
    steps: Annotated[int | None, Field(description="Most steps it may take", ge=1, le=500)] = None
    tokens: Annotated[int | None, Field(description="Most tokens it may use", ge=1)] = None
    seconds: Annotated[float | None, Field(description="Most seconds it may take (start), or to wait (wait)", gt=0)] = (
        None
    )


class StatusArguments(ToolArguments):
    """Arguments of status."""

    action: Literal["status"]
    job: Job


class WaitArguments(ToolArguments):
    """Arguments of wait."""

    action: Literal["wait"]
    job: Job
    seconds: Annotated[float | None, Field(description="Most seconds it may take (start), or to wait (wait)", gt=0)] = (
        None
    )


class CancelArguments(ToolArguments):
    """Arguments of cancel."""

    action: Literal["cancel"]
    job: Job


AgentArguments = StartArguments | StatusArguments | WaitArguments | CancelArguments


def agent_tool(definition: AgentDefinition, jobs: AgentJobs) -> Tool:
    """The tool of one agent."""

    async def agent(args: AgentArguments, context: CallContext) -> Result[Any]:
        return await _done(definition, jobs, args, context)

    return tool(
        agent,
        name=definition.name,
        title=definition.title,
        description=definition.description,
        room=ROOM,
        category="agents",
        prefix="agent",
        use_when="the work takes many steps that you need not see one by one",
        avoid_when="one or two calls of other tools do it",
        limits="Works alone: a call that needs a person waits for `trysquare approve`",
        read_only=definition.workspace == "copy",
        destructive=definition.workspace == "project",
        result_limit=None,
        meta={"trysquare/read_only_actions": ("status", "wait")},
        examples=(
            Example(arguments={"action": "start", "task": "Make the failing test pass"}, explanation="Begin."),
            Example(arguments={"action": "wait", "job": "Zk3…", "seconds": 60}, explanation="Wait up to a minute."),
        ),
    )


async def _done(
    definition: AgentDefinition, jobs: AgentJobs, args: AgentArguments, context: CallContext
) -> Result[Any]:
    principal = context.principal.subject
    match args:
        case StartArguments():
            request = AgentRequest(
                agent=definition.name,
                task=args.task,
                steps=args.steps,
                tokens=args.tokens,
                seconds=args.seconds,
                principal=principal,
            )
            return _told(definition, await jobs.start(request, principal=principal), context)
        case StatusArguments():
            return _told(definition, await jobs.look(args.job, principal=principal), context)
        case WaitArguments():
            return _told(definition, await _waited(jobs, args, principal, context), context)
        case CancelArguments():
            return _told(definition, await jobs.cancel(args.job, principal=principal), context)


async def _waited(jobs: AgentJobs, args: WaitArguments, principal: str, context: CallContext) -> RunView:
    """Wait for the end of a run, and tell the client of each step meanwhile."""
    view = await jobs.look(args.job, principal=principal)
    try:
        async with asyncio.timeout(min(args.seconds or LONGEST_WAIT, LONGEST_WAIT)):
            while not view.ended:
                view = await jobs.changed(args.job, principal=principal, known=view.done)
                await context.progress(view.done, view.total, view.message)
    except TimeoutError:
        return await jobs.look(args.job, principal=principal)
    return view


def _told(definition: AgentDefinition, view: RunView, context: CallContext) -> Result[Any]:
    if view.agent != definition.name:
        return Result.failure(
            f"The job `{view.job[:40]}` is one of the agent {view.agent}.", code=ErrorCode.JOB_NOT_FOUND
        )
    if view.error is not None:
        return Result.failure(view.error, code=view.code or ErrorCode.TOOL_FAILED, fields=_fields(view))
    if view.ended:
        return _ended(view)
    return Result[Any].ok(
        message=f"Step {view.done} of {view.total or '?'}: {view.message}",
        instruction="Call wait with this job until it has ended.",
        next={"name": f"agent_{definition.name}", "arguments": {"action": "wait", "job": view.job}},
        fields=_fields(view),
    )


def _ended(view: RunView) -> Result[Any]:
    """What came of a run: a failure where it did not finish its work."""
    if view.outcome is None:
        return Result[Any].ok(message=f"The run is {view.state}.", fields=_fields(view))
    status, told = view.outcome["status"], f"{view.outcome['status']}: {view.outcome['summary']}"
    if status == "finished":
        return Result[Any].ok(message=told, fields=_fields(view))
    code = ErrorCode.BUDGET_EXHAUSTED if status == "out_of_budget" else ErrorCode.TOOL_FAILED
    return Result.failure(told, code=code, fields=_fields(view))


def _fields(view: RunView) -> JsonObject:
    fields: JsonObject = {"job": view.job, "state": view.state, "step": view.done}
    return fields if view.outcome is None else {**fields, "outcome": view.outcome}
