"""Notes: what a model has decided and what it has left to do, kept when its dialogue is made shorter."""

from __future__ import annotations

from trysquare.core.errors import InvalidArguments
from trysquare.core.shortening import short

MOST_NOTES = 50
LONGEST_NOTE = 300


class Notes:
    """Decisions and tasks of one run."""

    def __init__(self) -> None:
        self._decisions: list[str] = []
        self._tasks: dict[int, str] = {}
        self._number = 0

    def decide(self, text: str) -> str:
        """Keep a decision."""
        self._decisions = [*self._decisions, short(text.strip(), LONGEST_NOTE)][-MOST_NOTES:]
        return "Noted."

    def open_task(self, text: str) -> str:
        """Keep something that is left to do; its number closes it."""
        if len(self._tasks) >= MOST_NOTES:
            raise InvalidArguments(f"There are {MOST_NOTES} open tasks already.", instruction="Close some first.")
        self._number += 1
        self._tasks[self._number] = short(text.strip(), LONGEST_NOTE)
        return f"Task {self._number} is open."

    def close_task(self, number: int) -> str:
        """Forget a task that is done."""
        if self._tasks.pop(number, None) is None:
            known = ", ".join(map(str, self._tasks)) or "none"
            raise InvalidArguments(f"There is no open task {number}; open are {known}.")
        return f"Task {number} is closed; {len(self._tasks)} left."

    def lines(self) -> list[str]:
        """All of it, a line each."""
        decided = [f"- decided: {text}" for text in self._decisions]
        return decided + [f"- open task {number}: {text}" for number, text in self._tasks.items()]
