"""Suites: tests of pytest and unittest, run in this process, so that what fails can be looked at before it is gone."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import io
import os
import re
import sys
from collections.abc import Iterable
from types import FunctionType
from typing import Any, cast

from trysquare.debug.recorder import hooks
from trysquare.debug.recorder import report as report_module
from trysquare.debug.recorder.watcher import Watcher

EXPLAINED = 3
"""Failures that are recorded in full; of the others the names are kept."""
_NAMES = 200
_OUTPUT = 4000
_REPORT = 32_000
_TEST_FILE = re.compile(r"test_.*\.py|.*_test\.py")
_PYTEST_OPTIONS = (
    "-p",
    "no:cacheprovider",
    "-p",
    "no:randomly",
    "-q",
    "--no-header",
    "--tb=native",
    "--capture=tee-sys",
)
_NOT_RUN = (4, 5)
"""The exit codes of pytest for a wrong command line and for no test at all."""


def note_failure(
    error: BaseException, kept: Watcher, found: dict[str, Any], *, name: str, output: str | None = None
) -> None:
    """Keep what made a test or program fail."""
    found["outcome"] = "failed"
    note_name(found, name)
    if len(found["failures"]) < EXPLAINED:
        told = report_module.failure(error, kept)
        printed = {} if output is None else {"printed_by_test": output[-_OUTPUT:]}
        found["failures"].append({"name": name, **told, **printed})


def note_name(found: dict[str, Any], name: str) -> None:
    """Keep the name of a test that failed, once."""
    if name in found["failed"]:
        return
    found["failed_count"] += 1
    if len(found["failed"]) < _NAMES:
        found["failed"].append(name)


def run_pytest(options: dict[str, Any], target: list[str], kept: Watcher, found: dict[str, Any], runpy: Any) -> int:
    """Tests of pytest."""
    sys.path.insert(0, os.getcwd())
    if importlib.util.find_spec("pytest") is None:
        found.update(outcome="not run", problem=f"pytest is not installed for `{sys.executable}`")
        return 1
    import pytest

    class Catcher(_Reporter):
        """Takes each failing test's exception while its frames still live."""

        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_protocol(self, item: Any) -> Any:
            mark_test(kept, getattr(item, "function", None))
            kept.begin_test()
            hooks.record(kept)
            yield
            hooks.stop()

        def pytest_keyboard_interrupt(self, excinfo: Any) -> None:
            if not isinstance(excinfo.value, pytest.Session.Interrupted):
                note_failure(excinfo.value, kept, found, name="the run was interrupted", output="")

    code = int(pytest.main([*_PYTEST_OPTIONS, *_without_workers(), *target], plugins=[Catcher(kept, found)]))
    if code in _NOT_RUN and not found["failed"]:
        found["known_tests"] = _known_tests(target)
    return code


class _Reporter:
    """What pytest tells of its tests, kept for the report."""

    def __init__(self, kept: Watcher, found: dict[str, Any]) -> None:
        self._kept = kept
        self._found = found

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        _own_packages(items, self._kept)

    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        output = "\n".join(text for _, text in getattr(report, "sections", []))
        name = getattr(node, "nodeid", str(node))
        note_failure(call.excinfo.value, self._kept, self._found, name=name, output=output)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._found["outcome"] = "failed"
            note_name(self._found, report.nodeid)
            self._note_reason(report)
        elif report.skipped and not hasattr(report, "wasxfail"):
            *_, reason = report.longrepr
            self._found.setdefault("skipped", {})[report.nodeid] = str(reason)[:200]

    def _note_reason(self, report: Any) -> None:
        """Keep what pytest says of a failure where no line of the user's tells of it. To make its text takes long."""
        reasons: dict[str, str] = self._found.setdefault("reasons", {})
        told = [each for each in self._found["failures"] if each["name"] == report.nodeid]
        is_placed = any(frame["own"] for each in told for frame in each["frames"])
        if not is_placed and len(reasons) < EXPLAINED:
            reasons.setdefault(report.nodeid, str(report.longrepr)[-_OUTPUT:])

    def pytest_internalerror(self, excinfo: Any) -> None:
        name = "an error of pytest or of one of its plugins"
        note_failure(excinfo.value, self._kept, self._found, name=name)


def mark_test(kept: Watcher, function: Any) -> None:
    """Note which function is a test, below its decorators."""
    inner = inspect.unwrap(function) if callable(function) else None
    inner = getattr(inner, "__func__", inner)
    if isinstance(inner, FunctionType):
        kept.tests.add(inner.__code__)


def _own_packages(items: Iterable[Any], kept: Watcher) -> None:
    """A package whose own tests are run is the user's, even where it is installed."""
    for folder in {os.path.dirname(str(item.path)) for item in items}:
        if kept.is_own_file(os.path.join(folder, "test.py")):
            continue
        while os.path.exists(os.path.join(os.path.dirname(folder), "__init__.py")):
            folder = os.path.dirname(folder)
        kept.add_root(folder)


def _without_workers() -> list[str]:
    """Tests have to run in this process; options of a plugin that is switched off would be unknown, so it stays."""
    is_there = importlib.util.find_spec("xdist") is not None and not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    return ["-n", "0"] if is_there else []


def _known_tests(target: list[str]) -> list[str]:
    """What could have been meant by a name that is none: the tests of its file, or the files of tests there are."""
    files = [word.partition("::")[0] for word in target if not word.startswith("-")]
    there = [file for file in files if os.path.exists(file)]
    if files and not there:
        return _test_files()
    import pytest

    found: list[str] = []

    class Lister:
        def pytest_collection_modifyitems(self, items: list[Any]) -> None:
            found.extend(item.nodeid for item in items)

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        pytest.main(["--collect-only", "-p", "no:cacheprovider", *_without_workers(), *there], plugins=[Lister()])
    return found[:_NAMES]


def _test_files() -> list[str]:
    found: list[str] = []
    for index, (folder, folders, files) in enumerate(os.walk(".")):
        if index == 1000:
            break
        folders[:] = [each for each in folders if not each.startswith(".") and each not in ("node_modules", "venv")]
        found.extend(os.path.relpath(os.path.join(folder, each)) for each in files if _TEST_FILE.fullmatch(each))
    return found[:_NAMES]


def run_unittest(options: dict[str, Any], target: list[str], kept: Watcher, found: dict[str, Any], runpy: Any) -> int:
    """Tests of unittest, as `python -m unittest …` finds them: by name, by file, or all of a folder."""
    sys.path.insert(0, os.getcwd())
    import unittest

    said = io.StringIO()

    class Catching(unittest.TextTestResult):
        """Takes each failing test's exception while its frames still live."""

        def startTest(self, test: Any) -> None:
            mark_test(kept, getattr(test, test.id().rpartition(".")[2], None))
            kept.begin_test()
            super().startTest(test)

        def addError(self, test: Any, err: Any) -> None:
            note_failure(err[1], kept, found, name=str(test))
            super().addError(test, err)

        def addFailure(self, test: Any, err: Any) -> None:
            note_failure(err[1], kept, found, name=str(test))
            super().addFailure(test, err)

        def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
            if err is not None:
                note_failure(err[1], kept, found, name=str(subtest))
            super().addSubTest(test, subtest, err)

    class Runner(unittest.TextTestRunner):
        resultclass = cast(Any, Catching)

        def __init__(self, **options: Any) -> None:
            # What the runner says of the tests is no output of the program's.
            super().__init__(stream=said, **options)

        def run(self, test: Any) -> Any:
            hooks.record(kept)
            try:
                return super().run(test)
            finally:
                hooks.stop()

    program = unittest.main(module=None, argv=["python -m unittest", *target], testRunner=Runner, exit=False)
    found["ran"] = program.result.testsRun
    found["reported"] = said.getvalue()[-_REPORT:]
    sys.stderr.write(found["reported"])
    return 0 if program.result.wasSuccessful() else 1
