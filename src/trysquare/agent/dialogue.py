"""Dialogue: the turns of a run as the model gets them, made shorter before they outgrow its context."""

from __future__ import annotations

from collections.abc import Sequence

from trysquare.agent.compaction import THRESHOLD, Step, compacted, shortened
from trysquare.agent.notes import Notes
from trysquare.agent.records import CallRecord
from trysquare.core.result import dump_json
from trysquare.models.messages import Message
from trysquare.models.model import Model

_TURN_TOKENS = 8
"""What a turn costs beside its text: its role and the marks around it."""
_LEAST_ANSWER = 200
_MOST_SHRINKS = 3


class Dialogue:
    """The task, and every step since."""

    def __init__(self, task: str, model: Model, notes: Notes, *, answer_tokens: int) -> None:
        self._task = Message(role="user", text=task)
        self._model, self._notes, self._answer_tokens = model, notes, answer_tokens
        self._steps: tuple[Step, ...] = ()
        self._tokens = 0
        self.asked: set[str] = set()
        """Doubts about which the person was asked already."""
        self.compactions = 0
        self._shrunk_for_server = 0

    def messages(self, system: str) -> tuple[Message, ...]:
        """The whole dialogue for one request."""
        turns = [message for step in self._steps for message in step.messages]
        return (Message(role="system", text=system), self._task, *turns)

    def add(self, said: Message, records: Sequence[CallRecord], notes: Sequence[str]) -> None:
        """Take in a step: what the model said, what came of its calls, and what the loop has to say."""
        told = [Message(role="user", text="\n\n".join(notes))] if notes else []
        messages = (said, *(record.message() for record in records), *told)
        self._append(Step(messages=messages, records=tuple(records)))

    def say(self, text: str) -> None:
        """Say something to the model between two answers."""
        self._append(Step(messages=(Message(role="user", text=text),)))

    def last_said(self) -> str:
        """What the model said last."""
        turns = [message for step in self._steps[-1:] for message in step.messages if message.role == "assistant"]
        return turns[-1].text[:300] if turns else ""

    def can_shrink(self) -> bool:
        """Whether there is anything left that can be told in fewer words."""
        return bool(self._steps) and self._shrunk_for_server < _MOST_SHRINKS

    def fit(self, system_tokens: int, *, share: float = THRESHOLD) -> None:
        """Make the dialogue shorter where it has grown past a share of the model's context."""
        self._shrunk_for_server += share < THRESHOLD
        most = int(self._model.context_tokens * share) - self._answer_tokens - system_tokens
        most -= self._counted(self._task)
        if self._tokens <= max(most, _LEAST_ANSWER) or not self._steps:
            return
        self.compactions += 1
        self._replace(compacted(self._steps, notes=self._notes, most_tokens=max(most, 1), count=self._model.count))
        if self._tokens > max(most, _LEAST_ANSWER):
            self._replace(shortened(self._steps, max(most, _LEAST_ANSWER)))

    def _append(self, step: Step) -> None:
        self._steps = (*self._steps, step)
        self._tokens += sum(self._counted(message) for message in step.messages)

    def _replace(self, steps: tuple[Step, ...]) -> None:
        self._steps = steps
        self._tokens = sum(self._counted(message) for step in steps for message in step.messages)

    def _counted(self, message: Message) -> int:
        calls = sum(self._model.count(dump_json(call.arguments)) for call in message.calls)
        return self._model.count(message.text) + calls + _TURN_TOKENS
