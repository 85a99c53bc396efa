"""Ledger: what has happened in a run, in facts and not in the model's words."""

from __future__ import annotations

from trysquare.agent.records import CallRecord
from trysquare.core.types import JsonObject

NARROWING = frozenset({"module", "package", "run", "script"})
"""Arguments that choose some of the tests."""


class Ledger:
    """The facts of a run that completion is judged by."""

    def __init__(self) -> None:
        self._number = 0
        self._changed_at = 0
        self._passed_at = 0
        self._files: dict[str, None] = {}
        self._called: set[str] = set()
        self._failing: set[frozenset[tuple[str, str]]] = set()
        self.test_call: tuple[str, JsonObject] | None = None
        """The tool and the arguments of the last tests that passed."""

    def note(self, record: CallRecord) -> None:
        """Take in what a call came to."""
        self._number += 1
        # Tests that fail were run all the same.
        if record.success or record.passed is not None:
            self._called.add(record.call.name)
        if record.modified_files:
            self._changed_at = self._number
            self._files.update(dict.fromkeys(record.modified_files))
        if record.passed is not None:
            self._note_tests(record)

    def _note_tests(self, record: CallRecord) -> None:
        which = frozenset((name, str(value)) for name, value in record.call.arguments.items() if name in NARROWING)
        if not record.passed:
            self._passed_at = 0
            self._failing.add(which)
            return
        self._passed_at = self._number
        self.test_call = (record.call.name, record.call.arguments)
        # Tests that failed have to pass themselves; only a run without a choice of tests speaks for all of them.
        self._failing = {failed for failed in self._failing if which and failed != which}

    @property
    def modified_files(self) -> tuple[str, ...]:
        """Every file that a call changed, in the order of the first change."""
        return tuple(self._files)

    @property
    def tests_passed(self) -> bool:
        """Whether tests passed, nothing was changed since, and none that failed before is left out."""
        return self._passed_at > 0 and self._passed_at >= self._changed_at and not self._failing

    @property
    def has_called(self) -> bool:
        """Whether a call of any tool did its work."""
        return bool(self._called)

    def was_called(self, tool: str) -> bool:
        """Whether a call of the tool did its work."""
        return tool in self._called
