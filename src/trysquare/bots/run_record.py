"""A run's state and its history as the store keeps them: JSON, and back under the plan of today."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from trysquare.bots.plan import Plan, Position
from trysquare.bots.workflow import Entry, RunState, derived
from trysquare.core.types import JsonObject

_PLAIN: JsonObject = {"kind": "completed", "approval": "claimed", "delivered": True, "reason": None, "by": None,
                      "how": None, "files": None}  # fmt: skip


def entry_record(entry: Entry) -> JsonObject:
    """A line of the history; what is as usual is left out."""
    record: JsonObject = {
        "behavior": entry.position.behavior,
        "action": entry.position.action,
        "at": entry.at,
        "version": entry.version,
    }
    return record | {name: value for name in _PLAIN if (value := getattr(entry, name)) != _PLAIN[name]}


def read_entry(record: JsonObject) -> Entry:
    """The line of a record."""
    fields: dict[str, Any] = {**_PLAIN, **record}
    position = Position(behavior=fields.pop("behavior"), action=fields.pop("action"))
    return Entry(position=position, **fields)


def head_record(state: RunState) -> JsonObject:
    """A state without the last words on its actions: small, whatever the bot."""
    return {
        "current": [state.current.behavior, state.current.action],
        "pointers": dict(state.pointers),
        "delivered": state.delivered,
        "finished": state.finished,
        "rejections": state.rejections,
        **({"strict": True} if state.strict else {}),
    }


def state_record(state: RunState) -> JsonObject:
    """A whole state."""
    return {**head_record(state), "latest": [entry_record(entry) for entry in state.latest.values()]}


def read_state(plan: Plan, version: int, record: JsonObject, history: Iterable[Entry] | None = None) -> RunState:
    """The state of a record; with a history, its last words come from there.

    The plan may have changed since the record was written: a position that it no longer knows is derived anew.
    """
    kept = (read_entry(cast(JsonObject, each)) for each in record.get("latest", [])) if history is None else history
    behavior, action = record["current"]
    state = RunState(
        version=version,
        current=Position(behavior=behavior, action=action),
        pointers={name: pointer for name, pointer in record["pointers"].items() if name in plan.behaviors},
        latest={entry.position: entry for entry in kept},
        delivered=record["delivered"],
        finished=record["finished"],
        rejections=record["rejections"],
        strict=record.get("strict", False),
    )
    return state if plan.knows(state.current) else _moved_to_known(plan, state)


def read_head(plan: Plan, version: int, record: JsonObject) -> RunState:
    """The state of a record without the last words on its actions, which a file shows in its history."""
    behavior, action = record["current"]
    is_known = plan.knows(Position(behavior=behavior, action=action))
    return read_state(plan, version, record, () if is_known else None)


def _moved_to_known(plan: Plan, state: RunState) -> RunState:
    behavior = state.current.behavior if state.current.behavior in plan.behaviors else plan.behaviors[0]
    known = {place: entry for place, entry in state.latest.items() if plan.knows(place)}
    current = derived(plan, replace(state, latest=known), behavior)
    return replace(state, current=current, pointers={**state.pointers, behavior: current.action}, delivered=False)
