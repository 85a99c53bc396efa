"""Records: what one call came to, as a value that a journal can keep."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol, cast, runtime_checkable

from trysquare.core.result import Result
from trysquare.core.shortening import short
from trysquare.core.types import JsonObject
from trysquare.models.messages import CallRequest, Message, Usage


@dataclass(frozen=True, kw_only=True, slots=True)
class CallRecord:
    """A call and what came of it."""

    call: CallRequest
    text: str
    """What the model reads, bounded."""
    success: bool
    code: str | None = None
    modified_files: tuple[str, ...] = ()
    passed: bool | None = None
    """Whether tests passed, where the call ran tests."""
    handles: tuple[str, ...] = ()
    """Names under which the tool keeps something: sessions, cursors, jobs."""
    approval: str | None = None
    """The command with which a person can let the call run, where it waits for one."""
    usage: Usage | None = None
    """What a model was paid for inside of the call."""
    seconds: float = 0.0
    """How long it took."""

    def message(self) -> Message:
        """The record as the turn of the dialogue that answers the call."""
        return Message(role="tool", text=self.text, answers=self.call.id, failed=not self.success)


@runtime_checkable
class RecordListener(Protocol):
    """A toolset that depends on what was called. It hears of every call, also of those in an earlier life of a job."""

    def note(self, record: CallRecord) -> None:
        """A call was made."""
        ...


USAGE = "trysquare/usage"
"""The key of a result's `meta` under which a tool that asked a model tells what it used."""
HANDLE_FIELDS = ("session_id", "handle", "cursor", "job", "run", "project")


def outcome_json(result: Result[Any], *, limit: int) -> JsonObject:
    """What is kept of a result: the text for the model, and the facts that the loop goes by."""
    told = result.opened()
    envelope = told.to_json()
    return {
        "text": bounded(told.to_text(), limit),
        "success": told.success,
        "code": None if told.code is None else told.code.value,
        "modified_files": [str(name) for name in envelope.get("modified_files") or ()],
        "passed": envelope.get("passed") if isinstance(envelope.get("passed"), bool) else None,
        "handles": list(_handles(envelope)),
        "approval": _approval(envelope),
        "usage": told.meta.get(USAGE),
    }


def record_of(call: CallRequest, outcome: JsonObject) -> CallRecord:
    """The record of a call, from what was kept of its result."""
    return CallRecord(
        call=call,
        text=outcome["text"],
        success=outcome["success"],
        code=outcome.get("code"),
        modified_files=tuple(outcome.get("modified_files") or ()),
        passed=outcome.get("passed"),
        handles=tuple(outcome.get("handles") or ()),
        approval=outcome.get("approval"),
        usage=_usage(outcome.get("usage")),
        seconds=float(outcome.get("seconds") or 0.0),
    )


def bounded(text: str, limit: int) -> str:
    """A text of at most `limit` characters: its beginning and its end, and how much was left out between."""
    if len(text) <= limit:
        return text
    note = f"\n… {len(text) - limit:,} characters are left out here; ask for less to see them …\n"
    room = max(limit - len(note), 2)
    head = room * 2 // 3
    return text[:head] + note + text[len(text) - (room - head) :]


def _handles(envelope: JsonObject) -> list[str]:
    """The handles that a result names, at its top or in its value."""
    value = envelope.get("value")
    parts = [envelope, cast(JsonObject, value)] if isinstance(value, dict) else [envelope]
    named = [(key, part.get(key)) for part in parts for key in HANDLE_FIELDS]
    return [f"{key} {given}" for key, given in named if isinstance(given, str) and 0 < len(given) <= 200]


def usage_meta(usage: Usage) -> JsonObject:
    """The `meta` of a result whose tool asked a model."""
    return {USAGE: asdict(usage)}


def _usage(kept: JsonObject | None) -> Usage | None:
    return None if kept is None else Usage(**kept)


def _approval(envelope: JsonObject) -> str | None:
    approval = envelope.get("approval")
    command = cast(JsonObject, approval).get("command") if isinstance(approval, dict) else None
    return command if isinstance(command, str) else None


def shown(record: CallRecord) -> str:
    """A call in a few words, for a person who watches: `file read shop.py: ok`."""
    arguments = record.call.arguments
    about = [arguments.get("action"), *(arguments.get(name) for name in _TELLING)]
    words = [record.call.name, *(short(" ".join(word.split()), 60) for word in about if isinstance(word, str))]
    return f"{' '.join(words)}: {'ok' if record.success else record.code or 'failed'}"


_TELLING = ("path", "command", "pattern", "name", "target", "query", "module", "reason")
