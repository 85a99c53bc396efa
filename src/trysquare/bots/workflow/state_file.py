"""Format of `workflow_state.json`: dump and parse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast, get_args

from trysquare.bots.workflow.machine import (
    Approval,
    Depth,
    Entry,
    Plan,
    Position,
    RunState,
    derived,
    following,
    point_to,
)
from trysquare.bots.workflow.merged import read_file
from trysquare.core.json import JsonObject, as_list, as_object

SCHEMA = 1
MAIN = "main"
_MAX_VERSION = 2**53
_MAX_NAMED = 5
_FIELDS = frozenset(
    [
        "current_behavior",
        "current_action",
        "timestamp",
        "completed_actions",
        "version",
        "schema",
        "behaviors",
        "runs",
        "delivered",
        "strict",
        "preset",
        "workflow_complete",
        "workflow_ended",
        "rejections",
    ]
)
_APPROVALS = frozenset(get_args(Approval))


class UnreadableState(Exception):
    """A text that is not a state of this bot, with the reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """The runs of a state file, and the contradictions in it."""

    runs: Mapping[str, RunState]
    histories: Mapping[str, tuple[Entry, ...]]
    inconsistent: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Fields that no state file has."""


def dump_state(parts: Mapping[str, bytes]) -> bytes:
    """The file: the fields of the main run at the top level, the other runs below `runs`. The same runs give the same
    file; every part comes from `run_part`.
    """
    fields = [parts[MAIN], _field("schema", SCHEMA, 1)]
    others = [_line(2) + _json(name) + b": {" + parts[name] + _line(2) + b"}" for name in sorted(parts) if name != MAIN]
    if others:
        fields.append(_line(1) + b'"runs": {' + b",".join(others) + _line(1) + b"}")
    return b"{" + b",".join(fields) + b"\n}\n"


def run_part(plan: Plan, run: str, state: RunState, *, at: str, lines: Sequence[bytes], complete: bool) -> bytes:
    """The fields of one run; `lines` are those of `entry_line`."""
    depth = _depth(run)
    shown = b"[" + b",".join(lines) + _line(depth) + b"]" if lines else b"[]"
    fields = [
        _field("current_behavior", f"{plan.bot}.{state.current.behavior}", depth),
        _field("current_action", state.current.path(plan.bot), depth),
        _field("timestamp", at, depth),
        _line(depth) + b'"completed_actions": ' + shown,
        _field("version", state.version, depth),
        _line(depth) + b'"behaviors": ' + _pointers(state, depth),
    ]
    fields += [_field(name, value, depth) for name, value in _more_fields(state, complete=complete)]
    return b",".join(fields)


def _pointers(state: RunState, depth: int) -> bytes:
    pointers = [_field(name, {"current_action": action}, depth + 1) for name, action in state.pointers.items()]
    return b"{" + b",".join(pointers) + _line(depth) + b"}" if pointers else b"{}"


def _more_fields(state: RunState, *, complete: bool) -> Iterator[tuple[str, Any]]:
    if state.delivered:
        yield "delivered", True
    if state.finished:
        # A workflow that ended with open actions is not complete.
        yield ("workflow_complete" if complete else "workflow_ended"), True
    if state.strict:
        yield "strict", True
    if state.depth is not None:
        yield "preset", state.depth.name
    if state.rejections:
        yield "rejections", state.rejections


def encoded(text: str) -> bytes:
    """Text of the file as bytes. A lone surrogate stays a JSON escape."""
    return text.encode("utf-8", "backslashreplace")


def _json(value: Any) -> bytes:
    return encoded(json.dumps(value, ensure_ascii=False))


def _field(name: str, value: Any, depth: int) -> bytes:
    return _line(depth) + _json(name) + b": " + _json(value)


def _line(depth: int) -> bytes:
    return b"\n" + b"  " * depth


def _depth(run: str) -> int:
    return 1 if run == MAIN else 3


def entry_line(plan: Plan, run: str, entry: Entry) -> bytes:
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
    return _line(_depth(run) + 1) + _json(document)


def parse_state(plan: Plan, text: str) -> Imported:
    """Read a file that a human may have edited, or raise `UnreadableState`."""
    notes: list[str] = []
    top = _document(plan, text, notes)
    left_out = [name for name in top if name not in _FIELDS]
    notes.extend(f"The field {name[:80]!r} is not of a state file and was left out." for name in left_out[:_MAX_NAMED])
    parts: JsonObject = {**as_object(top.get("runs")), MAIN: top}
    runs: dict[str, RunState] = {}
    histories: dict[str, tuple[Entry, ...]] = {}
    for name, part in parts.items():
        if not isinstance(part, dict) or not is_run_name(name):
            notes.append(f"runs: {name[:80]!r} is not a run and was left out.")
            continue
        histories[name] = _read_history(plan, cast(JsonObject, part).get("completed_actions"), notes)
        runs[name] = _read_run(plan, cast(JsonObject, part), histories[name], name, notes)
    return Imported(runs=runs, histories=histories, inconsistent=tuple(notes), left_out=tuple(left_out))


def is_run_name(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name) is not None


def is_export(text: str) -> bool:
    """Whether a text was exported from a database, which held more than it shows."""
    return {"schema", "version", "behaviors"} <= _parse_object(text).keys()


def is_foreign(text: str, bot: str) -> bool:
    """Whether a text is the state of other bots only."""
    bots = _bots_in(_parse_object(text))
    return bool(bots) and bot not in bots


def _parse_object(text: str) -> JsonObject:
    try:
        return as_object(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _bots_in(document: JsonObject) -> set[str]:
    """The bots at the start of the paths of a file."""
    entries = [as_object(each).get("action_state") for each in as_list(document.get("completed_actions"))]
    paths = [document.get("current_action"), *entries]
    full = {path.split(".")[0] for path in paths if isinstance(path, str) and path.count(".") == 2}
    behavior = document.get("current_behavior")
    return full | ({behavior.split(".")[0]} if isinstance(behavior, str) and behavior.count(".") == 1 else set())


def _document(plan: Plan, text: str, notes: list[str]) -> JsonObject:
    try:
        found = read_file(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableState(f"it is not JSON ({error})") from None
    document = found.document
    notes.extend([] if found.note is None else [found.note])
    if not isinstance(document, dict):
        raise UnreadableState("it is not a JSON object")
    top = cast(JsonObject, document)
    if isinstance(schema := top.get("schema"), int) and schema > SCHEMA:
        raise UnreadableState(f"its schema is {schema}; this version supports {SCHEMA}")
    if not top.keys() & {"current_action", "current_behavior", "completed_actions"}:
        raise UnreadableState("it has none of the fields current_action, current_behavior and completed_actions")
    for name, kind, words in (("completed_actions", list, "a list"), ("behaviors", dict, "an object"),
                              ("runs", dict, "an object")):  # fmt: skip
        if not isinstance(top.get(name, kind()), kind):
            raise UnreadableState(f"{name} is not {words}")
    if (bots := _bots_in(top)) and plan.bot not in bots:
        raise UnreadableState(f"it belongs to another bot, {min(bots)[:80]!r}")
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
        delivered=document.get("delivered") is True,
        rejections=_version(document.get("rejections")) or 0,
        strict=document.get("strict") is True,
        depth=_read_depth(plan, document.get("preset"), notes),
    )
    current = _read_current(plan, document, known, notes, run)
    if current is None:
        # The last action was completed after the pointer was written: nothing follows it.
        return replace(point_to(known, plan_end(plan)), finished=True, delivered=False)
    return replace(point_to(known, current), finished=_is_ended(document))


def _read_depth(plan: Plan, raw: Any, notes: list[str]) -> Depth | None:
    """The depth that a file names. A file proves no agreement, so that it takes away no gate that demands proof."""
    if raw is None:
        return None
    preset = plan.presets.get(raw) if isinstance(raw, str) else None
    if preset is None:
        notes.append(f"The preset {str(raw)[:80]!r} is not one of this bot; a new run has the full depth.")
        return None
    return None if preset.drops_proof else preset.depth


def plan_end(plan: Plan) -> Position:
    """The last action of the workflow."""
    return Position(behavior=plan.behaviors[-1], action=plan.actions[-1])


def _read_current(plan: Plan, document: JsonObject, known: RunState, notes: list[str], run: str) -> Position | None:
    """The pointer where it is valid and not contradicted by a newer completion; else derived from the completions.

    None where the workflow has ended.
    """
    pointer = _position(plan, document.get("current_action"))
    if pointer is None:
        if document.get("current_action") not in (None, ""):
            notes.append(f"{run}: current_action is unknown; it was derived from completed_actions.")
        return _by_completions(plan, document, known)
    if not known.is_completed(pointer) or _is_ended(document):
        return pointer
    is_newer = _is_completed_later(document, known, pointer)
    if is_newer is None:
        notes.append(f"{run}: {pointer.action} is current and completed at an unknown time; it stays current.")
    if not is_newer:
        return pointer
    notes.append(f"{run}: {pointer.action} was completed after the pointer was written; the pointer was moved on.")
    return following(plan, known, pointer)


def _is_completed_later(document: JsonObject, known: RunState, pointer: Position) -> bool | None:
    """Whether the current action was completed after the pointer was written: a crash between two writes."""
    last = known.latest[pointer]
    if _version(document.get("version")) is not None:
        return last.version > known.version
    # Clocks are compared only in a file without versions, which another program or a human wrote.
    written, completed = _time(document.get("timestamp")), _time(last.at)
    return None if written is None or completed is None else completed > written


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
    for number, each in enumerate(as_list(raw)):
        part: JsonObject = as_object(each)
        position = _position(plan, part.get("action_state"))
        if position is None:
            notes.append(f"completed_actions[{number}] is an unknown action and was left out.")
            continue
        version = _version(part.get("version"))
        # A line added by hand has no version: it is newer than those above it.
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
    for name, part in as_object(raw).items():
        action = as_object(part).get("current_action") if isinstance(part, dict) else part
        if name in plan.behaviors and isinstance(action, str) and action.rpartition(".")[2] in plan.actions:
            pointers[name] = action.rpartition(".")[2]
    return pointers


def _position(plan: Plan, path: Any) -> Position | None:
    if not isinstance(path, str) or path.count(".") != 2:
        return None
    bot, behavior, action = path.split(".")
    position = Position(behavior=behavior, action=action)
    return position if bot == plan.bot and plan.contains(position) else None


def _time(raw: Any) -> datetime | None:
    try:
        read = datetime.fromisoformat(str(raw))
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def _text(raw: Any) -> str | None:
    # JSON may contain a lone surrogate, UTF-8 may not.
    return raw.encode("utf-8", "replace").decode("utf-8") if isinstance(raw, str) else None


def _version(raw: Any) -> int | None:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw < _MAX_VERSION else None
