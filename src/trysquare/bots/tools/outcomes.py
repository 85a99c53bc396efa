"""Outcomes: what a close answers, also where there was nothing left to close."""

from __future__ import annotations

from collections.abc import Sequence
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
    return repeated(call, state, last.position, last)


def repeated(call: Call, state: RunState, position: Position, entry: Entry) -> JsonObject:
    """What is answered where the action was closed before."""
    following = None if state.finished else state.current
    return {
        **outcome(position, following, entry.approval, call.open_actions(state)),
        "already_closed": True,
        "message": f"{position.action} was closed before; nothing was changed.",
    }


def nothing_left(call: Call, state: RunState) -> JsonObject:
    """What is answered where the end of the order was reached before."""
    last, left = state.latest.get(state.current), call.open_actions(state)
    told = outcome(state.current, None, last.approval if last else "claimed", left)
    said = ended_text(left) if left else "The workflow is complete."
    return {**told, "already_closed": True, "message": f"{said} Nothing was changed."}


def ended_text(left: Sequence[Position]) -> str:
    """That the end was reached with something open."""
    count = "1 action is" if len(left) == 1 else f"{len(left)} actions are"
    return f"The last action is closed, but the workflow is not complete: {count} open."


def end_fields(left: Sequence[Position]) -> JsonObject:
    """Whether the workflow is complete at its end, and what is open if it is not."""
    if not left:
        return {"workflow_complete": True}
    shown = [f"{each.behavior}.{each.action}" for each in left[:_MOST_SHOWN]]
    return {"workflow_complete": False, "open_actions": shown, "open_count": len(left)}


def outcome(
    completed: Position, following: Position | None, approval: Approval, left: Sequence[Position]
) -> JsonObject:
    """What every answer to a close says; `left` is what is still to be done."""
    told: JsonObject = {
        "behavior": completed.behavior,
        "action": completed.action,
        "completed_action": completed.action,
        "next_action": None if following is None else following.action,
        "approval": approval,
    }
    if following is None:
        told.update(end_fields(left))
        told["next_behavior"] = None
    return told


def answered(call: Call, stored: JsonObject, notices: Notices, *, replayed: bool = False) -> Result[Any]:
    """The answer of the close tool, from what is kept of it."""
    fields = dict(stored)
    position = Position(behavior=fields.pop("behavior"), action=fields.pop("action"))
    message = fields.pop("message", None)
    warnings = tuple(fields.pop("warnings", ()))
    ends, done = "workflow_complete" in fields, bool(fields.get("workflow_complete"))
    if replayed:
        fields["replayed"] = True
    told = Told(
        status=fields.pop("status", "completed"),
        action_completed=fields.pop("action_completed", True),
        action_state=fields.pop("action_state", "completed"),
        next=None if done else _first_open(call, fields) if ends else call.forward_next(),
        message=message or _said(position, fields),
        instruction=_DONE if done else _ENDED if ends else "Send `next` to go on.",
        warnings=warnings,
        fields=fields,
        notices=notices,
    )
    return answer(call, position, told)


def _first_open(call: Call, fields: JsonObject) -> JsonObject:
    behavior, _, action = str(fields["open_actions"][0]).partition(".")
    return call.action_next(Position(behavior=behavior, action=action))


_MOST_SHOWN = 20
_DONE = "Tell the user that the workflow is complete."
_ENDED = "Tell the user what is open; `next` opens the first of it."


def _said(position: Position, fields: JsonObject) -> str:
    following = fields.get("next_action")
    if following is None and not fields.get("workflow_complete"):
        count = fields.get("open_count", 0)
        what = "1 action is" if count == 1 else f"{count} actions are"
        return f"{position.behavior}.{position.action} is closed. The workflow is not complete: {what} open."
    if following is None:
        return f"{position.behavior}.{position.action} is closed. The workflow is complete."
    elsewhere = f" of {fields['next_behavior']}" if fields.get("next_behavior") else ""
    return f"{position.behavior}.{position.action} is closed. The next action is {following}{elsewhere}."
