"""Results of the tools, token fitting and schema trimming."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from trysquare.core.json import JsonObject
from trysquare.core.result import Result, dump_json
from trysquare.core.signature import Arguments
from trysquare.core.tokens import count_tokens
from trysquare.core.tool import Tool
from trysquare.debug.debugger import Exited, Stopped
from trysquare.debug.sessions.session import DebugSession
from trysquare.debug.snapshot import Snapshot

_STOPS = {"step": "stopped_after_step", "exception": "stopped_at_exception"}
_OUTPUT = 1500


def stopped_result(
    session: DebugSession,
    stop: Stopped,
    snapshot: Snapshot | None,
    earlier: Snapshot | None,
    *,
    warnings: Sequence[str],
) -> Result[Any]:
    """Result for a stopped program: location, reason, values, and changes since the previous stop."""
    data: JsonObject = {"execution_state": execution_state(session)}
    where = "at an unknown location"
    if snapshot is not None:
        where = f"at {snapshot.location}"
        data |= seen_at(snapshot)
        if earlier is not None:
            data["before"] = {"location": earlier.location}
    why = stop.text or stop.reason
    if snapshot is not None and snapshot.exception is not None:
        why = f"{snapshot.exception.type}: {snapshot.exception.message[:200]}"
    return answer(session, f"Stopped {where}: {why}", data, next_steps=_next_when_stopped(stop), warnings=warnings)


def seen_at(snapshot: Snapshot) -> JsonObject:
    """Fields of a result for a stop, without empty ones."""
    exception, inner = snapshot.exception, snapshot.raised_in
    fields: JsonObject = {
        "location": snapshot.location,
        "stack_depth": snapshot.depth,
        "frame": snapshot.index,
        "raised_in": inner and f"{inner.file}:{inner.line} in {inner.name}",
        "code_snapshot": {"formatted": snapshot.code} if snapshot.code else None,
        "exception": exception and {"type": exception.type, "message": exception.message[:500]},
        "changed": dict(snapshot.changed),
        "watch": dict(snapshot.watched),
    }
    fields = {name: part for name, part in fields.items() if part}
    return fields | {"locals": dict(snapshot.values.values), **snapshot.values.about_left_out()}


def ended_result(session: DebugSession, ended: Exited, *, warnings: Sequence[str]) -> Result[Any]:
    is_known = ended.code is None or ended.signal is None
    data: JsonObject = {"execution_state": execution_state(session), "exit_code": ended.code if is_known else None}
    if ended.signal is not None and is_known:
        data["signal"] = signal_name(ended.signal)
    data |= _output(session)
    return answer(session, _how_ended(ended), data, next_steps=_next_when_ended(ended), warnings=warnings)


def running_result(session: DebugSession, *, warnings: Sequence[str], paused_in_vain: bool = False) -> Result[Any]:
    """Result for a program that still runs after the timeout."""
    data: JsonObject = {"execution_state": execution_state(session), **_output(session)}
    steps = _NEXT_WHEN_RUNNING[1:] if paused_in_vain else _NEXT_WHEN_RUNNING
    summary = f"Still running after {session.waited:.2g} s."
    if paused_in_vain:
        summary += " It is in a call that cannot be paused, such as waiting for a lock or for input."
    return answer(session, summary, data, next_steps=steps, warnings=warnings)


def _output(session: DebugSession) -> JsonObject:
    tail = session.output.tail(_OUTPUT)
    return {"output": tail} if tail else {}


def answer(
    session: DebugSession | None,
    summary: str,
    data: JsonObject,
    *,
    next_steps: Sequence[JsonObject] = (),
    warnings: Sequence[str] = (),
) -> Result[Any]:
    fields: JsonObject = {"summary": summary, "data": data}
    if next_steps:
        fields["next_steps"] = [_with_session(step, session) for step in next_steps]
    if session is not None:
        fields["session_id"] = session.id
    return Result.ok(warnings=tuple(warnings), fields=fields)


def _with_session(step: JsonObject, session: DebugSession | None) -> JsonObject:
    """A next step with the session id where it is required: a child session is never the default."""
    if session is None or session.parent is None:
        return step
    return {**step, "arguments": {**step["arguments"], "session_id": session.id}}


def execution_state(session: DebugSession) -> JsonObject:
    rules = session.rules
    others = [*rules.functions.values(), *rules.watched.values()]
    active = any(each.bound.verified for each in [*session.breakpoints, *others])
    stop = session.stop
    return {
        "status": status_of(session),
        "breakpoints_active": active,
        "stop_reason": None if stop is None else stop.reason,
    }


def status_of(session: DebugSession) -> str:
    if session.ended is not None:
        return "terminated"
    if session.stop is not None:
        if "breakpoint" in session.stop.reason:
            return "stopped_at_breakpoint"
        return _STOPS.get(session.stop.reason, "paused")
    return "running"


def next_steps_of(session: DebugSession) -> Sequence[JsonObject]:
    if session.ended is not None:
        return _next_when_ended(session.ended)
    if session.stop is not None:
        return _next_when_stopped(session.stop)
    return _NEXT_WHEN_RUNNING


def _how_ended(ended: Exited) -> str:
    if ended.signal is not None and ended.code is not None:
        return (
            f"The program ended with exit code {ended.code} or was killed by {signal_name(ended.signal)}: "
            "its debugger does not distinguish the two."
        )
    if ended.signal is not None:
        return f"The program was killed by {signal_name(ended.signal)}."
    if ended.code is not None:
        return f"The program ended with exit code {ended.code}." if ended.code else "The program ended (exit code 0)."
    return (
        f"The debugger disconnected: {ended.reason}" if ended.reason else "The program ended; its exit code is unknown."
    )


def _next_when_stopped(stop: Stopped) -> list[JsonObject]:
    if stop.reason == "exception":
        return [
            next_step("inspect", {"target": "stack"}, "see how it got here"),
            next_step("variable", {"action": "get", "expression": "…"}, "inspect a value"),
        ]
    return [
        next_step("step", {"action": "over"}, "run this line"),
        next_step("inspect", {"target": "expression", "expression": "…"}, "inspect a value"),
        next_step("execute", {"action": "continue"}, "continue to the next breakpoint"),
    ]


def _next_when_ended(ended: Exited) -> list[JsonObject]:
    restart = next_step("session", {"action": "restart"}, "run it again with the same breakpoints")
    output = next_step("inspect", {"target": "output"}, "read all of its output")
    return [restart] if ended.code == 0 else [output, restart]


def next_step(tool: str, arguments: JsonObject, description: str) -> JsonObject:
    return {"tool": tool, "arguments": arguments, "description": description}


_NEXT_WHEN_RUNNING = (
    next_step("execute", {"action": "pause"}, "see where it is"),
    next_step("execute", {"action": "wait"}, "wait until it stops"),
    next_step("session", {"action": "stop"}, "end it"),
)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_SHORTEST = 40
_CUT = "…"


def fit_tokens(data: JsonObject, limit: int) -> JsonObject:
    """The data within a token limit: its longest texts and lists are halved until it fits, and it is marked."""
    if _fits(data, limit):
        return data
    longest = max(_lengths(data), default=0)
    while longest > _SHORTEST:
        longest //= 2
        data = cast(JsonObject, _shortened(data, longest))
        if _fits(data, limit):
            break
    return {**data, "truncated": True}


def _fits(data: Any, limit: int) -> bool:
    text = dump_json(data)
    # A token has at least one character, so a short text need not be counted.
    return len(text) <= limit or (len(text) <= 8 * limit and count_tokens(text) <= limit)


def _lengths(value: Any) -> list[int]:
    if isinstance(value, str):
        return [len(value)]
    if not isinstance(value, dict | list):
        return []
    parts = list(cast(JsonObject, value).values()) if isinstance(value, dict) else cast(list[Any], value)
    return [len(parts), *(length for part in parts for length in _lengths(part))]


def _shortened(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else value[: longest - 1] + _CUT
    if isinstance(value, dict):
        parts = list(cast(dict[str, Any], value).items())
        return {name: _shortened(part, longest) for name, part in parts[:longest]}
    if isinstance(value, list):
        return [_shortened(part, longest) for part in cast(list[Any], value)[:longest]]
    return value


_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "minItems", "maxItems"})
_NOT_IN_ITEMS = _BOUNDS | {"description", "additionalProperties", "enum"}
_DESCRIBED_IN = {
    "budget": "session_start", "timeout": "session_start", "session_id": "session_start",
    "workspace_root": "session_start", "frame": "inspect", "detailed": "inspect", "condition": "breakpoint",
}  # fmt: skip
"""Arguments that several tools have, with the tool that describes them."""


def trim_schema(tool: Tool) -> Tool:
    """The tool with a shortened schema; arguments that several tools have are described once."""
    return replace(tool, arguments=TrimmedArguments(tool.arguments, tool=tool.name))


@dataclass(frozen=True)
class TrimmedArguments:
    """Arguments with the same validation and a shorter schema."""

    inner: Arguments
    tool: str

    @cached_property
    def wire(self) -> JsonObject:
        whole = self.inner.wire
        properties = cast(dict[str, JsonObject], whole.get("properties", {}))
        return {**whole, "properties": {name: self._short(name, part) for name, part in properties.items()}}

    @property
    def exact(self) -> JsonObject:
        return self.inner.exact

    def parse(self, tool: str, raw: JsonObject) -> Any:
        return self.inner.parse(tool, raw)

    def _short(self, name: str, schema: JsonObject) -> JsonObject:
        short = _without_bounds(schema)
        if _DESCRIBED_IN.get(name, self.tool) != self.tool:
            return {key: part for key, part in short.items() if key not in ("description", "default")}
        return short


def _without_bounds(schema: JsonObject) -> JsonObject:
    short = {key: part for key, part in schema.items() if key not in _BOUNDS}
    if short.get("default") is False:
        del short["default"]
    if isinstance(items := short.get("items"), dict):
        short["items"] = {key: part for key, part in cast(JsonObject, items).items() if key not in _NOT_IN_ITEMS}
    return short
