"""Meaning of a close: what a human is told before they agree to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trysquare.bots.plan import Position
from trysquare.bots.tools.answers import Call
from trysquare.bots.workflow import Closed
from trysquare.core.types import JsonObject

_MOST_NAMED = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Meaning:
    """What it means to close an action, for a human who is asked."""

    question: str
    binding: JsonObject


def meaning_of(call: Call, current: Position, closed: Closed, absent: Sequence[str]) -> Meaning:
    """What closing leads to: the next action or the end, what stays open, and which files are not there."""
    left, path = call.open_actions(closed.state), current.path(call.bot.name)
    names = [f"{each.behavior}.{each.action}" for each in left]
    verb = "Skip" if call.parameters.skip else "Close"
    lines = [f"{verb} {path} in run {call.parameters.run}?"]
    if call.parameters.skip:
        lines.append(f"Its work is not done. Reason: {call.parameters.reason}.")
    if closed.next is not None:
        lines.append(f"The next action is {closed.next.behavior}.{closed.next.action}.")
    elif left:
        lines.append(f"This ends the workflow with {len(left)} open: {_some(names)}.")
    else:
        lines.append("This completes the workflow.")
    earlier = [name for each, name in zip(left, names, strict=True) if call.plan.comes_before(each, current)]
    if closed.next is not None and earlier:
        lines.append(f"Open before it: {_some(earlier)}.")
    if absent:
        lines.append(f"Missing files: {_some(absent)}.")
    binding: JsonObject = {"ends_workflow": closed.next is None, "open_actions": len(left), "absent": list(absent)}
    return Meaning(question=" ".join(lines), binding=binding)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    return shown if len(names) <= _MOST_NAMED else f"{shown} and {len(names) - _MOST_NAMED} more"
