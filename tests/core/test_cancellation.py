"""Slow, blocking and cancelled calls: deadlines, flags, and nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Coroutine
from typing import Any

import anyio
import pytest

from trysquare import CallContext, Declarations, ErrorCode, ToolError, call_tool, wait_for
from trysquare.core.context import CancelFlag
from trysquare.core.errors import CallCancelled, DeadlineExceeded
from trysquare.testing import ScriptedCaller, accept, call, make_context

PATIENCE = 10


class Stage:
    """What a tool under test did, seen from outside."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.noticed = threading.Event()
        self.release = threading.Event()
        self.context: CallContext | None = None

    async def has(self, event: threading.Event) -> None:
        assert await asyncio.to_thread(event.wait, PATIENCE)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def tools_for(stage: Stage, timeout: float | None = None) -> Declarations:
    tools = Declarations()

    @tools.declare(timeout=timeout)
    async def linger(context: CallContext) -> None:
        stage.context = context
        stage.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stage.noticed.set()

    @tools.declare(timeout=timeout)
    def grind(context: CallContext) -> None:
        stage.context = context
        stage.started.set()
        while not context.cancelled:
            time.sleep(0.001)
        stage.noticed.set()

    @tools.declare(timeout=timeout)
    def wait_long(context: CallContext) -> None:
        stage.context = context
        stage.started.set()
        try:
            wait_for(asyncio.Event().wait())
        except CallCancelled:
            stage.noticed.set()
            with contextlib.suppress(CallCancelled):
                wait_for(context.progress(1))
            stage.release.set()

    return tools


NAMES = ["linger", "grind", "wait_long"]


async def no_task_is_left(before: set[asyncio.Task[Any]]) -> None:
    """Every task that was not there before comes to its end."""
    if made := asyncio.all_tasks() - before:
        _, left = await asyncio.wait(made, timeout=PATIENCE)
        assert left == set()


@pytest.mark.parametrize("name", NAMES)
async def test_cancelling_a_call_reaches_the_tool_and_leaves_no_task(name: str, stage: Stage) -> None:
    before = asyncio.all_tasks()
    task = asyncio.ensure_future(call(tools_for(stage), name))
    await stage.has(stage.started)
    assert stage.context is not None
    assert not stage.context.cancelled
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await stage.has(stage.noticed)
    assert stage.context.cancelled
    await no_task_is_left(before)


@pytest.mark.parametrize("name", NAMES)
async def test_a_cancel_scope_of_anyio_is_a_cancellation_like_any_other(name: str, stage: Stage) -> None:
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def cancel_once_started() -> None:
                await stage.has(stage.started)
                scope.cancel()

            group.start_soon(cancel_once_started)
            await call(tools_for(stage), name)
            pytest.fail("the call was not cancelled")
    assert scope.cancelled_caught
    await stage.has(stage.noticed)


@pytest.mark.parametrize("name", NAMES)
async def test_a_deadline_of_the_tool_ends_the_call_and_reaches_the_tool(name: str, stage: Stage) -> None:
    before = asyncio.all_tasks()
    result = await call(tools_for(stage, timeout=0.05), name)
    assert (result.code, result.error) == (
        ErrorCode.TOOL_TIMEOUT,
        "Timeout: the call was stopped.",
    )
    await stage.has(stage.noticed)
    await no_task_is_left(before)


@pytest.mark.parametrize("name", NAMES)
async def test_a_deadline_of_the_caller_holds_too(name: str, stage: Stage) -> None:
    result = await call(tools_for(stage, timeout=600), name, context=make_context(timeout=0.05))
    assert result.code is ErrorCode.TOOL_TIMEOUT
    await stage.has(stage.noticed)


async def test_a_deadline_that_has_passed_ends_the_call_at_once(stage: Stage) -> None:
    result = await call(tools_for(stage), "linger", context=make_context(timeout=-1))
    assert result.code is ErrorCode.TOOL_TIMEOUT


async def test_a_timeout_of_the_tools_own_is_a_crash_and_no_deadline() -> None:
    tools = Declarations()

    @tools.declare(timeout=600)
    async def broken() -> None:
        raise TimeoutError("the database did not answer")

    assert (await call(tools, "broken")).code is ErrorCode.INTERNAL_ERROR


async def test_one_context_may_serve_several_calls_and_each_is_cancelled_alone(stage: Stage) -> None:
    shared = make_context()
    toolset = tools_for(stage).toolset()
    task = asyncio.ensure_future(call_tool(toolset, "linger", {}, shared))
    await stage.has(stage.started)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not shared.cancelled

    tools = Declarations()

    @tools.declare
    async def look(context: CallContext) -> bool:
        context.check()
        return context.cancelled

    assert (await call(tools, "look", context=shared)).value is False


async def test_a_flag_set_from_outside_reaches_every_call_of_the_context(stage: Stage) -> None:
    shared = make_context()
    task = asyncio.ensure_future(call(tools_for(stage), "grind", context=shared))
    await stage.has(stage.started)
    shared.cancel_flag.set()
    async with asyncio.timeout(PATIENCE):
        assert (await task).success


def test_a_flag_below_another_is_set_with_it_and_not_the_other_way_round() -> None:
    above = CancelFlag()
    below = above.below()
    below.set()
    assert (above.is_set(), below.is_set()) == (False, True)
    other = above.below()
    above.set()
    assert other.is_set()


def test_check_raises_for_a_cancelled_call_and_for_one_out_of_time() -> None:
    make_context(timeout=60).check()
    cancelled = make_context()
    cancelled.cancel_flag.set()
    with pytest.raises(CallCancelled):
        cancelled.check()
    late = make_context(timeout=-1)
    with pytest.raises(DeadlineExceeded):
        late.check()
    assert late.remaining() == 0
    assert make_context().remaining() is None


async def test_a_synchronous_tool_can_report_and_ask() -> None:
    tools = Declarations()

    @tools.declare
    def survey(context: CallContext) -> str:
        wait_for(context.progress(1, 2, "half"))
        wait_for(context.log("asking", "warning"))
        answer = wait_for(context.ask("Which?", {"type": "object", "properties": {"pick": {"type": "string"}}}))
        return f"{answer.action} {answer.content['pick']} {context.can_ask()}"

    caller = ScriptedCaller(answers=[accept(pick="red")])
    assert (await call(tools, "survey", context=make_context(caller=caller))).value == "accept red True"
    assert [(report.done, report.total, report.message) for report in caller.progress_reports] == [(1, 2, "half")]
    assert caller.log_lines == [("warning", "asking")]
    assert [question.message for question in caller.questions] == ["Which?"]


async def test_an_error_of_what_a_synchronous_tool_waits_for_is_raised_in_the_tool() -> None:
    tools = Declarations()

    async def fail() -> None:
        raise ToolError("Not now.")

    @tools.declare
    def careful() -> str:
        try:
            wait_for(fail())
        except ToolError as error:
            return f"caught {error}"
        return "not raised"

    assert (await call(tools, "careful")).value == "caught Not now."


async def test_waiting_outside_a_synchronous_tool_is_refused() -> None:
    async def nothing() -> None: ...

    with pytest.raises(RuntimeError, match="only inside a synchronous tool"):
        wait_for(nothing())


async def test_asking_where_nobody_can_be_reached_is_a_foreseen_failure() -> None:
    tools = Declarations()

    @tools.declare
    async def ask(context: CallContext) -> None:
        assert not context.can_ask()
        await context.progress(1)
        await context.log("nobody hears this")
        await context.ask("Sure?", {"type": "object", "properties": {}})

    result = await call_tool(tools.toolset(), "ask", {}, CallContext())
    assert result.code is ErrorCode.CAPABILITY_NOT_SUPPORTED
    assert "Sure?" in (result.error or "")
    assert result.instruction


async def test_a_sync_function_that_returns_a_coroutine_is_awaited_and_can_be_cancelled(stage: Stage) -> None:
    tools = Declarations()

    async def later() -> str:
        stage.started.set()
        await asyncio.Event().wait()
        return "never"

    @tools.declare
    def start() -> Coroutine[Any, Any, str]:
        return later()

    task = asyncio.ensure_future(call(tools, "start"))
    await stage.has(stage.started)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
