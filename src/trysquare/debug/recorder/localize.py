"""Find the line that makes a test fail: run it and passing tests, rank what they ran, and try small changes."""

from __future__ import annotations

import gc
import os
import re
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from trysquare.debug.recorder.forks import STARTING, Forked, Guard, run_forked
from trysquare.debug.recorder.hooks import LIBRARY, Watcher
from trysquare.debug.recorder.mutants import CannotChange, Mutation, compile_change, mutations
from trysquare.debug.recorder.ranking import (
    BROKEN,
    EARLIER,
    LATER,
    NONE,
    OTHER,
    Ranking,
    Run,
    Suspect,
    is_test_code,
    order,
)
from trysquare.debug.recorder.spectrum import CallRecorder, Coverage, DetailedCoverage, ValueProbe
from trysquare.debug.recorder.syntax import Program

_TEST_FILE = re.compile(r"test_.*\.py|.*_test\.py|conftest\.py|tests?\.py")
_TEST_FOLDERS = ("test", "tests")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+|\d+\.\d+s\b")
_NOT_RAISED = ("DID NOT RAISE", "DID NOT WARN", " not raised")
"""What the checks of pytest and unittest say if an error did not come."""
_BATCH_SECONDS = 0.3
_MAX_SIBLINGS = 400
_SHOWN = 40
_VALUES = 3
"""Suspects whose values are shown."""
_ROUNDS = ((0, 12, 3), (0, 12, 5), (0, 40, 4), (40, 80, 4), (0, 24, 30), (24, 100, 8), (0, 100, 30), (100, 400, 6))
"""Suspects from one rank to another, and how many changes of each are tried, one round after the other."""
_MOST_LINES = 60
_ENOUGH = 24
"""Suspects after which no more are tried once one is proved."""
_MAX_CHECKS = 24
"""Passing tests that are run with a change which makes the failing one pass."""
_MAX_ALSO = 12
"""Other failing tests that are run with it."""
_ENOUGH_BROKEN = 3
"""Passing tests that fail with a change after which no more are run."""


class Tests:
    """The tests that can be run, by name; a test framework's own way to run one is behind it."""

    def __init__(
        self, names: list[str], run: Callable[[str], dict[str, Any]], files: dict[str, str],
        imported: dict[str, list[int]] | None = None,
    ) -> None:  # fmt: skip
        self.names = names
        self.run = run
        """Runs one test; its outcome, error, frames and seconds."""
        self.files = files
        self.imported = imported or {}
        """The lines that ran while the tests were loaded, by file."""


class Localizer:
    """Finds the suspects of one failing test. All tests run in copies of this process."""

    def __init__(self, tests: Tests, watcher: Watcher, options: dict[str, Any]) -> None:
        self._tests = tests
        self._watcher = watcher
        self._options = options
        self._is_processor_time = bool(options.get("processor_time"))
        self._begun = self._now()
        self._program = Program()
        self._test_files = set(tests.files.values())
        self._folder: str = options["folder"]
        self._own_test_file = ""
        """The test's file, if the code that it tests is in there."""
        self._limit = 30.0

    def locate(self, name: str, *, instead_of: str | None = None) -> dict[str, Any]:
        """All that is found out about a failing test, as JSON."""
        gc.collect()
        # The copies then share the memory of what is there now, which their collections leave alone.
        gc.freeze()
        target = self._detailed(name)
        if target is None or target["outcome"] != "failed":
            outcome = "ended the process" if target is None else target["outcome"]
            return {"located": False, "again": outcome}
        plain = self._fork(lambda send: send(self._tests.run(name)), seconds=self._limit)
        runs = self._spectrum(name, target)
        if target["starts_processes"] and not any(not self.is_test_file(file) for file, _ in runs[0].lines):
            # It runs the program as another process; a test that fails with it may reach the code itself.
            other = next((each for each in runs if each.failed and each.lines and each.name != name), None)
            if other is not None and instead_of is None:
                return self.locate(other.name, instead_of=name)
        ranking = Ranking(
            self._program, target["detail"], runs, is_test=self.is_test_file, imported=self._imported_code()
        )
        misses_error = any(each in target["error"] for each in _NOT_RAISED)
        suspects = ranking.suspects(runs[0], self._seeds(target), misses_error=misses_error)
        lines = _line_ranking(runs, self.is_test_file)
        before = [self._described(each, runs) for each in suspects[:_SHOWN]]
        trials = 0
        if self._options.get("changes", True):
            trials = self._try_changes(name, target, suspects, runs, plain)
        ranked = sorted(suspects, key=order)[:_SHOWN]
        described = [self._described(each, runs) for each in ranked]
        self._add_values(name, ranked[:_VALUES], described, runs)
        regression = self._regression(name, ranked) if self._options.get("regression") else None
        return {
            "located": True,
            "name": name,
            "instead_of": instead_of,
            "regression": regression,
            "error": target["error"],
            "suspects": described,
            "before_changes": [{"file": each["file"], "line": each["line"]} for each in before],
            "by_spectrum": lines[:_SHOWN],
            "candidates": len(suspects),
            "failing": [each.name for each in runs if each.failed],
            "passing": sum(not each.failed for each in runs),
            "not_run": len(self._tests.names) - len(runs),
            "trials": trials,
            "plain_seconds": round(plain.seconds, 3),
            "seconds": round(self._now() - self._begun, 3),
        }

    def is_test_file(self, file: str) -> bool:
        if self._own_test_file:
            return file != self._own_test_file
        if file in self._test_files or _TEST_FILE.fullmatch(os.path.basename(file)):
            return True
        return any(part in _TEST_FOLDERS for part in os.path.relpath(file).split(os.sep)[:-1])

    def _imported_code(self) -> dict[str, list[int]]:
        """The lines of the code under test that ran while it was loaded."""
        return {file: lines for file, lines in self._tests.imported.items() if self._is_code_under_test(file)}

    def _left(self, share: float) -> float:
        """Seconds that are left until a share of the budget is used up."""
        return self._begun + self._options["budget"] * share - self._now()

    def _now(self) -> float:
        if not self._is_processor_time:
            return time.monotonic()
        used = os.times()
        return used.user + used.system + used.children_user + used.children_system

    def _fork(self, work: Callable[[Callable[[Any], None]], None], *, seconds: float) -> Forked:
        return run_forked(work, seconds=seconds, is_processor_time=self._is_processor_time)

    def _detailed(self, name: str) -> dict[str, Any] | None:
        """Run the failing test with all details; where it reaches no code of the user's, that of what it imports."""
        found = self._run_detailed(name)
        if found is None or any(not self.is_test_file(file) for file in found["detail"]["lines"]):
            return found
        # A program with its tests in one file; or the tests of something that is installed.
        self._own_test_file = self._tests.files.get(name, "")
        if any(self._is_helper(file, line) for file, lines in found["detail"]["lines"].items() for line, _ in lines):
            return found
        self._own_test_file = ""
        for folder in self._libraries(name):
            self._watcher.add_root(folder)
        return self._run_detailed(name)

    def _is_helper(self, file: str, line: int) -> bool:
        """Whether a line of a test file is in a function that is no test."""
        statement = self._program.statement(file, line)
        return file == self._own_test_file and statement is not None and not is_test_code(statement)

    def _run_detailed(self, name: str) -> dict[str, Any] | None:
        def work(send: Callable[[Any], None]) -> None:
            started: list[str] = []
            sys.addaudithook(lambda event, _: started.append(event) if event in STARTING else None)
            coverage = DetailedCoverage(self._watcher.is_own_file)
            coverage.begin()
            try:
                result = self._tests.run(name)
            finally:
                detail = coverage.end()
            send({**result, "detail": detail, "starts_processes": bool(started)})

        found = self._fork(work, seconds=self._limit)
        return found.messages[0] if found.messages else None

    def _libraries(self, name: str) -> set[str]:
        """The directories of installed packages that a test's module imports."""
        folders: set[str] = set()
        file = self._tests.files.get(name)
        module = next((each for each in list(sys.modules.values()) if getattr(each, "__file__", None) == file), None)
        for value in list(vars(module).values()) if module is not None else ():
            owner = getattr(value, "__module__", None) or getattr(value, "__name__", None)
            top = sys.modules.get(str(owner).partition(".")[0])
            where = getattr(top, "__file__", None)
            if where and self._watcher.label_of(where) == LIBRARY:
                folders.add(os.path.dirname(where) if os.path.basename(where) == "__init__.py" else where)
        return folders

    def _spectrum(self, name: str, target: dict[str, Any]) -> list[Run]:
        """The failing test and as many others as the budget allows, the nearest first."""
        lines = {file: [line for line, _ in found] for file, found in target["detail"]["lines"].items()}
        runs = [Run(name, failed=True, lines=lines)]
        waiting = self._nearest(name)
        while waiting and self._left(0.45) > 0 and len(runs) < _MAX_SIBLINGS:
            found = self._fork(lambda send: self._batch(waiting, send), seconds=max(1.0, self._left(0.5)))
            for each in found.messages:
                if each["outcome"] in ("passed", "failed"):
                    failed = each["outcome"] == "failed"
                    runs.append(Run(each["name"], failed=failed, lines=each["lines"], seconds=each["seconds"]))
            # One that ended the process or did not end is left out.
            del waiting[: len(found.messages) + (found.timed_out or found.status != 0)]
        return runs

    def _batch(self, names: list[str], send: Callable[[Any], None]) -> None:
        coverage = Coverage(self._is_code_under_test)
        begun = time.monotonic()
        for name in names:
            coverage.begin()
            try:
                result = self._tests.run(name)
            finally:
                lines = coverage.end()
            send({**result, "name": name, "lines": lines})
            if time.monotonic() - begun > _BATCH_SECONDS:
                return

    def _is_code_under_test(self, file: str) -> bool:
        return self._watcher.is_own_file(file) and not self.is_test_file(file)

    def _nearest(self, name: str) -> list[str]:
        at = self._tests.names.index(name)
        file, group = self._tests.files.get(name), name.rpartition("::")[0]
        others = [each for each in self._tests.names if each != name]

        def distance(other: str) -> tuple[bool, bool, int]:
            index = self._tests.names.index(other) if len(others) < 2000 else 0
            return self._tests.files.get(other) != file, other.rpartition("::")[0] != group, abs(index - at)

        return sorted(others, key=distance)

    def _seeds(self, target: dict[str, Any]) -> list[tuple[str, int, int]]:
        """The frames of the traceback; the innermost first."""
        frames = [each for each in target["frames"] if self._watcher.is_own_file(each[0])]
        return [(file, line, distance) for distance, (file, line) in enumerate(reversed(frames))]

    def _try_changes(
        self, name: str, target: dict[str, Any], suspects: list[Suspect], runs: list[Run], plain: Forked
    ) -> int:
        """Change the most suspect statements, one at a time, and see what the tests say."""
        limit = min(10.0, 1.0 + 5 * plain.seconds)
        trials = 0
        pools: dict[int, list[Mutation]] = {}
        for first, last, count in _ROUNDS:
            for number, suspect in enumerate(self._with_blocks(suspects)[first:last], start=first):
                pool = pools.setdefault(id(suspect), self._changes_of(suspect) if id(suspect) not in pools else [])
                for _ in range(min(count + _extra(suspect), len(pool))):
                    if self._left(1.0) < plain.seconds:
                        return trials
                    mutation = pool.pop(0)
                    trial = self._try(mutation, suspect, name, target, runs, limit)
                    if trial is not None and trial["fixed"] and not trial["breaks"] and suspect.fixed_by is None:
                        suspect.fixed_by = mutation
                    if trial is not None:
                        trials += 1
                        suspect.trials.append(trial)
                if number >= _ENOUGH and any(each.is_proved for each in suspects[:number]):
                    return trials
        return trials

    def _with_blocks(self, suspects: list[Suspect]) -> list[Suspect]:
        """Suspects in the order to try them: after one that is proved, the conditions around it."""
        ordered: dict[Suspect, None] = {}
        by_statement = {each.statement: each for each in suspects}
        for each in suspects:
            ordered.setdefault(each)
            for block in reversed(each.statement.blocks) if each.proof is not None else ():
                if block in by_statement:
                    ordered.setdefault(by_statement[block])
        return list(ordered)

    def _changes_of(self, suspect: Suspect) -> list[Mutation]:
        module = self._program.module(suspect.file)
        return [] if module is None else list(mutations(suspect.statement, module))

    def _try(
        self, mutation: Mutation, suspect: Suspect, name: str, target: dict[str, Any], runs: list[Run], limit: float
    ) -> dict[str, Any] | None:
        module = self._program.module(suspect.file)
        if module is None:
            return None
        try:
            make = compile_change(mutation, suspect.statement, module, is_run_at_import=suspect.is_run_at_import)
        except CannotChange:
            return None
        found = self._fork(lambda send: self._run_changed(make, [name], send), seconds=limit)
        trial: dict[str, Any] = {
            "what": mutation.what, "line": mutation.line, "ran": False, "fixed": False, "effect": "", "breaks": 0,
            "removes": mutation.removes, "checked": 0, "also_fixed": 0, "also_fixed_share": 0.0,
        }  # fmt: skip
        result = found.messages[0] if found.messages else None
        if result is None or result.get("refused") or result.get("unchanged"):
            trial["ran"] = found.timed_out
            trial["effect"] = BROKEN if found.timed_out else ""
            return trial
        trial["ran"] = True
        trial["fixed"] = result["outcome"] == "passed"
        trial["effect"] = self._effect(target, result)
        if trial["fixed"]:
            self._check(make, suspect, name, runs, trial)
        return trial

    def _effect(self, before: dict[str, Any], after: dict[str, Any]) -> str:
        """What a change made of the failure, by the line of the test that failed, and the error."""
        if after["outcome"] != "failed":
            return ""
        old, new = (self._line_in_test(each["frames"]) for each in (before, after))
        if old != new:
            return LATER if new > old else EARLIER
        if _plain(before["error"]) == _plain(after["error"]):
            return NONE
        return OTHER if before["error"].partition(":")[0] == after["error"].partition(":")[0] else BROKEN

    def _line_in_test(self, frames: list[Any]) -> int:
        """The line of the test's own function at which it failed."""
        return next((line for file, line in frames if file in self._test_files), 0)

    def _check(
        self, make: Callable[[], None], suspect: Suspect, name: str, runs: list[Run], trial: dict[str, Any]
    ) -> None:
        """Run the other tests that reach a statement with a change that makes the failing one pass."""
        reaching = [each for each in runs if each.name != name and suspect.statement in each.statements]
        failing = [each.name for each in reaching if each.failed][:_MAX_ALSO]
        passing = [each.name for each in sorted(reaching, key=lambda each: each.seconds) if not each.failed]
        passing = passing[:_MAX_CHECKS]
        names = [*passing, *failing]
        found = self._fork(
            lambda send: self._run_changed(make, names, send, passing=len(passing)),
            seconds=max(1.0, min(4.0, self._left(1.0))),
        )
        passed = {each["name"] for each in found.messages if each.get("outcome") == "passed"}
        reported = {each.get("name") for each in found.messages}
        trial["checked"] = sum(each in reported for each in passing)
        trial["breaks"] = sum(each in reported and each not in passed for each in passing)
        if found.timed_out and len(reported) < len(names):
            trial["breaks"] += 1
        trial["also_fixed"] = sum(each in passed for each in failing)
        tried = sum(each in reported for each in failing)
        trial["also_fixed_share"] = trial["also_fixed"] / tried if tried else 0.0 if failing else 1.0

    def _run_changed(
        self, make: Callable[[], None], names: Iterable[str], send: Callable[[Any], None], *, passing: int = 0
    ) -> None:
        """Run tests with a change, until enough of the first ones, which pass without it, fail."""
        guard = Guard(self._folder)
        guard.set()
        try:
            make()
        except CannotChange as error:
            send({"unchanged": str(error)})
            return
        breaks = 0
        for number, name in enumerate(names):
            result = self._tests.run(name)
            send({**result, "name": name, "refused": guard.refused})
            breaks += number < passing and result["outcome"] != "passed"
            if breaks == _ENOUGH_BROKEN:
                return

    def _add_values(self, name: str, suspects: list[Suspect], described: list[dict[str, Any]], runs: list[Run]) -> None:
        """Add the values at the first suspects, in the failing test and in the nearest that passes."""
        wanted = {
            (each.file, each.statement.line): (sorted(each.statement.reads), sorted(each.statement.binds))
            for each in suspects
        }
        failing = self._values(name, wanted)
        passing: dict[str, Any] = {}
        for suspect, reported in zip(suspects, described):  # noqa: B905 - the interpreter may be older than `strict`
            place = f"{suspect.file}:{suspect.statement.line}"
            reported["values"] = failing.get(place)
            reaching = (each for each in runs if not each.failed and suspect.statement in each.statements)
            near = next(reaching, None)
            if near is not None:
                if near.name not in passing:
                    passing[near.name] = self._values(near.name, wanted)
                reported["passing_values"] = passing[near.name].get(place)
                reported["passing_test"] = near.name

    def _regression(self, name: str, ranked: list[Suspect]) -> dict[str, Any]:
        """A call of the first suspect's function that goes wrong, and what it gives with the change that proves it."""
        if not ranked:
            return {"problem": "there is no suspect"}
        suspect = ranked[0]
        function = suspect.statement.scope
        module = self._program.module(suspect.file)
        loaded = next(
            (key for key, each in list(sys.modules.items()) if getattr(each, "__file__", "") == suspect.file), ""
        )
        if not function.is_function or "." in function.name or module is None or not loaded:
            return {"problem": f"`{function.name or suspect.file}` is not a function of a module"}
        place = (suspect.file, function.first_line)
        now = self._calls(name, place, None)
        if suspect.fixed_by is None:
            call = next((each for each in now if each["raised"] and _is_literal(each)), None)
            reason = "no change was found with which the test passes, so that the right result is not known"
            return {"problem": reason} if call is None else {"module": loaded, "function": function.name, **call}
        change = compile_change(suspect.fixed_by, suspect.statement, module, is_run_at_import=suspect.is_run_at_import)
        fixed = self._calls(name, place, change)
        right = {str(each["arguments"]): each for each in fixed if not each["raised"] and each["returned"] is not None}
        for call in now:
            other = right.get(str(call["arguments"]))
            if other is not None and _is_literal(call) and other["returned"] != call["returned"]:
                return {"module": loaded, "function": function.name, **call, "expected": other["returned"]}
        return {"problem": "no recorded call has arguments and a result that can be written as literals"}

    def _calls(self, name: str, place: tuple[str, int], make: Callable[[], None] | None) -> list[dict[str, Any]]:
        def work(send: Callable[[Any], None]) -> None:
            if make is not None:
                make()
                Guard(self._folder).set()
            recorder = CallRecorder(*place)
            recorder.begin()
            try:
                self._tests.run(name)
            finally:
                send(recorder.end())

        found = self._fork(work, seconds=self._limit)
        return found.messages[0] if found.messages else []

    def _values(self, name: str, wanted: dict[tuple[str, int], tuple[list[str], list[str]]]) -> dict[str, Any]:
        def work(send: Callable[[Any], None]) -> None:
            probe = ValueProbe(wanted)
            probe.begin()
            try:
                self._tests.run(name)
            finally:
                send(probe.end())

        found = self._fork(work, seconds=self._limit)
        return {f"{each['file']}:{each['line']}": each for message in found.messages for each in message}

    def _described(self, suspect: Suspect, runs: list[Run]) -> dict[str, Any]:
        statement = suspect.statement
        proof = suspect.proof
        line = suspect.nearest_line if proof is None else proof["line"]
        module = self._program.module(suspect.file)
        code = module.lines[line - 1].strip() if module is not None and line <= len(module.lines) else ""
        dependence = suspect.dependence
        return {
            "file": suspect.file,
            "line": line,
            "last_line": statement.last,
            "function": statement.scope.name or "<module>",
            "code": code,
            "score": round(suspect.score, 3),
            "ochiai": round(suspect.ochiai, 3),
            "failing": suspect.failing,
            "passing": suspect.passing,
            "on_stack": suspect.is_on_stack,
            "is_counted": suspect.is_counted,
            "is_run": (
                statement.scope.inner_function() is not None
                and not statement.is_definition
                and not suspect.is_run_at_import
            ),
            "branch": None if suspect.branch is None else suspect.branch.to_json(),
            "distance": None if dependence is None else dependence.distance,
            "why": "" if dependence is None else dependence.why,
            "proof": proof,
            "trials": len([each for each in suspect.trials if each["ran"]]),
            "when": suspect.when,
            "effects": [each["effect"] for each in suspect.trials if each["ran"]],
            "kind": type(statement.node).__name__,
            "influence": round(suspect.influence, 2),
            "base": round(suspect.base, 3),
        }


def _extra(suspect: Suspect) -> int:
    """How many more changes of a statement of many lines are tried at a time."""
    return min(_MOST_LINES, suspect.statement.last - suspect.statement.first)


def _line_ranking(runs: list[Run], is_test: Callable[[str], bool]) -> list[dict[str, Any]]:
    """The lines that the failing test ran by the spectrum alone."""
    failing = [each for each in runs if each.failed]
    found: list[tuple[float, str, int]] = []
    for file, line in runs[0].lines:
        if not is_test(file):
            bad = sum((file, line) in each.lines for each in failing)
            good = sum((file, line) in each.lines for each in runs if not each.failed)
            found.append((-bad / (len(failing) * (bad + good)) ** 0.5, file, line))
    return [{"file": file, "line": line, "ochiai": round(-score, 3)} for score, file, line in sorted(found)]


def _is_literal(call: dict[str, Any]) -> bool:
    return not call["is_open"] and all(text is not None for _, text in call["arguments"])


def _plain(error: str) -> str:
    return _ADDRESS.sub("", error)
