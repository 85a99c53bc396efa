"""timed: how long each call takes, and how much of that is work of this process."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Generator
from typing import Any

from trysquare.core.context import CallContext
from trysquare.core.result import Result
from trysquare.core.threads import CpuSpent, cpu_spent
from trysquare.core.tool import Call, Tool
from trysquare.core.types import JsonObject
from trysquare.wrappers.meter import Clock, Meter


def timed(tool: Tool, *, meter: Meter) -> Tool:
    """Measure each call of the tool.

    The CPU time is that of the event loop's thread while it works on this call, and not while the call waits; and of
    the thread in which a synchronous tool runs. Of a tool that is called very often, it is measured now and then.
    """
    clock = meter.clock(tool.name)
    return tool.wrapped(_measured(tool.call, clock) if tool.is_async else _measured_in_thread(tool.call, clock))


def _measured_in_thread(inner: Call, clock: Clock) -> Call:
    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        spent = CpuSpent()
        token = cpu_spent.set(spent)
        try:
            return await _measured(inner, clock, spent)(arguments, context)
        finally:
            cpu_spent.reset(token)

    return call


def _measured(inner: Call, clock: Clock, spent: CpuSpent | None = None) -> Call:

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        weight = clock.weight()
        work = _Work(inner(arguments, context)) if weight else None
        started, failed = time.perf_counter(), False
        try:
            result = await (inner(arguments, context) if work is None else work)
            failed = not result.success
            return result
        except Exception:
            failed = True
            raise
        finally:
            cpu = 0.0 if work is None else work.cpu + (0.0 if spent is None else spent.seconds)
            clock.add(time.perf_counter() - started, weight * cpu, failed=failed)

    return call


class _Work:
    """An awaitable that adds up the CPU time of its own steps, so that what runs between them does not count."""

    __slots__ = ("_steps", "cpu")

    def __init__(self, work: Awaitable[Result[Any]]) -> None:
        self._steps = work.__await__()
        self.cpu = 0.0

    def __await__(self) -> Generator[Any, Any, Result[Any]]:
        steps = self._steps
        sent: Any = None
        thrown: BaseException | None = None
        while True:
            started = time.thread_time()
            try:
                waited_for = steps.send(sent) if thrown is None else _throw(steps, thrown)
            except StopIteration as stop:
                return stop.value
            finally:
                self.cpu += time.thread_time() - started
            try:
                sent, thrown = (yield waited_for), None
            except GeneratorExit:
                _close(steps)
                raise
            except BaseException as error:  # noqa: BLE001 - handed to the work itself, which decides
                sent, thrown = None, error


def _throw(steps: Any, error: BaseException) -> Any:
    return steps.throw(error)


def _close(steps: Any) -> None:
    steps.close()
