"""The state as `workflow_state.json` shows it, and back: fields that people read and edit by hand.

The four fields that every reader knows stay as they are: `current_behavior`, `current_action`, `timestamp` and
`completed_actions`. Beside them stand `schema`, `version`, a pointer for each behavior, and the other runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from trysquare.bots.plan import Plan, Position
from trysquare.bots.workflow import Approval, Entry, RunState, begin, derived
from trysquare.core.types import JsonObject

SCHEMA = 1
MAIN = "main"
_APPROVALS = frozenset({"claimed", "proven", "auto", "combined", "skipped"})


class UnreadableState(Exception):
    """A text that is no state of this bot, with the reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """What a file says, and whether its parts agreed."""

    runs: Mapping[str, RunState]
    histories: Mapping[str, tuple[Entry, ...]]
    inconsistent: tuple[str, ...] = ()


def dump_state(plan: Plan, runs: Mapping[str, RunState], histories: Mapping[str, Sequence[Entry]], *, at: str) -> str:
    """The text of the file: the main run at the top, the others below `runs`."""
    document: JsonObject = {**_run_document(plan, runs[MAIN], histories.get(MAIN, ()), at), "schema": SCHEMA}
    others = sorted(name for name in runs if name != MAIN)
    if others:
        document["runs"] = {name: _run_document(plan, runs[name], histories.get(name, ()), at) for name in others}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _run_document(plan: Plan, state: RunState, history: Sequence[Entry], at: str) -> JsonObject:
    document: JsonObject = {
        "current_behavior": f"{plan.bot}.{state.current.behavior}",
        "current_action": state.current.path(plan.bot),
        "timestamp": at,
        "completed_actions": [entry_document(plan, entry) for entry in history],
        "version": state.version,
        "behaviors": {name: {"current_action": action} for name, action in state.pointers.items()},
    }
    if state.delivered:
        document["delivered"] = True
    if state.finished:
        document["workflow_complete"] = True
    if state.rejections:
        document["rejections"] = state.rejections
    return document


def entry_document(plan: Plan, entry: Entry) -> JsonObject:
    """One line of `completed_actions`."""
    document: JsonObject = {
        "action_state": entry.position.path(plan.bot),
        "timestamp": entry.at,
        "version": entry.version,
    }
    if entry.kind == "reopened":
        return {**document, "reopened": True, **({"by": entry.by} if entry.by else {})}
    document["approval"] = entry.approval
    if not entry.delivered:
        document["delivered"] = False
    for name, value in (("reason", entry.reason), ("by", entry.by)):
        if value:
            document[name] = value
    return document


def parse_state(plan: Plan, text: str) -> Imported:
    """Read a file that a person may have written, or raise `UnreadableState`."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableState(f"it is not JSON ({error})") from None
    if not isinstance(document, dict):
        raise UnreadableState("it is not a JSON object")
    top = cast(JsonObject, document)
    if isinstance(schema := top.get("schema"), int) and schema > SCHEMA:
        raise UnreadableState(f"its schema is {schema}, and this version knows {SCHEMA}")
    notes: list[str] = []
    others = top.get("runs")
    parts: JsonObject = {**cast(JsonObject, others if isinstance(others, dict) else {}), MAIN: top}
    runs: dict[str, RunState] = {}
    histories: dict[str, tuple[Entry, ...]] = {}
    for name, part in parts.items():
        if isinstance(part, dict):
            histories[name] = _read_history(plan, cast(JsonObject, part).get("completed_actions"), notes)
            runs[name] = _read_run(plan, cast(JsonObject, part), histories[name], name, notes)
    return Imported(runs=runs, histories=histories, inconsistent=tuple(notes))


def _read_run(plan: Plan, document: JsonObject, history: tuple[Entry, ...], run: str, notes: list[str]) -> RunState:
    latest = {entry.position: entry for entry in history}
    pointers = _read_pointers(plan, document.get("behaviors"))
    version = document.get("version")
    known = RunState(
        version=version
        if isinstance(version, int) and not isinstance(version, bool) and version >= 0
        else len(history),
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
        finished=document.get("workflow_complete") is True,
        rejections=_count(document.get("rejections")),
    )


def _read_current(plan: Plan, document: JsonObject, known: RunState, notes: list[str], run: str) -> Position:
    """The pointer where it is valid and not contradicted by a newer completion; else what the completions say."""
    pointer = _position(plan, document.get("current_action"))
    if pointer is None:
        if document.get("current_action") not in (None, ""):
            notes.append(f"{run}: current_action names no known action; it was derived from completed_actions.")
        return _by_completions(plan, document, known)
    if (later := _contradiction(document, known, pointer)) is None:
        return pointer
    notes.append(f"{run}: {later}")
    return plan.after(pointer) or pointer


def _contradiction(document: JsonObject, known: RunState, pointer: Position) -> str | None:
    """Whether the pointed action was completed after the pointer was written: a crash between two writes."""
    if not known.is_completed(pointer) or document.get("workflow_complete") is True:
        return None
    last = known.latest[pointer]
    if isinstance(document.get("version"), int):
        newer = last.version > known.version
    else:
        # Clocks are compared only where there is no version: a file that another program wrote.
        written, completed = _time(document.get("timestamp")), _time(last.at)
        if written is None or completed is None:
            return None
        newer = completed > written
    return f"{pointer.action} was completed after the pointer was written; the pointer was moved on." if newer else None


def _by_completions(plan: Plan, document: JsonObject, known: RunState) -> Position:
    named = str(document.get("current_behavior", "")).rpartition(".")[2]
    if named in plan.behaviors:
        return derived(plan, known, named)
    if known.latest:
        return derived(plan, known, max(known.latest.values(), key=lambda each: each.version).position.behavior)
    return plan.first


def _read_history(plan: Plan, raw: Any, notes: list[str]) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for number, each in enumerate(cast(list[Any], raw) if isinstance(raw, list) else []):
        part: JsonObject = cast(JsonObject, each) if isinstance(each, dict) else {}
        position = _position(plan, part.get("action_state"))
        if position is None:
            notes.append(f"completed_actions[{number}] names no known action and was left out.")
            continue
        version = part.get("version")
        approval = part.get("approval")
        entries.append(
            Entry(
                position=position,
                at=str(part.get("timestamp", "")),
                version=version if isinstance(version, int) else number + 1,
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
    return raw if isinstance(raw, str) else None


def _count(raw: Any) -> int:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and raw > 0 else 0


def fresh_runs(plan: Plan) -> dict[str, RunState]:
    """What a bot that has no state yet starts with."""
    return {MAIN: begin(plan)}
