"""DebugService: sessions and settings of the tools, and results of a run."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MethodType
from typing import Any, ClassVar, TypeAlias, Unpack, cast

from pydantic import model_validator

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.json import JsonObject, as_object
from trysquare.core.metadata import ALL_PROFILES, MetadataOptions
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.debug.debugger import DEBUGGER_ERRORS, Exited, RequestFailed, Stopped
from trysquare.debug.explain.traces import Trace
from trysquare.debug.responses import ended_result, fit_tokens, running_result, status_of, stopped_result
from trysquare.debug.sessions.manager import DebugSessionRegistry
from trysquare.debug.sessions.session import DebugSession, Outcome
from trysquare.debug.snapshot import BUDGET, SeenStop, Snapshot, add_stop, take_snapshot
from trysquare.net.rpc import ConnectionLost
from trysquare.processes.supervisor import ProcessSupervisor


@dataclass(frozen=True, kw_only=True, slots=True)
class DebugConfig:
    root: Path
    """The default workspace."""
    timeout: float = 60.0
    """Seconds that a program may run before it has to stop or end."""
    shows_secrets: bool = False
    """Whether values with the names of secrets are shown."""
    adapters: Mapping[str, str] = field(default_factory=dict[str, str])
    """Versions or paths of debuggers by their names; the others are found by themselves."""
    prefix: str = "debug"
    """Prefix of the tools' names, also where results name a tool."""


DEFAULTS = {"budget": 800, "timeout": 30.0, "frames": 10, "timing": 0}
"""Settings per principal: tokens for values, seconds to wait for a stop, frames to show, whether to time calls."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DebugService:
    """State shared by the tools."""

    config: DebugConfig
    supervisor: ProcessSupervisor
    sessions: DebugSessionRegistry
    seen: dict[str, Snapshot] = field(default_factory=dict[str, Snapshot])
    """The last stop of each session, to show what changed since."""
    traces: dict[str, Trace] = field(default_factory=dict[str, Trace])
    """The last recorded call of each principal."""
    stops: dict[str, dict[int, SeenStop]] = field(default_factory=dict[str, dict[int, SeenStop]])
    """The last stops of each session, by their numbers."""
    watches: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Expressions that are shown at every stop of a session."""
    overrides: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    """Settings that a principal has changed."""

    def settings_of(self, principal: str) -> Mapping[str, float]:
        return {**DEFAULTS, **self.overrides.get(principal, {})}

    def frames(self, session: DebugSession) -> int:
        return int(self.settings_of(session.principal)["frames"])

    def workspace(self, given: str | None) -> Path:
        root = (self.config.root / (given or "")).expanduser().resolve()
        if root.is_dir():
            return root
        raise InvalidArguments(f"`{given}` is not a directory.", instruction="Give the path of the project.")

    def relative_workspace(self, root: Path) -> str:
        """A workspace as a caller on another machine may read and name it."""
        return os.path.relpath(root, self.config.root.resolve())

    @asynccontextmanager
    async def session(
        self, session_id: str | None, context: CallContext, *, operation: str = ""
    ) -> AsyncGenerator[DebugSession]:
        """A session with its lock held; debugger errors become tool errors."""
        session = self.sessions.find(session_id, principal=context.principal.subject)
        async with session.lock:
            began = time.perf_counter()
            try:
                yield session
            except DEBUGGER_ERRORS as error:
                raise _tool_error(session, error) from None
            finally:
                if operation:
                    taken = (time.perf_counter() - began) * 1000
                    session.history.append(f"{operation}: {status_of(session)} ({taken:.0f} ms)")

    async def report(
        self,
        session: DebugSession,
        outcome: Outcome,
        *,
        budget: int = BUDGET,
        warnings: tuple[str, ...] = (),
        paused_in_vain: bool = False,
    ) -> Result[Any]:
        match outcome:
            case Stopped():
                return await self._stopped(session, outcome, budget, warnings)
            case Exited():
                return ended_result(session, outcome, warnings=(*warnings, *ran_past(session)))
            case None:
                if (child := session.stopped_child) is None:
                    return running_result(session, warnings=warnings, paused_in_vain=paused_in_vain)
                return await self._child_stopped(session, child, budget=budget, warnings=warnings)

    async def _child_stopped(
        self, session: DebugSession, child: DebugSession, *, budget: int, warnings: tuple[str, ...]
    ) -> Result[Any]:
        async with child.lock:
            if child.stop is None:  # another call continued it meanwhile
                return running_result(session, warnings=warnings)
            note = f"Session `{session.id}` is running. `{child.id}`, {child.title}, stopped: use it as session_id."
            return await self._stopped(child, child.stop, budget, (note, *warnings))

    async def _stopped(
        self, session: DebugSession, stop: Stopped, budget: int, warnings: tuple[str, ...]
    ) -> Result[Any]:
        earlier = self.seen.get(session.key)
        watched = self.watches.get(session.key, ())
        snapshot = await take_snapshot(
            session.debugger, stop, budget=budget, root=session.root, earlier=earlier, watched=watched
        )
        if snapshot is not None:
            session.shown_frame = snapshot.index
            await add_stop(self.stops.setdefault(session.key, {}), session, snapshot)
            self.seen[session.key] = snapshot
        return stopped_result(session, stop, snapshot, earlier, warnings=(*warnings, *unbound(session)))


class ActionArguments(ToolArguments):
    """Arguments with an `action`. The schema shows one name for each; `also` maps accepted synonyms to it."""

    also: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def with_usual_action(cls, given: Any) -> Any:
        arguments = as_object(given)
        action = arguments.get("action")
        if isinstance(action, str) and action in cls.also:
            return {**arguments, "action": cls.also[action]}
        return given


def require_argument(value: str | None, name: str, instruction: str | None = None) -> str:
    if value:
        return value
    raise InvalidArguments(
        f"Missing argument `{name}`.", code=ErrorCode.VALIDATION_MISSING_PARAM, instruction=instruction
    )


_NAMED_PLACES = 5
"""Breakpoints that a warning names."""
ToolFactory: TypeAlias = Callable[[DebugService], Tool]
ToolFunction: TypeAlias = Callable[[DebugService, Any, CallContext], Coroutine[Any, Any, Result[Any]]]


def unbound(session: DebugSession) -> tuple[str, ...]:
    """Warnings for breakpoints that are not bound, by reason, and for those whose condition failed."""
    reasons: dict[str, list[str]] = {}
    for each in session.breakpoints:
        if not each.bound.verified:
            reason = each.bound.message or "no reason given"
            reasons.setdefault(reason, []).append(f"{each.spec.file}:{each.spec.line}")
    return tuple(_not_bound(reason, places) for reason, places in reasons.items()) + tuple(
        f"The condition of the breakpoint at {location} failed, so it did not stop there: {reason}."
        for location, reason in session.failed_conditions.items()
    )


def _not_bound(reason: str, places: list[str]) -> str:
    if len(places) == 1:
        return f"The breakpoint at {places[0]} is not bound: {reason}."
    named = ", ".join(places[:_NAMED_PLACES])
    more = f" and {len(places) - _NAMED_PLACES} more" if len(places) > _NAMED_PLACES else ""
    return f"{len(places)} breakpoints are not bound: {reason}: {named}{more}."


def ran_past(session: DebugSession) -> tuple[str, ...]:
    """A warning where a program ended without reaching a breakpoint."""
    waiting = [each.location for each in session.breakpoints if each.spec.log_message is None]
    waiting += [f"the function `{name}`" for name in session.rules.functions]
    if not waiting or session.stop_count:
        return unbound(session)
    more = f" and {len(waiting) - _NAMED_PLACES} more" if len(waiting) > _NAMED_PLACES else ""
    return (f"It ended without stopping at {', '.join(waiting[:_NAMED_PLACES])}{more}.", *unbound(session))


def _tool_error(session: DebugSession, error: Exception) -> ToolError:
    """The tool error for one of the debugger."""
    if isinstance(error, RequestFailed):
        if "breakpoint" in error.command.lower():
            code = ErrorCode.EXECUTION_BREAKPOINT_FAILED
        else:
            code = ErrorCode.INTROSPECTION_EVAL_ERROR if error.command == "evaluate" else ErrorCode.EXECUTION_FAILED
        return ToolError(f"The debugger refused `{error.command}`: {error.message[:500]}", code=code)
    if isinstance(error, ConnectionLost):
        return ToolError(
            f"The debugger of session `{session.id}` is disconnected: {error}",
            code=ErrorCode.CONNECTION_LOST,
            instruction="Start the program again with `session restart`.",
        )
    return ToolError(
        "The debugger timed out.",
        code=ErrorCode.CONNECTION_TIMEOUT,
        instruction="The program may be in code that cannot be interrupted: send `execute pause`, or stop it.",
    )


def debug_tool(**options: Unpack[MetadataOptions]) -> Callable[[ToolFunction], ToolFactory]:
    """Decorate a function that takes the service first, and make it a factory of its tool."""
    options["toolset"] = options["category"] = "debug"
    options["result_limit"] = None

    def decorate(function: ToolFunction) -> ToolFactory:
        return lambda service: tool(MethodType(function, service), **options)

    return decorate


_OTHER_TOKENS = 1000
"""Tokens of a result in addition to its values: location, code, breakpoints, output."""


def finalize_tool(inner: Tool, service: DebugService) -> Tool:
    """The prefixed tool, with the caller's settings as defaults and its result within the token limit."""
    prefix, required = service.config.prefix, frozenset[str](inner.input_schema.get("required", ()))

    def prefixed(step: JsonObject) -> JsonObject:
        return {**step, "tool": f"{prefix}_{step['tool']}" if prefix else step["tool"]}

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        began = time.perf_counter()
        settings = service.settings_of(context.principal.subject)
        chosen = service.overrides.get(context.principal.subject, {})
        known = inner.input_schema.get("properties", {})
        # Strict function calling fills every argument in: "" is what it has for one that is not meant.
        meant = {name: value for name, value in arguments.items() if value != "" or name in required}
        given = {**{name: value for name, value in chosen.items() if name in known}, **meant}
        try:
            result = await inner.call(given, context)
        except ToolError as error:
            if error.next is not None:
                error.next = prefixed(error.next)
            raise
        budget = given.get("budget")
        limit = _OTHER_TOKENS + (budget if isinstance(budget, int) else int(settings["budget"]))
        fields = dict(result.fields)
        if isinstance(data := fields.get("data"), dict):
            fields["data"] = fit_tokens(cast(JsonObject, data), limit)
        if steps := fields.get("next_steps"):
            fields["next_steps"] = [prefixed(step) for step in steps]
        if settings["timing"]:
            fields["timing"] = {"milliseconds": round((time.perf_counter() - began) * 1000, 1)}
        return replace(result, fields=fields)

    # `explain` needs none of the others, so the shortest profile lists it alone.
    profiles = ALL_PROFILES if inner.name == "explain" else ALL_PROFILES - {"gateway"}
    return replace(inner, metadata=replace(inner.metadata, prefix=prefix, profiles=profiles)).wrapped(call)
