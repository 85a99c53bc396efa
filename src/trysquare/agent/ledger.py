"""Ledger: what has happened in a run, in facts and not in the model's words."""

from __future__ import annotations

from trysquare.agent.records import CallRecord
from trysquare.core.types import JsonObject

NARROWING = frozenset({"module", "package", "run"})
"""Arguments that choose some of the tests."""
_CHOOSING = NARROWING | {"script"}
"""Arguments that make a run of tests another run than one without them."""


class Ledger:
    """The facts of a run that completion is judged by."""

    def __init__(self) -> None:
        self._number = 0
        self._changed_at = 0
        self._passed_at = 0
        self._files: dict[str, None] = {}
        self._called: set[str] = set()
        self._failing: set[frozenset[tuple[str, str]]] = set()
        self._test_call: tuple[str, JsonObject] | None = None
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
        which = frozenset((name, str(value)) for name, value in record.call.arguments.items() if name in _CHOOSING)
        if not record.passed:
            self._passed_at = 0
            self._failing.add(which)
            return
        self._passed_at = self._number
        self._test_call = (record.call.name, record.call.arguments)
        # Tests that failed have to pass themselves; only a run without a choice of tests speaks for all of them.
        self._failing = {failed for failed in self._failing if which and failed != which}

    def note_failing_whole(self) -> None:
        """Take in that all tests were run, and that some fail."""
        self._passed_at = 0
        self._failing.add(frozenset())

    @property
    def whole_test_call(self) -> tuple[str, JsonObject] | None:
        """The call of the last tests that passed without its choice of tests; None where no tests passed."""
        if self._test_call is None:
            return None
        name, arguments = self._test_call
        return name, {key: value for key, value in arguments.items() if key not in NARROWING}

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
