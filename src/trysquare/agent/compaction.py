"""Compaction: a dialogue that grows too long is told in short, and nothing that later steps need is lost.

What stays: the task, the model's decisions and open tasks, the handles that tools gave, the files that were changed, a
line for each call, and the last steps word by word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from trysquare.agent.notes import Notes
from trysquare.agent.records import CallRecord, bounded
from trysquare.core.result import dump_json
from trysquare.core.shortening import short
from trysquare.models.messages import Message

THRESHOLD = 0.75
_KEPT_STEPS = 3
_MOST_LINES = 120
_SAID, _MOST_SAID = 200, 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One step of a dialogue: its turns, and the calls that were made in it."""

    messages: tuple[Message, ...]
    records: tuple[CallRecord, ...] = ()
    said: tuple[str, ...] = ()
    """What the model had said in the steps that this one tells in short."""


def compacted(
    steps: Sequence[Step], *, notes: Notes, most_tokens: int, count: Callable[[str], int], kept: int = _KEPT_STEPS
) -> tuple[Step, ...]:
    """The steps with the older ones told in one turn. The fewer fit, the fewer of the last ones stay whole."""
    while kept > 0 and _tokens(steps[-kept:], count) > most_tokens // 2:
        kept -= 1
    old, recent = steps[: len(steps) - kept], steps[len(steps) - kept :]
    if not old:
        return tuple(steps)
    told = bounded(_told(old, notes), max(most_tokens, 200))
    short_step = Step(messages=(Message(role="user", text=told),), records=_records(old), said=_said(old))
    return (short_step, *recent)


def shortened(steps: Sequence[Step], limit: int) -> tuple[Step, ...]:
    """The same steps with every answer of a tool cut to a limit, where even the last step is too long."""
    return tuple(
        replace(step, messages=tuple(replace(turn, text=bounded(turn.text, limit)) for turn in step.messages))
        for step in steps
    )


def _tokens(steps: Sequence[Step], count: Callable[[str], int]) -> int:
    return sum(count(message.text) + 8 for step in steps for message in step.messages)


def _records(steps: Sequence[Step]) -> tuple[CallRecord, ...]:
    return tuple(record for step in steps for record in step.records)


def _told(steps: Sequence[Step], notes: Notes) -> str:
    records = _records(steps)
    parts = [
        ("Your notes", notes.lines()),
        ("What you said", [f"- {text}" for text in _said(steps)]),
        ("Handles that are still valid", sorted({f"- {handle}" for record in records for handle in record.handles})),
        ("Files changed so far", _changed(records)),
        ("Calls so far", [_line(record) for record in records][-_MOST_LINES:]),
    ]
    told = [f"{title}:\n" + "\n".join(lines) for title, lines in parts if lines]
    return "The earlier steps of this run, in short.\n\n" + "\n\n".join(told)


def _said(steps: Sequence[Step]) -> tuple[str, ...]:
    """What the model said beside its calls: its reasons are its decisions, where it notes none."""
    said: list[str] = []
    for step in steps:
        spoken = (turn.text.strip() for turn in step.messages if turn.role == "assistant")
        said += [*step.said, *(short(" ".join(text.split()), _SAID) for text in spoken if text and text[0] not in "{[")]
    return tuple(said[-_MOST_SAID:])


def _changed(records: Sequence[CallRecord]) -> list[str]:
    return [f"- {name}" for name in dict.fromkeys(name for record in records for name in record.modified_files)]


def _line(record: CallRecord) -> str:
    first = record.text.strip().splitlines()[:1]
    state = "ok" if record.success else f"failed ({record.code})"
    return f"- {record.call.name} {short(dump_json(record.call.arguments), 120)}: {state}; {short(''.join(first), 120)}"
