"""Stuck: a model that sends the same call again, or gets nowhere, is told so, and then stopped.

A call is the same by its tool and its arguments, whatever it answers. It may well be sent again after something else
was done: tests are run again after a change. So repeats are counted from the last call that did something new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from trysquare.agent.own_tools import OWN_NAMES
from trysquare.agent.records import CallRecord
from trysquare.core.consent import arguments_digest

_TOLD_IDLE, _MOST_IDLE = 3, 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What is said to a model that gets nowhere, and whether the run ends with it."""

    told: str | None = None
    stopped: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Patience:
    """After how many same calls a model is told, and after how many it is stopped."""

    told: int
    stopped: int


_SAME_ANSWER = _Patience(told=2, stopped=4)
_CHANGES = _Patience(told=3, stopped=6)
"""For a call that may change something: its answers may differ only because of what it did itself."""
_READS = _Patience(told=6, stopped=12)
"""For one that only reads and answers otherwise each time: it may be waiting for something."""


@dataclass(kw_only=True, slots=True)
class _Count:
    calls: int = 0
    answers: dict[str, int] = field(default_factory=dict[str, int])


class StuckWatch:
    """Looks at each step of a run for something new."""

    def __init__(self, only_reads: Callable[[CallRecord], bool] = lambda record: False) -> None:
        self._only_reads = only_reads
        self._known: set[tuple[str, str]] = set()
        self._since: dict[tuple[str, str], _Count] = {}
        """The calls since the last one that did something new."""
        self._idle = 0
        self._silent = 0

    def observe(self, records: Sequence[CallRecord], *, cut: str | None = None) -> Verdict:
        """Take in one step: its calls and what they came to; and whether its answer was cut."""
        if not records:
            return self._observe_silence(cut is not None)
        self._silent = 0
        new = [self._take(record) for record in records]
        self._idle = 0 if any(new) else self._idle + 1
        return self._judged(records)

    def _take(self, record: CallRecord) -> bool:
        """Count a call; whether it brought anything new."""
        key = _identity(record)
        is_new = record.success and key not in self._known and record.call.name not in OWN_NAMES
        self._known.add(key)
        before = self._since.get(key, _Count())
        if is_new and (record.modified_files or not self._only_reads(record)):
            self._since = {key: before}
        count = self._since.setdefault(key, before)
        count.calls += 1
        count.answers[record.text] = count.answers.get(record.text, 0) + 1
        return is_new or (self._only_reads(record) and count.answers[record.text] == 1 and record.success)

    def _judged(self, records: Sequence[CallRecord]) -> Verdict:
        told: str | None = None
        for record in records:
            calls, patience = self._repeats(record)
            if calls >= patience.stopped:
                return Verdict(stopped=f"The same call of `{record.call.name}` was sent {calls} times.")
            if calls >= patience.told:
                told = (
                    f"You sent the same call of `{record.call.name}` {calls} times, and nothing new was done between. "
                    "Do something else."
                )
        if self._idle >= _MOST_IDLE:
            return Verdict(stopped=f"Nothing new came of the last {self._idle} steps.")
        if told is None and self._idle >= _TOLD_IDLE:
            told = f"Nothing new came of the last {self._idle} steps. Try another way, or call `give_up` and say why."
        return Verdict(told=told)

    def _repeats(self, record: CallRecord) -> tuple[int, _Patience]:
        count = self._since.get(_identity(record), _Count())
        same = count.answers.get(record.text, 0)
        if same >= _SAME_ANSWER.told:
            return same, _SAME_ANSWER
        return count.calls, _READS if self._only_reads(record) else _CHANGES

    def _observe_silence(self, cut: bool) -> Verdict:
        self._silent += 1
        if self._silent >= _TOLD_IDLE and cut:
            why = "answers held no call, and the last was cut: the model may need more tokens for one (answer_tokens)"
            return Verdict(stopped=f"The last {self._silent} {why}.")
        if self._silent >= _TOLD_IDLE:
            return Verdict(stopped=f"The last {self._silent} answers held no call.")
        return Verdict(told='Your answer held no call that could be run. Answer with {"name": "…", "args": {…}}.')


def _identity(record: CallRecord) -> tuple[str, str]:
    return record.call.name, arguments_digest(record.call.arguments)
