"""Conversation with the model: messages, notes, compaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from trysquare.agents.tool_calls import CallRecord, bounded
from trysquare.core.errors import InvalidArguments
from trysquare.core.result import dump_json
from trysquare.core.text import truncate
from trysquare.models import Message, Model

MAX_NOTES = 50
MAX_NOTE = 300


class Notes:
    def __init__(self) -> None:
        self._decisions: list[str] = []
        self._tasks: dict[int, str] = {}
        self._number = 0

    def decide(self, text: str) -> str:
        self._decisions = [*self._decisions, truncate(text.strip(), MAX_NOTE)][-MAX_NOTES:]
        return "Noted."

    def open_task(self, text: str) -> str:
        if len(self._tasks) >= MAX_NOTES:
            raise InvalidArguments(f"Too many open tasks (limit {MAX_NOTES}).", instruction="Close some first.")
        self._number += 1
        self._tasks[self._number] = truncate(text.strip(), MAX_NOTE)
        return f"Task {self._number} is open."

    def close_task(self, number: int) -> str:
        if self._tasks.pop(number, None) is None:
            known = ", ".join(map(str, self._tasks)) or "none"
            raise InvalidArguments(f"Unknown task {number}. Open tasks: {known}.")
        return f"Task {number} is closed; {len(self._tasks)} left."

    def lines(self) -> list[str]:
        decided = [f"- decided: {text}" for text in self._decisions]
        return decided + [f"- open task {number}: {text}" for number, text in self._tasks.items()]


THRESHOLD = 0.75
_RECENT_STEPS = 3
_MAX_LINES = 120
_REMARK, _MAX_REMARKS = 200, 20
_TURN_TOKENS = 8
"""Overhead of a message: its role and delimiters."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """Messages and calls of one step."""

    messages: tuple[Message, ...]
    records: tuple[CallRecord, ...] = ()
    remarks: tuple[str, ...] = ()
    """Summaries of what the model wrote in the steps that this one replaces."""


def compacted(
    steps: Sequence[Step], *, notes: Notes, most_tokens: int, count: Callable[[str], int]
) -> tuple[Step, ...]:
    """Replace older steps by one summary; the fewer tokens are left, the fewer recent steps stay verbatim."""
    recent_steps = _RECENT_STEPS
    while recent_steps > 0 and _tokens(steps[-recent_steps:], count) > most_tokens // 2:
        recent_steps -= 1
    old, recent = steps[: len(steps) - recent_steps], steps[len(steps) - recent_steps :]
    if not old:
        return tuple(steps)
    records, remarks = tuple(record for step in old for record in step.records), _remarks(old)
    summary = bounded(_summary(records, remarks, notes), max(most_tokens, 200))
    return (Step(messages=(Message(role="user", text=summary),), records=records, remarks=remarks), *recent)


def shortened(steps: Sequence[Step], limit: int) -> tuple[Step, ...]:
    """Truncate every message, for when even the last step is too long."""
    return tuple(
        replace(step, messages=tuple(replace(turn, text=bounded(turn.text, limit)) for turn in step.messages))
        for step in steps
    )


def _tokens(steps: Sequence[Step], count: Callable[[str], int]) -> int:
    return sum(count(message.text) + _TURN_TOKENS for step in steps for message in step.messages)


def _summary(records: Sequence[CallRecord], remarks: Sequence[str], notes: Notes) -> str:
    changed = dict.fromkeys(name for record in records for name in record.modified_files)
    parts = [
        ("Your notes", notes.lines()),
        ("What you wrote", [f"- {text}" for text in remarks]),
        ("Handles that are still valid", sorted({f"- {handle}" for record in records for handle in record.handles})),
        ("Files changed so far", [f"- {name}" for name in changed]),
        ("Calls so far", [_line(record) for record in records][-_MAX_LINES:]),
    ]
    sections = [f"{title}:\n" + "\n".join(lines) for title, lines in parts if lines]
    return "Summary of the earlier steps of this run.\n\n" + "\n\n".join(sections)


def _remarks(steps: Sequence[Step]) -> tuple[str, ...]:
    """The model's own words next to its calls: its reasons, where it notes none."""
    remarks: list[str] = []
    for step in steps:
        written = (turn.text.strip() for turn in step.messages if turn.role == "assistant")
        remarks += step.remarks
        remarks += [truncate(" ".join(text.split()), _REMARK) for text in written if text and text[0] not in "{["]
    return tuple(remarks[-_MAX_REMARKS:])


def _line(record: CallRecord) -> str:
    first = record.text.strip().splitlines()[:1]
    state = "ok" if record.success else f"failed ({record.code})"
    arguments = truncate(dump_json(record.call.arguments), 120)
    return f"- {record.call.name} {arguments}: {state}; {truncate(''.join(first), 120)}"


_LEAST_ANSWER = 200
_MAX_SHRINKS = 3


class Conversation:
    """The task and every step since."""

    def __init__(self, task: str, model: Model, notes: Notes, *, answer_tokens: int) -> None:
        self._task = Message(role="user", text=task)
        self._model, self._notes, self._answer_tokens = model, notes, answer_tokens
        self._steps: tuple[Step, ...] = ()
        self._tokens = 0
        self.asked: set[str] = set()
        """Choices about which the user was asked already."""
        self._shrunk_for_server = 0

    def messages(self, system: str) -> tuple[Message, ...]:
        turns = [message for step in self._steps for message in step.messages]
        return (Message(role="system", text=system), self._task, *turns)

    def add(self, answer: Message, records: Sequence[CallRecord], notes: Sequence[str]) -> None:
        extra = [Message(role="user", text="\n\n".join(notes))] if notes else []
        messages = (answer, *(record.message() for record in records), *extra)
        self._append(Step(messages=messages, records=tuple(records)))

    def add_user(self, text: str) -> None:
        self._append(Step(messages=(Message(role="user", text=text),)))

    def last_answer(self) -> str:
        turns = [message for step in self._steps[-1:] for message in step.messages if message.role == "assistant"]
        return turns[-1].text[:300] if turns else ""

    def can_shrink(self) -> bool:
        return bool(self._steps) and self._shrunk_for_server < _MAX_SHRINKS

    def fit(self, system_tokens: int, *, share: float = THRESHOLD) -> None:
        """Compact the conversation if it exceeds a share of the model's context."""
        self._shrunk_for_server += share < THRESHOLD
        most = int(self._model.context_tokens * share) - self._answer_tokens - system_tokens
        most -= self._counted(self._task)
        if self._tokens <= max(most, _LEAST_ANSWER) or not self._steps:
            return
        self._replace(compacted(self._steps, notes=self._notes, most_tokens=max(most, 1), count=self._model.count))
        if self._tokens > max(most, _LEAST_ANSWER):
            self._replace(shortened(self._steps, max(most, _LEAST_ANSWER)))

    def _append(self, step: Step) -> None:
        self._steps = (*self._steps, step)
        self._tokens += sum(map(self._counted, step.messages))

    def _replace(self, steps: tuple[Step, ...]) -> None:
        self._steps = steps
        self._tokens = sum(self._counted(message) for step in steps for message in step.messages)

    def _counted(self, message: Message) -> int:
        calls = sum(self._model.count(dump_json(call.arguments)) for call in message.calls)
        return self._model.count(message.text) + calls + _TURN_TOKENS
