"""Desk: what the debugger's tools share: the sessions, the settings, and the way from an outcome to an answer."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.result import Result
from trysquare.debug.config import DebugConfig
from trysquare.debug.dap.client import ConnectionLost, RequestFailed
from trysquare.debug.debugger import Stopped
from trysquare.debug.responses import ended_result, running_result, status_of, stopped_result
from trysquare.debug.session import Ended, Outcome, Session
from trysquare.debug.sessions import Sessions
from trysquare.debug.snapshot import BUDGET, Earlier, take_snapshot
from trysquare.debug.stops import StopLog
from trysquare.debug.traces import Trace
from trysquare.processes.nursery import Nursery

DEFAULTS = {"budget": 800, "timeout": 30.0, "frames": 10, "timing": 0}
"""What a principal can set: tokens for values, seconds to wait for a stop, frames to show, whether to tell times."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Desk:
    """What the tools work with."""

    config: DebugConfig
    nursery: Nursery
    sessions: Sessions
    seen: dict[str, Earlier] = field(default_factory=dict[str, Earlier])
    """What was last shown of each session, to tell what changed since."""
    traces: dict[str, Trace] = field(default_factory=dict[str, Trace])
    """The last recorded call of each principal, to be read step by step."""
    stops: StopLog = field(default_factory=StopLog)
    """What was seen at the stops of each session, to be compared."""

    watches: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The expressions that are shown at every stop of a session."""

    chosen: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    """The settings that principals have changed."""

    def settings_of(self, principal: str) -> Mapping[str, float]:
        """The settings that hold for a principal."""
        return {**DEFAULTS, **self.chosen.get(principal, {})}

    def set(self, principal: str, key: str, value: float) -> None:
        """Change a setting for a principal, until the server ends."""
        self.chosen.setdefault(principal, {})[key] = value

    def frames(self, session: Session) -> int:
        """How many frames of a stack are shown to whoever has the session."""
        return int(self.settings_of(session.principal)["frames"])

    def workspace(self, given: str | None) -> Path:
        """The folder to work in, or an error that names what is wrong with it."""
        root = (self.config.root / (given or "")).expanduser().resolve()
        if root.is_dir():
            return root
        raise InvalidArguments(f"`{given}` is no folder.", instruction="Give the path of the project's folder.")

    @asynccontextmanager
    async def session(
        self, session_id: str | None, context: CallContext, *, operation: str = ""
    ) -> AsyncGenerator[Session]:
        """The session that is meant, for as long as this call has its turn."""
        session = self.sessions.find(session_id, principal=context.principal.subject)
        async with session.lock, _clear_errors(session):
            began = time.perf_counter()
            try:
                yield session
            finally:
                if operation:
                    session.history.add(operation, str(status_of(session)), began=began)

    async def report(
        self,
        session: Session,
        outcome: Outcome,
        *,
        budget: int = BUDGET,
        warnings: tuple[str, ...] = (),
        paused_in_vain: bool = False,
    ) -> Result[Any]:
        """What came of letting a program run, as an answer."""
        match outcome:
            case Stopped():
                return await self._stopped(session, outcome, budget, warnings)
            case Ended():
                return ended_result(session, outcome, warnings=(*warnings, *ran_past(session)))
            case None:
                if (child := session.stopped_child) is None:
                    return running_result(session, warnings=warnings, paused_in_vain=paused_in_vain)
                return await self._child_stopped(session, child, budget=budget, warnings=warnings)

    async def _child_stopped(
        self, session: Session, child: Session, *, budget: int, warnings: tuple[str, ...]
    ) -> Result[Any]:
        """A thread or process of the program stands, while the program itself runs on."""
        async with child.lock:
            if child.stop is None:  # somebody else let it go meanwhile
                return running_result(session, warnings=warnings)
            told = f"Session `{session.id}` runs on. What stands is `{child.id}`, {child.title}: name it as session_id."
            return await self._stopped(child, child.stop, budget, (told, *warnings))

    async def _stopped(self, session: Session, stop: Stopped, budget: int, warnings: tuple[str, ...]) -> Result[Any]:
        earlier = self.seen.get(session.key)
        snapshot = await take_snapshot(
            session.debugger, stop, budget=budget, earlier=earlier, watched=self.watches.get(session.key, ())
        )
        if snapshot is not None:
            await self.stops.keep(session, snapshot)
            self.seen[session.key] = snapshot.as_earlier()
        return stopped_result(session, stop, snapshot, earlier, warnings=(*warnings, *unbound(session)))

    async def run(
        self, session: Session, move: Callable[[int], Awaitable[None]], *, timeout: float, budget: int = BUDGET
    ) -> Result[Any]:
        """Let the program go on and answer what came of it."""
        outcome = await session.run(move, timeout=timeout)
        return await self.report(session, outcome, budget=budget)


def unbound(session: Session) -> tuple[str, ...]:
    """A warning for each breakpoint that is nowhere, and why."""
    return tuple(
        f"The breakpoint at {each.spec.file}:{each.spec.line} is not bound: {each.bound.message or 'no reason given'}."
        for each in session.breakpoints
        if not each.bound.verified
    ) + tuple(
        f"The condition of the breakpoint at {place} could not be told, so it did not stop there: {why}."
        for place, why in session.failed_conditions.items()
    )


def ran_past(session: Session) -> tuple[str, ...]:
    """A warning where a program ended and breakpoints of it were never reached."""
    waiting = [each.location for each in session.breakpoints if each.spec.log_message is None]
    waiting += [f"the function `{name}`" for name in session.rules.functions]
    if not waiting or session.stop_count:
        return unbound(session)
    return (f"It ended without stopping at {', '.join(waiting)}.", *unbound(session))


@asynccontextmanager
async def _clear_errors(session: Session) -> AsyncGenerator[None]:
    """What a debugger refuses, as an error that says so in the debugger's own words."""
    try:
        yield
    except RequestFailed as error:
        code = ErrorCode.INTROSPECTION_EVAL_ERROR if error.command == "evaluate" else ErrorCode.EXECUTION_FAILED
        raise ToolError(f"The debugger refused `{error.command}`: {error.message[:500]}", code=code) from None
    except ConnectionLost as error:
        raise ToolError(
            f"The debugger of session `{session.id}` is gone: {error}",
            code=ErrorCode.CONNECTION_LOST,
            instruction="Start the program again with `session restart`.",
        ) from None
    except TimeoutError:
        raise ToolError(
            "The debugger did not answer in time.",
            code=ErrorCode.CONNECTION_TIMEOUT,
            instruction="The program may be busy in code that cannot be interrupted: `execute pause`, or stop it.",
        ) from None
