"""Running an author's function: on the event loop if it is asynchronous, in a thread if it is not."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from trysquare.core.bridge import ThreadBridge, bridged
from trysquare.core.collecting import collected, gathered, gathered_async, may_hold_iterators
from trysquare.core.context import CallContext
from trysquare.core.errors import InputRequired
from trysquare.core.threads import run_in_thread


async def run_function(function: Callable[..., Any], bound: dict[str, Any], context: CallContext) -> Any:
    """Run a function of either kind."""
    run = run_async if inspect.iscoroutinefunction(function) else run_sync
    return await run(function, bound, context)


def _question_in(group: BaseExceptionGroup[BaseException]) -> InputRequired | None:
    """The question that tasks of the function raised in a group: the client is asked all of them."""
    asked, _ = group.split(InputRequired)
    if asked is None:
        return None
    questions: dict[str, Any] = {}
    for error in _leaves(asked):
        questions.update(error.questions)
    return InputRequired(questions)


def _leaves(group: BaseExceptionGroup[InputRequired]) -> Iterator[InputRequired]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


async def run_async(function: Callable[..., Any], bound: dict[str, Any], context: CallContext) -> Any:
    """Await a coroutine function; if it is cancelled, the context tells so too."""
    try:
        returned = await function(**bound)
        return await gathered(returned, context) if may_hold_iterators(returned) else returned
    except BaseExceptionGroup as group:
        if (question := _question_in(group)) is not None:
            raise question from None
        raise
    except asyncio.CancelledError:
        context.cancel_flag.set()
        raise


async def run_sync(function: Callable[..., Any], bound: dict[str, Any], context: CallContext) -> Any:
    """Run a synchronous function in a thread, from which it can wait for what the context offers."""
    bridge = ThreadBridge(asyncio.get_running_loop())
    try:
        # Read in the same thread: what a generator does while it is read is the tool's own work.
        work = functools.partial(_run_and_collect, function, bound, context)
        returned, has_async = await run_in_thread(lambda: bridged(bridge, work))
        if inspect.isawaitable(returned):
            returned = await returned
            return await gathered(returned, context) if may_hold_iterators(returned) else returned
        return await gathered_async(returned, context) if has_async else returned
    except BaseExceptionGroup as group:
        if (question := _question_in(group)) is not None:
            raise question from None
        raise
    except asyncio.CancelledError:
        # A thread cannot be interrupted: the flag tells the tool, which looks at `context.cancelled`.
        context.cancel_flag.set()
        bridge.close()
        raise


def _run_and_collect(function: Callable[..., Any], bound: dict[str, Any], context: CallContext) -> tuple[Any, bool]:
    returned = function(**bound)
    return collected(returned, context) if may_hold_iterators(returned) else (returned, False)
