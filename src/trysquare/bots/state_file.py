"""The state as `workflow_state.json` shows it, and back: fields that people read and edit by hand.

The four fields that every reader knows stay as they are: `current_behavior`, `current_action`, `timestamp` and
`completed_actions`. Beside them stand `schema`, `version`, a pointer for each behavior, and the other runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, TypeAlias, cast

from trysquare.bots.plan import Plan, Position
from trysquare.bots.workflow import Approval, Entry, RunState, begin, derived, following
from trysquare.core.types import JsonObject

SCHEMA = 1
MAIN = "main"
_MAX_VERSION = 2**53
_APPROVALS = frozenset({"claimed", "proven", "auto", "combined", "skipped"})


class UnreadableState(Exception):
    """A text that is no state of this bot, with the reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """What a file says, and whether its parts agreed."""

    runs: Mapping[str, RunState]
    histories: Mapping[str, tuple[Entry, ...]]
    inconsistent: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPart:
    """What the file shows of one run: `body` is its history, made by `add_lines`."""

    state: RunState
    at: str
    body: bytes | bytearray
    complete: bool = False
    """Whether nothing is left to do in it."""


Pieces: TypeAlias = list[bytes | bytearray]
"""Bytes that follow one another. Histories are long and hardly change, so they are never copied into a whole."""


def dump_state(plan: Plan, parts: Mapping[str, RunPart]) -> Pieces:
    """The file: the main run at the top, the others below `runs`. The same parts give the same file."""
    fields = {**_run_fields(plan, MAIN, parts[MAIN]), "schema": _value(SCHEMA)}
    others = {name: _object(_run_fields(plan, name, parts[name]), 2) for name in sorted(parts) if name != MAIN}
    if others:
        fields["runs"] = _object(others, 1)
    return _joined([*_object(fields, 0), b"\n"])


def _joined(pieces: Pieces) -> Pieces:
    """The same with everything joined that stands between two histories."""
    joined: Pieces = []
    for are_histories, found in groupby(pieces, lambda piece: isinstance(piece, bytearray)):
        group = list(found)
        joined += group if are_histories else [b"".join(group)]
    return joined


def _run_fields(plan: Plan, run: str, part: RunPart) -> dict[str, Pieces]:
    state = part.state
    pointers = {name: _value({"current_action": action}) for name, action in state.pointers.items()}
    fields = {
        "current_behavior": _value(f"{plan.bot}.{state.current.behavior}"),
        "current_action": _value(state.current.path(plan.bot)),
        "timestamp": _value(part.at),
        "completed_actions": _listed(run, part.body),
        "version": _value(state.version),
        "behaviors": _object(pointers, _depth(run)),
    }
    if state.delivered:
        fields["delivered"] = _value(True)
    if state.finished:
        # The end of the order can be reached with actions left open, and that is not a complete workflow.
        fields["workflow_complete" if part.complete else "workflow_ended"] = _value(True)
    if state.strict:
        fields["strict"] = _value(True)
    if state.rejections:
        fields["rejections"] = _value(state.rejections)
    return fields


def add_lines(run: str, body: bytearray, lines: Iterable[str]) -> None:
    """Add lines to the history of a run as the file shows it, one entry a line."""
    begin_line = _line(_depth(run) + 1)
    for line in lines:
        body += (b"," if body else b"") + begin_line + encoded(line)


def encoded(text: str) -> bytes:
    """A piece of the file as bytes. Half a surrogate pair, which UTF-8 does not know, stays in JSON's own escape."""
    return text.encode("utf-8", "backslashreplace")


def _value(value: Any) -> Pieces:
    return [encoded(json.dumps(value, ensure_ascii=False))]


def _object(fields: Mapping[str, Pieces], depth: int) -> Pieces:
    """An object, one field a line."""
    pieces: Pieces = []
    for name, value in fields.items():
        pieces += (b"," if pieces else b"{", _line(depth + 1), *_value(name), b": ", *value)
    return [*pieces, _line(depth), b"}"] if pieces else [b"{}"]


def _listed(run: str, body: bytes | bytearray) -> Pieces:
    return [b"[", body, _line(_depth(run)), b"]"] if body else [b"[]"]


def _line(depth: int) -> bytes:
    return b"\n" + b"  " * depth


def _depth(run: str) -> int:
    """How deep the fields of a run stand."""
    return 1 if run == MAIN else 3


def entry_line(plan: Plan, entry: Entry) -> str:
    """One line of `completed_actions`, as the file shows it."""
    return json.dumps(entry_document(plan, entry), ensure_ascii=False)


def entry_document(plan: Plan, entry: Entry) -> JsonObject:
    """One line of `completed_actions`."""
    document: JsonObject = {
        "action_state": entry.position.path(plan.bot),
        "timestamp": entry.at,
        "version": entry.version,
    }
    if entry.kind == "reopened":
        document["reopened"] = True
    else:
        document["approval"] = entry.approval
    if not entry.delivered:
        document["delivered"] = False
    for name, value in (("reason", entry.reason), ("by", entry.by)):
        if value:
            document[name] = value
    return document


def parse_state(plan: Plan, text: str) -> Imported:
    """Read a file that a person may have written, or raise `UnreadableState`."""
    top = _document(plan, text)
    notes: list[str] = []
    others = top.get("runs")
    parts: JsonObject = {**cast(JsonObject, others if isinstance(others, dict) else {}), MAIN: top}
    runs: dict[str, RunState] = {}
    histories: dict[str, tuple[Entry, ...]] = {}
    for name, part in parts.items():
        if not isinstance(part, dict) or not is_run_name(name):
            notes.append(f"runs: {name[:80]!r} is no run and was left out.")
            continue
        histories[name] = _read_history(plan, cast(JsonObject, part).get("completed_actions"), notes)
        runs[name] = _read_run(plan, cast(JsonObject, part), histories[name], name, notes)
    return Imported(runs=runs, histories=histories, inconsistent=tuple(notes))


def is_run_name(name: str) -> bool:
    """Whether a run may be called so."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name) is not None


def is_export(text: str) -> bool:
    """Whether a text was written by this program, from a database that held more than it shows."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and {"schema", "version", "behaviors"} <= cast(JsonObject, document).keys()


def is_foreign(text: str, bot: str) -> bool:
    """Whether a text is the state of other bots, and not of this one."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and bot not in (named := _bots_named(cast(JsonObject, document))) and bool(named)


def _bots_named(document: JsonObject) -> set[str]:
    """The bots that the paths of a file begin with."""
    raw = document.get("completed_actions")
    entries = cast(list[Any], raw) if isinstance(raw, list) else []
    told = [cast(JsonObject, each).get("action_state") for each in entries if isinstance(each, dict)]
    paths = [document.get("current_action"), *told]
    full = {path.split(".")[0] for path in paths if isinstance(path, str) and path.count(".") == 2}
    behavior = document.get("current_behavior")
    return full | ({behavior.split(".")[0]} if isinstance(behavior, str) and behavior.count(".") == 1 else set())


def _document(plan: Plan, text: str) -> JsonObject:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableState(f"it is not JSON ({error})") from None
    if not isinstance(document, dict):
        raise UnreadableState("it is not a JSON object")
    top = cast(JsonObject, document)
    if isinstance(schema := top.get("schema"), int) and schema > SCHEMA:
        raise UnreadableState(f"its schema is {schema}, and this version knows {SCHEMA}")
    if not top.keys() & {"current_action", "current_behavior", "completed_actions"}:
        raise UnreadableState("it has none of the fields current_action, current_behavior and completed_actions")
    if (named := _bots_named(top)) and plan.bot not in named:
        raise UnreadableState(f"it belongs to another bot, {min(named)[:80]!r}")
    return top


def _read_run(plan: Plan, document: JsonObject, history: tuple[Entry, ...], run: str, notes: list[str]) -> RunState:
    latest = {entry.position: entry for entry in history}
    pointers = _read_pointers(plan, document.get("behaviors"))
    version = _version(document.get("version"))
    known = RunState(
        version=len(history) if version is None else version,
        current=plan.first,
        pointers=pointers,
        latest=latest,
    )
    current = _read_current(plan, document, known, notes, run)
    return RunState(
        version=known.version,
        current=current,
        pointers={**pointers, current.behavior: current.action},
        latest=latest,
        delivered=document.get("delivered") is True,
        finished=_is_ended(document),
        rejections=_count(document.get("rejections")),
        strict=document.get("strict") is True,
    )


def _read_current(plan: Plan, document: JsonObject, known: RunState, notes: list[str], run: str) -> Position:
    """The pointer where it is valid and not contradicted by a newer completion; else what the completions say."""
    pointer = _position(plan, document.get("current_action"))
    if pointer is None:
        if document.get("current_action") not in (None, ""):
            notes.append(f"{run}: current_action names no known action; it was derived from completed_actions.")
        return _by_completions(plan, document, known)
    contradiction = _contradiction(document, known, pointer)
    if contradiction is None:
        return pointer
    notes.append(f"{run}: {contradiction.note}")
    return (following(plan, known, pointer) or pointer) if contradiction.moves_on else pointer


@dataclass(frozen=True, kw_only=True, slots=True)
class _Contradiction:
    note: str
    moves_on: bool


def _contradiction(document: JsonObject, known: RunState, pointer: Position) -> _Contradiction | None:
    """Whether the pointed action was completed after the pointer was written: a crash between two writes."""
    if not known.is_completed(pointer) or _is_ended(document):
        return None
    last = known.latest[pointer]
    if _version(document.get("version")) is not None:
        newer = last.version > known.version
    else:
        # Clocks are compared only where there is no version: a file that another program or a person wrote.
        written, completed = _time(document.get("timestamp")), _time(last.at)
        if written is None or completed is None:
            note = f"{pointer.action} is current and completed, and no time tells which is newer; it stays current."
            return _Contradiction(note=note, moves_on=False)
        newer = completed > written
    if not newer:
        return None
    note = f"{pointer.action} was completed after the pointer was written; the pointer was moved on."
    return _Contradiction(note=note, moves_on=True)


def _is_ended(document: JsonObject) -> bool:
    return document.get("workflow_complete") is True or document.get("workflow_ended") is True


def _by_completions(plan: Plan, document: JsonObject, known: RunState) -> Position:
    named = str(document.get("current_behavior", "")).rpartition(".")[2]
    if named in plan.behaviors:
        return derived(plan, known, named)
    if known.latest:
        return derived(plan, known, max(known.latest.values(), key=lambda each: each.version).position.behavior)
    return plan.first


def _read_history(plan: Plan, raw: Any, notes: list[str]) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    newest = 0
    for number, each in enumerate(cast(list[Any], raw) if isinstance(raw, list) else []):
        part: JsonObject = cast(JsonObject, each) if isinstance(each, dict) else {}
        position = _position(plan, part.get("action_state"))
        if position is None:
            notes.append(f"completed_actions[{number}] names no known action and was left out.")
            continue
        version = _version(part.get("version"))
        # A line that a person added has no version: it is newer than those above it.
        version = newest + 1 if version is None else version
        newest = max(newest, version)
        approval = part.get("approval")
        entries.append(
            Entry(
                position=position,
                at=_text(part.get("timestamp")) or "",
                version=version,
                kind="reopened" if part.get("reopened") is True else "completed",
                approval=cast(Approval, approval) if approval in _APPROVALS else "claimed",
                delivered=part.get("delivered") is not False,
                reason=_text(part.get("reason")),
                by=_text(part.get("by")),
            )
        )
    return tuple(entries)


def _read_pointers(plan: Plan, raw: Any) -> dict[str, str]:
    pointers: dict[str, str] = {}
    for name, part in cast(JsonObject, raw).items() if isinstance(raw, dict) else ():
        action = cast(JsonObject, part).get("current_action") if isinstance(part, dict) else part
        if name in plan.behaviors and isinstance(action, str) and action.rpartition(".")[2] in plan.actions:
            pointers[name] = action.rpartition(".")[2]
    return pointers


def _position(plan: Plan, path: Any) -> Position | None:
    """The position of `bot.behavior.action`; three parts, this bot, known names."""
    if not isinstance(path, str) or path.count(".") != 2:
        return None
    bot, behavior, action = path.split(".")
    position = Position(behavior=behavior, action=action)
    return position if bot == plan.bot and plan.knows(position) else None


def _time(raw: Any) -> datetime | None:
    """A time as files write it; one without a zone is read as UTC."""
    try:
        read = datetime.fromisoformat(str(raw))
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def _text(raw: Any) -> str | None:
    # Half a surrogate pair can stand in JSON and in no file.
    return raw.encode("utf-8", "replace").decode("utf-8") if isinstance(raw, str) else None


def _version(raw: Any) -> int | None:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw < _MAX_VERSION else None


def _count(raw: Any) -> int:
    return _version(raw) or 0


def fresh_runs(plan: Plan) -> dict[str, RunState]:
    """What a bot that has no state yet starts with."""
    return {MAIN: begin(plan)}
