"""Stuck: a model that sends the same call again, or gets nowhere, is told so, and then stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trysquare.agent.records import CallRecord
from trysquare.core.consent import arguments_digest

_TOLD_REPEATS, _MOST_REPEATS = 2, 4
_TOLD_IDLE, _MOST_IDLE = 3, 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What is said to a model that gets nowhere, and whether the run ends with it."""

    told: str | None = None
    stopped: str | None = None


class StuckWatch:
    """Looks at each step of a run for something new."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, str], int] = {}
        self._idle = 0
        self._silent = 0

    def observe(self, records: Sequence[CallRecord]) -> Verdict:
        """Take in one step: its calls and what they came to."""
        if not records:
            return self._observe_silence()
        self._silent = 0
        counts = [self._counted(record) for record in records]
        if any(record.success and count == 1 for record, count in zip(records, counts, strict=True)):
            self._idle = 0
        else:
            self._idle += 1
        return self._judged(records, counts)

    def _counted(self, record: CallRecord) -> int:
        key = (record.call.name, arguments_digest(record.call.arguments), record.text)
        self._seen[key] = self._seen.get(key, 0) + 1
        return self._seen[key]

    def _judged(self, records: Sequence[CallRecord], counts: Sequence[int]) -> Verdict:
        most, record = max(zip(counts, records, strict=True), key=lambda pair: pair[0])
        if most >= _MOST_REPEATS:
            return Verdict(stopped=f"The same call of `{record.call.name}` was sent {most} times with the same answer.")
        if self._idle >= _MOST_IDLE:
            return Verdict(stopped=f"Nothing new came of the last {self._idle} steps.")
        if most >= _TOLD_REPEATS:
            return Verdict(
                told=f"You sent the same call of `{record.call.name}` {most} times, and its answer did not change. "
                "Do something else."
            )
        if self._idle >= _TOLD_IDLE:
            return Verdict(
                told=f"Nothing new came of the last {self._idle} steps. Try another way, or call `give_up` and say why."
            )
        return Verdict()

    def _observe_silence(self) -> Verdict:
        self._silent += 1
        if self._silent >= _TOLD_IDLE:
            return Verdict(stopped=f"The last {self._silent} answers held no call.")
        return Verdict(told='Your answer held no call that could be run. Answer with {"name": "…", "args": {…}}.')
