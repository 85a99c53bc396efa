"""Middleware that logs and measures each call."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from bisect import bisect_left
from collections.abc import Awaitable, Generator
from dataclasses import dataclass
from typing import Any

from trysquare.core.call import log_crash, note_incident
from trysquare.core.context import TRACE, Call, CallContext
from trysquare.core.errors import CallCancelled, ConsentNeeded, InputRequired, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.redaction import redact_text
from trysquare.core.result import Result
from trysquare.core.threads import CpuTime, cpu_spent
from trysquare.core.tool import Tool
from trysquare.middleware.base import Layer

logger = logging.getLogger("trysquare.tools")


def log_calls(tool: Tool) -> Tool:
    """Log each call of the tool, without the values of secret arguments.

    A failure that a tool returns is INFO: its author foresaw it and the model reads it.
    """
    name, inner = tool.name, tool.call
    success_level = TRACE if tool.is_async else logging.DEBUG

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        is_traced = logger.isEnabledFor(TRACE)
        if is_traced:
            logger.log(TRACE, "Tool called: %s", name)
        try:
            result = await inner(arguments, context)
        except (InputRequired, ConsentNeeded):
            logger.info("Tool %s waits for the user", name)
            raise
        except (asyncio.CancelledError, CallCancelled):
            logger.info("Tool %s was cancelled", name)
            raise
        except ToolError as error:
            # The caller's mistake, or a failure that the tool foresaw: nobody has to act on it here.
            logger.info("Tool %s failed: %s", name, redact_text(str(error), arguments, tool.input_schema))
            raise
        except Exception as error:
            problem = redact_text(str(error), arguments, tool.input_schema)
            note_incident(error)
            log_crash(logger, f"Tool {name} failed: {problem}", error, tool.input_schema, arguments)
            raise
        if not result.success:
            logger.info("Tool %s returned a failure: %s", name, result.code or result.error_type)
        elif is_traced or success_level > TRACE:
            logger.log(success_level, "Tool %s completed successfully", name)
        return result

    return tool.wrapped(call)


BOUNDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
"""Upper bounds of the histogram's buckets, in seconds; one more bucket counts longer calls."""
_ALL_MEASURED, _MEASURED_EVERY = 200, 16
"""CPU time is sampled after the first calls: reading a thread's clock is a system call."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolMetrics:
    """Measurements of one tool. Times are in seconds."""

    tool: str
    calls: int
    failures: int
    wall: float
    wall_max: float
    cpu: float
    buckets: tuple[int, ...]
    """Number of calls that took at most `BOUNDS[i]` and longer than the bound before it."""


class Clock:
    """Running sums of one tool."""

    __slots__ = ("_buckets", "_calls", "_cpu", "_failures", "_lock", "_started", "_tool", "_wall", "_wall_max")

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._lock = threading.Lock()
        self._started = self._calls = self._failures = 0
        self._wall = self._wall_max = self._cpu = 0.0
        self._buckets = [0] * (len(BOUNDS) + 1)

    def weight(self) -> int:
        """How many calls the CPU time of the call that starts now represents; 0 if it is not measured."""
        self._started += 1
        if self._started <= _ALL_MEASURED:
            return 1
        return 0 if self._started % _MEASURED_EVERY else _MEASURED_EVERY

    def add(self, wall: float, cpu: float, *, failed: bool) -> None:
        """Count one call; `cpu` is the CPU time of all calls that it represents."""
        with self._lock:
            self._calls += 1
            self._failures += failed
            self._wall += wall
            self._cpu += cpu
            self._buckets[bisect_left(BOUNDS, wall)] += 1
            self._wall_max = max(self._wall_max, wall)

    def times(self) -> ToolMetrics:
        """The sums as they are now."""
        with self._lock:
            return ToolMetrics(
                tool=self._tool, calls=self._calls, failures=self._failures, wall=self._wall, wall_max=self._wall_max,
                cpu=self._cpu, buckets=tuple(self._buckets),
            )  # fmt: skip


class CallMetrics:
    """The clocks of all tools."""

    def __init__(self) -> None:
        self._clocks: dict[str, Clock] = {}
        self._lock = threading.Lock()

    def measured(self, tool: Tool, /) -> Tool:
        """Measure each call of the tool.

        CPU time is that of the event loop's thread while it works on this call, and that of the thread in which a
        synchronous tool runs.
        """
        with self._lock:
            clock = self._clocks.setdefault(tool.name, Clock(tool.name))
        return tool.wrapped(_measured(tool.call, clock) if tool.is_async else _measured_in_thread(tool.call, clock))

    def times(self) -> list[ToolMetrics]:
        """The measurements of the tools that were called, by name."""
        with self._lock:
            clocks = sorted(self._clocks.items())
        return [times for _, clock in clocks if (times := clock.times()).calls]


def _measured_in_thread(inner: Call, clock: Clock) -> Call:
    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        spent = CpuTime()
        token = cpu_spent.set(spent)
        try:
            return await _measured(inner, clock, spent)(arguments, context)
        finally:
            cpu_spent.reset(token)

    return call


def _measured(inner: Call, clock: Clock, spent: CpuTime | None = None) -> Call:
    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        weight = clock.weight()
        work = _TimedWork(inner(arguments, context)) if weight else None
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


class _TimedWork:
    """An awaitable that adds up the CPU time of its own steps, without what runs between them."""

    __slots__ = ("_steps", "cpu")

    def __init__(self, work: Awaitable[Result[Any]]) -> None:
        self._steps = work.__await__()
        self.cpu = 0.0

    def __await__(self) -> Generator[Any, Any, Result[Any]]:
        steps: Any = self._steps
        sent: Any = None
        thrown: BaseException | None = None
        while True:
            started = time.thread_time()
            try:
                waited_for = steps.send(sent) if thrown is None else steps.throw(thrown)
            except StopIteration as stop:
                return stop.value
            finally:
                self.cpu += time.thread_time() - started
            try:
                sent, thrown = (yield waited_for), None
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:  # noqa: BLE001 - handed to the work itself, which decides
                sent, thrown = None, error


MIDDLEWARE = Layer(
    order=20,
    wrap=lambda tool, config: config.meter.measured(log_calls(tool)) if config.meter is not None else log_calls(tool),
)
