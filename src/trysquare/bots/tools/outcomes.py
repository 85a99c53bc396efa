"""Outcomes: what a close answers, also where there was nothing left to close."""

from __future__ import annotations

from typing import Any

from trysquare.bots.ledger import split_path
from trysquare.bots.plan import Position
from trysquare.bots.tools.answers import Call, Told, answer
from trysquare.bots.window_rules import Notices
from trysquare.bots.workflow import Approval, Entry, RunState
from trysquare.core.result import Result
from trysquare.core.types import JsonObject


def already_closed(call: Call, state: RunState, expected: str) -> JsonObject | None:
    """A close that is sent twice must not close the action after it."""
    named = split_path(call.bot.name, expected)
    if named is None:
        return None
    done = [
        entry
        for position, entry in state.latest.items()
        if entry.kind == "completed" and position.action == named.action and named.behavior in ("", position.behavior)
    ]
    if not done:
        return None
    last = max(done, key=lambda entry: entry.version)
    return repeated(state, last.position, last)


def repeated(state: RunState, position: Position, entry: Entry) -> JsonObject:
    """What is answered where the action was closed before."""
    following = None if state.finished else state.current
    return {
        **outcome(position, following, entry.approval),
        "already_closed": True,
        "message": f"{position.action} was closed before; nothing was changed.",
    }


def nothing_left(state: RunState) -> JsonObject:
    """What is answered where the whole workflow is done."""
    last = state.latest.get(state.current)
    told = outcome(state.current, None, last.approval if last else "claimed")
    return {**told, "already_closed": True, "message": "The workflow is complete; nothing was changed."}


def outcome(completed: Position, following: Position | None, approval: Approval) -> JsonObject:
    """What every answer to a close says."""
    told: JsonObject = {
        "behavior": completed.behavior,
        "action": completed.action,
        "completed_action": completed.action,
        "next_action": None if following is None else following.action,
        "approval": approval,
    }
    if following is None:
        told["workflow_complete"] = True
        told["next_behavior"] = None
    return told


def answered(call: Call, stored: JsonObject, notices: Notices, *, replayed: bool = False) -> Result[Any]:
    """The answer of the close tool, from what is kept of it."""
    fields = dict(stored)
    position = Position(behavior=fields.pop("behavior"), action=fields.pop("action"))
    message = fields.pop("message", None)
    warnings = tuple(fields.pop("warnings", ()))
    done = bool(fields.get("workflow_complete"))
    if replayed:
        fields["replayed"] = True
    told = Told(
        status=fields.pop("status", "completed"),
        action_completed=fields.pop("action_completed", True),
        action_state=fields.pop("action_state", "completed"),
        next=None if done else call.forward_next(),
        message=message or _said(position, fields),
        instruction="Tell the person that the workflow is complete." if done else "Send `next` to go on.",
        warnings=warnings,
        fields=fields,
        notices=notices,
    )
    return answer(call, position, told)


def _said(position: Position, fields: JsonObject) -> str:
    following = fields.get("next_action")
    if following is None:
        return f"{position.behavior}.{position.action} is closed. The workflow is complete."
    elsewhere = f" of {fields['next_behavior']}" if fields.get("next_behavior") else ""
    return f"{position.behavior}.{position.action} is closed. The next action is {following}{elsewhere}."
