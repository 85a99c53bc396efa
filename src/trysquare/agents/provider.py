"""Lifespan of the agents: each one as a tool that starts, watches and cancels its runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.agents.definition import AgentDefinition, known_definitions
from trysquare.agents.jobs import AgentJobs, DurableJobs, InProcessJobs, RunView
from trysquare.agents.journal import Journal, agent_bodies, report_config_error
from trysquare.agents.run import AgentOutcome, AgentRequest
from trysquare.agents.runner import AgentEnvironment, run_request, run_stored_request
from trysquare.core.arguments import ToolArguments
from trysquare.core.concurrency import shielded
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode
from trysquare.core.json import JsonObject
from trysquare.core.metadata import Example, TaskOptions
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.toolset import StaticToolset, Toolset
from trysquare.jobs import JobsAddress, RunEngine, open_engine

TOOLSET = "agents"
MAX_WAIT = 300.0
_JOB = "agent:job"
"""The checkpoint of a task: the job of its run."""

Seconds = Annotated[float | None, Field(description="Maximum duration of the run (start) or the wait (wait)", gt=0)]
Job = Annotated[str, Field(description="The job that start returned", min_length=1, max_length=100)]


class StartArguments(ToolArguments):
    action: Literal["start"]
    task: Annotated[str, Field(description="What to do, with everything the agent has to know", min_length=1)]
    steps: Annotated[int | None, Field(description="Maximum steps", ge=1, le=500)] = None
    tokens: Annotated[int | None, Field(description="Maximum tokens", ge=1)] = None
    seconds: Seconds = None


class StatusArguments(ToolArguments):
    action: Literal["status"]
    job: Job


class WaitArguments(ToolArguments):
    action: Literal["wait"]
    job: Job
    seconds: Seconds = None


class CancelArguments(ToolArguments):
    action: Literal["cancel"]
    job: Job


AgentArguments = StartArguments | StatusArguments | WaitArguments | CancelArguments


# Documented as in guide/tools/README.md.
def agent_tool(definition: AgentDefinition, jobs: AgentJobs) -> Tool:
    async def agent(args: AgentArguments, context: CallContext) -> Result[Any]:
        principal = context.principal.subject
        match args:
            case StartArguments():
                limits = args.model_dump(exclude={"action"})
                request = AgentRequest(agent=definition.name, principal=principal, **limits)
                view = await _start(jobs, request, principal, context)
            case StatusArguments():
                view = await jobs.status(args.job, principal=principal)
            case WaitArguments():
                view = await _wait(jobs, args, principal, context)
            case CancelArguments():
                view = await jobs.cancel(args.job, principal=principal)
        return _response(definition, view)

    async def cancel(checkpoints: Mapping[str, Any], context: CallContext) -> None:
        if _JOB in checkpoints:
            await jobs.cancel(checkpoints[_JOB], principal=context.principal.subject)

    return tool(
        agent,
        name=definition.name,
        title=definition.title,
        description=definition.description,
        toolset=TOOLSET,
        category="agents",
        prefix="agent",
        use_when="the work takes many steps that you need not follow one by one",
        avoid_when="one or two calls of other tools do it",
        limits="Works alone: a call that needs consent waits for `trysquare approve`",
        read_only=definition.workspace == "copy",
        destructive=definition.workspace == "project",
        result_limit=None,
        task=TaskOptions(after=None, resumes=True, on_cancel=cancel),
        meta={"trysquare/read_only_actions": ("status", "wait")},
        examples=(
            Example(arguments={"action": "start", "task": "Make the failing test pass"}, explanation="Start a run."),
            Example(arguments={"action": "wait", "job": "Zk3…", "seconds": 60}, explanation="Wait up to a minute."),
        ),
    )


async def _start(jobs: AgentJobs, request: AgentRequest, principal: str, context: CallContext) -> RunView:
    """Start a run. A call that is a task ends with its run, and goes on with the same one after a restart."""
    if not await context.become_task():
        return await jobs.start(request, principal=principal)
    job = context.checkpoints.get(_JOB)
    if job is None:
        job = (await jobs.start(request, principal=principal)).job
        await context.checkpoint(_JOB, job)
    try:
        view = await jobs.status(job, principal=principal)
        while not view.ended:
            await context.progress(view.done, view.total, view.message)
            view = await jobs.wait(job, principal=principal, known=view.done)
    except asyncio.CancelledError:
        if not context.runs_again:
            await shielded(jobs.cancel(job, principal=principal))
        raise
    return view


async def _wait(jobs: AgentJobs, args: WaitArguments, principal: str, context: CallContext) -> RunView:
    """Wait for the end of a run and report each step as progress."""
    view = await jobs.status(args.job, principal=principal)
    try:
        async with asyncio.timeout(min(args.seconds or MAX_WAIT, MAX_WAIT)):
            while not view.ended:
                view = await jobs.wait(args.job, principal=principal, known=view.done)
                await context.progress(view.done, view.total, view.message)
    except TimeoutError:
        return await jobs.status(args.job, principal=principal)
    return view


def _response(definition: AgentDefinition, view: RunView) -> Result[Any]:
    if view.agent != definition.name:
        other = f"The job `{view.job[:40]}` belongs to the agent {view.agent}."
        return Result.failure(other, code=ErrorCode.JOB_NOT_FOUND)
    fields: JsonObject = {"job": view.job, "state": view.state, "step": view.done}
    if view.outcome is not None:
        fields["outcome"] = view.outcome
    if view.error is not None:
        return Result.failure(view.error, code=view.code or ErrorCode.TOOL_FAILED, fields=fields)
    if not view.ended:
        return Result[Any].ok(
            message=f"Step {view.done} of {view.total or '?'}: {view.message}",
            instruction="Call wait with this job until it has ended.",
            next={"name": f"agent_{definition.name}", "arguments": {"action": "wait", "job": view.job}},
            fields=fields,
        )
    if view.outcome is None:
        return Result[Any].ok(message=f"The run is {view.state}.", fields=fields)
    status = view.outcome["status"]
    message = f"{status}: {view.outcome['summary']}"
    if status == "finished":
        return Result[Any].ok(message=message, fields=fields)
    code = ErrorCode.BUDGET_EXHAUSTED if status == "out_of_budget" else ErrorCode.TOOL_FAILED
    return Result.failure(message, code=code, fields=fields)


@asynccontextmanager
async def open_agents(
    environment: AgentEnvironment, *, durable: Callable[[], JobsAddress] | None = None
) -> AsyncGenerator[Toolset]:
    """Open the built-in agents and those of the project as tools. Runs are stopped when the block is left.

    `durable` says where runs are recorded as jobs, which can be resumed; without it they end with the block.
    """

    async def start(request: AgentRequest, journal: Journal) -> AgentOutcome:
        return await report_config_error(run_request(request, environment, journal))

    runs = InProcessJobs(start) if durable is None else DurableJobs(partial(_engine, environment, durable))
    try:
        yield StaticToolset(agent_tool(definition, runs) for definition in known_definitions(environment.agents_folder))
    finally:
        await runs.close()


@asynccontextmanager
async def _engine(environment: AgentEnvironment, durable: Callable[[], JobsAddress]) -> AsyncGenerator[RunEngine]:
    run, seconds = (
        partial(run_stored_request, environment=environment),
        environment.settings.limits.job_question_seconds,
    )
    bodies, address = agent_bodies(run, question_seconds=seconds), durable()
    async with open_engine(address.url, bodies, project=address.project, adopting=True) as engine:
        yield engine
