"""Calls that a person makes from the page: the same path as a client's, with progress, a result and an end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json

from trysquare.console.runs import OwnedRun, OwnedRuns
from trysquare.console.sessions import Session
from trysquare.core.call import call_tool
from trysquare.core.context import Answer, CallContext, ElicitRequest, LogLevel
from trysquare.core.errors import NobodyToAsk
from trysquare.core.json import JsonObject, as_object
from trysquare.core.result import Result
from trysquare.core.toolset import Toolset
from trysquare.server import ServeOptions
from trysquare.server.convert import relayed_to_wire, result_to_wire

CLIENT = "trysquare console"
_KEPT = 50
"""Trials whose results are kept."""
_LINES = 200
QUICK = 0.25
"""Seconds for which an answer waits for a result, so that quick calls need no second request."""


@dataclass(kw_only=True, eq=False)
class Trial(OwnedRun):
    """One call and what is known of it."""

    tool: str
    arguments: JsonObject
    done: float = 0.0
    total: float | None = None
    message: str = ""
    log: list[str] = field(default_factory=list[str])
    result: JsonObject | None = None
    """What a client gets."""
    is_relayed: bool = False
    """Whether another server wrote all of it, so that it does not say what to call next."""


class _Page:
    """The way back to the page. It shows progress and logs; questions go to the part Needs you."""

    def __init__(self, trial: Trial, changed: Callable[[], None]) -> None:
        self._trial, self._changed = trial, changed

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        self._trial.done, self._trial.total, self._trial.message = done, total, message or ""
        self._changed()

    async def log(self, level: LogLevel, message: str) -> None:
        self._trial.log = [*self._trial.log, f"{level}: {message}"][-_LINES:]
        self._changed()

    def can_ask(self) -> bool:
        return False

    async def ask(self, question: ElicitRequest) -> Answer:
        raise NobodyToAsk(question.message)


class Trials(OwnedRuns[Trial]):
    """The calls of one console."""

    def __init__(self, toolset: Toolset, options: ServeOptions, announce: Callable[[str], None]) -> None:
        super().__init__("call", kept=_KEPT, patience=QUICK)
        self._toolset, self._options, self._announce = toolset, options, announce

    async def start(self, tool: str, arguments: JsonObject, session: Session) -> Trial:
        """Call a tool as the signed-in person, and wait a moment for the result."""
        trial = Trial(owner=session.id, tool=tool, arguments=arguments)
        await asyncio.wait((self.begin(trial, self._run(trial, self._context(trial, session))),), timeout=QUICK)
        return trial

    def _context(self, trial: Trial, session: Session) -> CallContext:
        options = self._options
        return CallContext(
            principal=session.principal,
            caller=_Page(trial, lambda: self._announce(f"trial-{trial.id}")),
            handles=options.handles,
            deadline=None if options.call_timeout is None else time.monotonic() + options.call_timeout,
            request_id=trial.id,
            client=CLIENT,
            direct=options.direct,
            approvals=options.approvals,
        )

    async def _run(self, trial: Trial, context: CallContext) -> None:
        try:
            result = await call_tool(self._toolset, trial.tool, trial.arguments, context)
            trial.result, trial.is_relayed = _wire(result), result.relayed is not None
        except asyncio.CancelledError:
            trial.is_cancelled = True
        finally:
            trial.seconds = time.monotonic() - trial.began
            self._announce(f"trial-{trial.id}")


def _wire(result: Result[Any]) -> JsonObject:
    """The result as a client of 2026-07-28 gets it."""
    if result.relayed is None:
        return result_to_wire(result)
    return as_object(from_json(relayed_to_wire(result.relayed, result.meta, modern=True)))
