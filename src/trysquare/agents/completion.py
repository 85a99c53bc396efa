"""Completion: evidence, criteria, stuck detection, low confidence."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pydantic import ConfigDict

from trysquare.agents.builtin_tools import BUILTIN_NAMES
from trysquare.agents.tool_calls import CallRecord
from trysquare.core.approvals import arguments_digest
from trysquare.core.json import JsonObject
from trysquare.core.text import truncate
from trysquare.core.threads import run_in_thread
from trysquare.files.root import open_beneath
from trysquare.models import ModelResponse

NARROWING = frozenset({"module", "package", "run"})
"""Arguments that select some of the tests."""
_CHOOSING = NARROWING | {"script"}
"""Arguments that make a test run differ from another."""


class Evidence:
    """Facts of a run that completion is checked against."""

    def __init__(self) -> None:
        self._number = 0
        self._changed_at = 0
        self._passed_at = 0
        self._files: dict[str, None] = {}
        self.called: set[str] = set()
        """Tools of which a call has succeeded."""
        self._failing: set[frozenset[tuple[str, str]]] = set()
        self._test_call: tuple[str, JsonObject] | None = None

    def note(self, record: CallRecord) -> None:
        self._number += 1
        # Failing tests were run too.
        if record.success or record.passed is not None:
            self.called.add(record.call.name)
        if record.modified_files:
            self._changed_at = self._number
            self._files.update(dict.fromkeys(record.modified_files))
        which = frozenset((name, str(value)) for name, value in record.call.arguments.items() if name in _CHOOSING)
        if record.passed:
            self._passed_at = self._number
            self._test_call = (record.call.name, record.call.arguments)
            # Failed tests have to pass themselves, or in a run of all tests.
            self._failing = {failed for failed in self._failing if which and failed != which}
        elif record.passed is not None:
            self.note_failing_tests(which)

    def note_failing_tests(self, which: frozenset[tuple[str, str]] = frozenset()) -> None:
        """Note a failed run of the tests that these arguments select, or of all."""
        self._passed_at = 0
        self._failing.add(which)

    @property
    def full_test_call(self) -> tuple[str, JsonObject] | None:
        """The last passing test call without its selection; None if no tests passed."""
        if self._test_call is None:
            return None
        name, arguments = self._test_call
        return name, {key: value for key, value in arguments.items() if key not in NARROWING}

    @property
    def modified_files(self) -> tuple[str, ...]:
        return tuple(self._files)

    @property
    def tests_passed(self) -> bool:
        """Whether tests passed since the last change, including those that failed before."""
        return self._passed_at > 0 and self._passed_at >= self._changed_at and not self._failing


TESTS_FAIL = "all tests were run and some fail: run all of them to see which"

RunTests: TypeAlias = Callable[[str, JsonObject], Awaitable[bool]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Criteria:
    """Conditions for a run to finish."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    tests_pass: bool = False
    """Tests passed after the last change; all of them are run once more at the end."""
    files_exist: bool = False
    """`finish` names at least one file; named files must exist in any case."""
    files_change: bool = False
    called: tuple[str, ...] = ()
    """Tools of which a call must have succeeded."""


def criteria_lines(criteria: Criteria) -> tuple[str, ...]:
    """The criteria as sentences for the prompt."""
    lines = [f"A call of `{tool}` has succeeded." for tool in criteria.called]
    if criteria.files_change:
        lines.append("At least one file was changed.")
    if criteria.tests_pass:
        lines.append("The tests were run after the last change and passed; then all of them are run to check it.")
    if criteria.files_exist:
        lines.append("`finish` names the files that were created or changed, and they exist.")
    return tuple(lines)


def missing(criteria: Criteria, evidence: Evidence) -> tuple[str, ...]:
    """What has to happen before `finish` is offered."""
    wanted = [f"call `{tool}` successfully" for tool in criteria.called if tool not in evidence.called]
    if not evidence.called:
        wanted.append("do something first: no tool call has succeeded yet")
    if criteria.files_change and not evidence.modified_files:
        wanted.append("change at least one file")
    if criteria.tests_pass and not evidence.tests_passed:
        wanted.append("run the tests after the last change until they pass")
    return tuple(wanted)


async def verify_claims(
    criteria: Criteria, evidence: Evidence, files: Sequence[str], *, root: Path | None, run_tests: RunTests
) -> tuple[str, ...]:
    """Verify the claims of `finish`; returns what is wrong."""
    wrong = [*missing(criteria, evidence), *await run_in_thread(lambda: _missing_files(files, root))]
    if criteria.files_exist and not files:
        wrong.append("name the created or changed files in `files`")
    whole = evidence.full_test_call if criteria.tests_pass and not wrong else None
    if whole is not None and not await run_tests(*whole):
        wrong.append(TESTS_FAIL)
    return tuple(wrong)


def _missing_files(files: Sequence[str], root: Path | None) -> list[str]:
    if not files or root is None:
        return [f"`{truncate(name)}` cannot be checked: this run has no directory" for name in files]
    relative = {name: name.removeprefix(f"{root.as_posix()}/").removeprefix("./") for name in files}
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return [f"`{truncate(name)}` does not exist" for name in files if not _exists(folder, relative[name])]
    finally:
        os.close(folder)


def _exists(folder: int, path: str) -> bool:
    try:
        os.close(open_beneath(folder, path, os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


_SHOWN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class LowConfidence:
    """No tool was clearly preferred."""

    choices: tuple[tuple[str, float], ...]
    """The likeliest tools, each with its probability."""

    @property
    def key(self) -> str:
        return "-".join(sorted(name for name, _ in self.choices))

    @property
    def summary(self) -> str:
        return ", ".join(f"`{name}` ({share:.0%})" for name, share in self.choices)

    def question(self, task: str) -> str:
        about = truncate(task, 200)
        return f"The agent is unsure how to continue: {about}\nWhat should it do? Options: {self.summary}."


def low_confidence(answer: ModelResponse, least: float) -> LowConfidence | None:
    """None if a tool reached the least probability, or none is known."""
    ranked = sorted(answer.choice.items(), key=lambda item: (-item[1], item[0]))
    if len(ranked) < 2 or ranked[0][1] >= least or ranked[0][0] in BUILTIN_NAMES:
        return None
    return LowConfidence(choices=tuple(ranked[:_SHOWN]))


_WARN_IDLE, _MAX_IDLE = 3, 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """A warning to the model, or the reason to stop the run."""

    warning: str | None = None
    stopped: str | None = None


# Numbers of repeated calls before a warning; after twice as many the run is stopped.
_SAME_ANSWER = 2
_CHANGES = 3
"""A call that may change something: its results may differ because of its own effect."""
_READS = 6
"""A call that only reads, with different results: it may be polling."""


class StuckDetector:
    """Detects steps without progress.

    Calls are the same by tool and arguments. Repeats count from the last call that did something new: tests may well
    be run again after a change.
    """

    def __init__(self, only_reads: Callable[[CallRecord], bool] = lambda record: False) -> None:
        self._only_reads = only_reads
        self._known: set[tuple[str, str]] = set()
        self._since: dict[tuple[str, str], Counter[str]] = {}
        """How often each call was answered with each text."""
        self._idle = 0
        self._silent = 0

    def observe(self, records: Sequence[CallRecord], *, cut: bool = False) -> Verdict:
        if not records:
            return self._observe_silence(cut)
        self._silent = 0
        new = list(map(self._count, records))
        self._idle = 0 if any(new) else self._idle + 1
        return self._verdict(records)

    def _count(self, record: CallRecord) -> bool:
        """Count a call; returns whether it brought anything new."""
        key = _identity(record)
        is_new = record.success and key not in self._known and record.call.name not in BUILTIN_NAMES
        self._known.add(key)
        answers = self._since.get(key, Counter())
        if is_new and (record.modified_files or not self._only_reads(record)):
            self._since = {}
        self._since[key] = answers
        answers[record.text] += 1
        return is_new or (self._only_reads(record) and answers[record.text] == 1 and record.success)

    def _verdict(self, records: Sequence[CallRecord]) -> Verdict:
        warning: str | None = None
        for record in records:
            answers = self._since.get(_identity(record), Counter())
            calls, most = answers[record.text], _SAME_ANSWER
            if calls < most:
                calls, most = answers.total(), _READS if self._only_reads(record) else _CHANGES
            if calls >= 2 * most:
                return Verdict(stopped=f"The same call of `{record.call.name}` was sent {calls} times.")
            if calls >= most:
                warning = (
                    f"You sent the same call of `{record.call.name}` {calls} times without progress. Do something else."
                )
        if self._idle >= _MAX_IDLE:
            return Verdict(stopped=f"No progress in the last {self._idle} steps.")
        if warning is None and self._idle >= _WARN_IDLE:
            warning = f"No progress in the last {self._idle} steps. Try another way, or call `give_up` with the reason."
        return Verdict(warning=warning)

    def _observe_silence(self, cut: bool) -> Verdict:
        self._silent += 1
        if self._silent < _WARN_IDLE:
            return Verdict(warning='Your answer contained no valid call. Answer with {"name": "…", "args": {…}}.')
        advice = ", and the last was truncated: raise answer_tokens" if cut else ""
        return Verdict(stopped=f"The last {self._silent} answers contained no call{advice}.")


def _identity(record: CallRecord) -> tuple[str, str]:
    return record.call.name, arguments_digest(record.call.arguments)
