"""Responses: what a debugger's tool answers: a summary, the state, what to look at, what to do next."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any

from trysquare.core.result import Result
from trysquare.core.types import JsonObject
from trysquare.debug.debugger import Stopped
from trysquare.debug.names import ExecutionStatus, Field, ToolName
from trysquare.debug.session import Ended, Session
from trysquare.debug.snapshot import Earlier, Snapshot

_STOPS = {
    "step": ExecutionStatus.STOPPED_AFTER_STEP,
    "exception": ExecutionStatus.STOPPED_AT_EXCEPTION,
}
_OUTPUT = 1500


def stopped_result(
    session: Session, stop: Stopped, snapshot: Snapshot | None, earlier: Earlier | None, *, warnings: Sequence[str]
) -> Result[Any]:
    """The program stands: where, why, with which values, and what is different from the stop before."""
    data: JsonObject = {Field.EXECUTION_STATE: execution_state(session)}
    where = "at an unknown place"
    if snapshot is not None:
        where = f"at {snapshot.location}"
        data |= seen_at(snapshot)
        if earlier is not None:
            data[Field.BEFORE] = {"location": earlier.location}
    why = _why(stop, snapshot)
    return answer(session, f"Stopped {where}: {why}", data, next_steps=_next_when_stopped(stop), warnings=warnings)


def seen_at(snapshot: Snapshot) -> JsonObject:
    """A stop as a result shows it. What is empty is left out."""
    exception = snapshot.exception
    told: JsonObject = {
        Field.LOCATION: snapshot.location,
        Field.STACK_DEPTH: snapshot.depth,
        Field.CODE_SNAPSHOT: {"formatted": snapshot.code} if snapshot.code else None,
        Field.EXCEPTION: exception and {"type": exception.type, "message": exception.message[:500]},
        Field.CHANGED: dict(snapshot.changed),
        Field.WATCH: dict(snapshot.watched),
    }
    told = {str(name): part for name, part in told.items() if part}
    return told | {Field.LOCALS: dict(snapshot.values.values), **snapshot.values.about_left_out()}


def ended_result(session: Session, ended: Ended, *, warnings: Sequence[str]) -> Result[Any]:
    """The program has ended, and how: a crash is never told as a success."""
    is_known = ended.code is None or ended.signal is None
    data: JsonObject = {Field.EXECUTION_STATE: execution_state(session), "exit_code": ended.code if is_known else None}
    if ended.signal is not None and is_known:
        data["signal"] = _signal_name(ended.signal)
    if tail := session.output.tail(_OUTPUT):
        data[Field.OUTPUT] = tail
    return answer(session, _how_ended(ended), data, next_steps=_next_when_ended(ended), warnings=warnings)


def running_result(session: Session, *, warnings: Sequence[str], paused_in_vain: bool = False) -> Result[Any]:
    """The program still runs: nothing was hit in the time that was waited."""
    data: JsonObject = {Field.EXECUTION_STATE: execution_state(session)}
    if tail := session.output.tail(_OUTPUT):
        data[Field.OUTPUT] = tail
    steps = _NEXT_WHEN_RUNNING[1:] if paused_in_vain else _NEXT_WHEN_RUNNING
    summary = f"Still running after {session.waited:.2g} s."
    if paused_in_vain:
        summary += " It is in a call that cannot be paused, such as waiting for a lock or for input."
    return answer(session, summary, data, next_steps=steps, warnings=warnings)


def answer(
    session: Session | None,
    summary: str,
    data: JsonObject,
    *,
    next_steps: Sequence[JsonObject] = (),
    warnings: Sequence[str] = (),
) -> Result[Any]:
    """A result in the debugger's form."""
    fields: JsonObject = {Field.SUMMARY: summary, Field.DATA: data}
    if next_steps:
        fields[Field.NEXT_STEPS] = [_of_session(step, session) for step in next_steps]
    if session is not None:
        fields[Field.SESSION_ID] = session.id
    return Result.ok(warnings=tuple(warnings), fields={str(name): part for name, part in fields.items()})


def _of_session(step: JsonObject, session: Session | None) -> JsonObject:
    """A next step as it has to be sent: a session that another one's program started is nobody's default."""
    if session is None or session.parent is None:
        return step
    return {**step, "arguments": {**step["arguments"], str(Field.SESSION_ID): session.id}}


def execution_state(session: Session) -> JsonObject:
    """Where a program stands, in the three words that every result has."""
    rules = session.rules
    others = [*rules.functions.values(), *rules.watched.values()]
    active = any(each.bound.verified for each in [*session.breakpoints, *others])
    stop = session.stop
    return {
        "status": str(status_of(session)),
        "breakpoints_active": active,
        "stop_reason": None if stop is None else stop.reason,
    }


def status_of(session: Session) -> ExecutionStatus:
    """The status that a result tells."""
    if session.ended is not None:
        return ExecutionStatus.TERMINATED
    if session.stop is not None:
        if "breakpoint" in session.stop.reason:
            return ExecutionStatus.STOPPED_AT_BREAKPOINT
        return _STOPS.get(session.stop.reason, ExecutionStatus.PAUSED)
    return ExecutionStatus.RUNNING


def next_steps_of(session: Session) -> Sequence[JsonObject]:
    """What to do next, from where the program really stands."""
    if session.ended is not None:
        return _next_when_ended(session.ended)
    if session.stop is not None:
        return _next_when_stopped(session.stop)
    return _NEXT_WHEN_RUNNING


def _why(stop: Stopped, snapshot: Snapshot | None) -> str:
    if snapshot is not None and snapshot.exception is not None:
        return f"{snapshot.exception.type}: {snapshot.exception.message[:200]}"
    return stop.text or stop.reason


def _how_ended(ended: Ended) -> str:
    if ended.signal is not None and ended.code is not None:
        return (
            f"The program ended with exit code {ended.code} or was killed by {_signal_name(ended.signal)}: "
            "its debugger does not tell which."
        )
    if ended.signal is not None:
        return f"The program was killed by {_signal_name(ended.signal)}."
    if ended.code is not None:
        return f"The program ended with exit code {ended.code}." if ended.code else "The program ended (exit code 0)."
    return (
        f"The debugger was lost: {ended.reason}" if ended.reason else "The program ended; its exit code is not known."
    )


def _next_when_stopped(stop: Stopped) -> list[JsonObject]:
    if stop.reason == "exception":
        return [
            next_step(ToolName.INSPECT, {"target": "stack"}, "see how it got here"),
            next_step(ToolName.VARIABLE, {"action": "get", "expression": "…"}, "look at a value"),
        ]
    return [
        next_step(ToolName.STEP, {"action": "over"}, "run this line"),
        next_step(ToolName.INSPECT, {"target": "expression", "expression": "…"}, "look at a value"),
        next_step(ToolName.EXECUTE, {"action": "continue"}, "run on to the next breakpoint"),
    ]


def _next_when_ended(ended: Ended) -> list[JsonObject]:
    if ended.code == 0:
        return [next_step(ToolName.SESSION, {"action": "restart"}, "run it again with the same breakpoints")]
    return [
        next_step(ToolName.INSPECT, {"target": "output"}, "read all of its output"),
        next_step(ToolName.SESSION, {"action": "restart"}, "run it again with the same breakpoints"),
    ]


def next_step(tool: ToolName, arguments: JsonObject, description: str) -> JsonObject:
    """One thing to do next: the tool, its arguments, and what for."""
    return {"tool": str(tool), "arguments": arguments, "description": description}


_NEXT_WHEN_RUNNING = (
    next_step(ToolName.EXECUTE, {"action": "pause"}, "see where it is"),
    next_step(ToolName.EXECUTE, {"action": "wait"}, "wait until it stops"),
    next_step(ToolName.SESSION, {"action": "stop"}, "end it"),
)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
