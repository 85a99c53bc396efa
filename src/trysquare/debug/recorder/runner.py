"""Run the program under test in this process: a file, a module, code, or tests of pytest or unittest."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib.util
import inspect
import io
import json
import linecache
import os
import re
import runpy
import sys
import threading
import time
import traceback
import types
from collections.abc import Iterable
from types import FunctionType
from typing import Any, cast

from trysquare.debug.recorder import hooks, report
from trysquare.debug.recorder.frames import FailureRecorder, FlowRecorder
from trysquare.debug.recorder.hooks import COMMAND, Watcher
from trysquare.debug.recorder.tracer import CallTracer, ProbeRecorder
from trysquare.debug.recorder.writes import WriteRecorder

_MAX_EXPLAINED = 3
"""Failures to record in full; of others only the names."""
_MAX_NAMES = 200
_MAX_FOLDERS = 1000
_OUTPUT = 4000
_REPORT = 32_000
_TEST_FILE = re.compile(r"test_.*\.py|.*_test\.py")
_PYTEST_OPTIONS = ["-pno:cacheprovider", "-pno:randomly", "-q", "--no-header", "--tb=native", "--capture=tee-sys"]
_NOT_RUN = (4, 5)
"""Exit codes of pytest for a wrong command line and for no test at all."""


def run(report_file: str, options: dict[str, Any], target: list[str]) -> None:
    """Run and record a target, write the report, and exit as the program would have exited."""
    watcher = _watcher(options)
    found: dict[str, Any] = {"outcome": "unknown", "failures": [], "failed": [], "failed_count": 0}
    begun = time.perf_counter()
    code = 0
    ending = threading.Lock()
    process = os.getpid()
    leave = getattr(os, "_exit")  # noqa: B009 - it is replaced below

    def finish() -> None:
        hooks.stop()
        if found["outcome"] == "unknown":
            found["outcome"] = "exited" if code else "passed"
        seconds = round(time.perf_counter() - begun, 3)
        found.update(exit_code=code, seconds=seconds, spent=round(watcher.spent, 3))
        found.update(lines=watcher.lines, full=watcher.is_full)
        _write(report_file, {**found, **watcher.to_json()})

    def give_up() -> None:
        if ending.acquire(blocking=False):
            found["outcome"] = "unfinished"
            found["failures"].append({"name": "", **report.still_running(options["timeout"], watcher)})
            finish()
            leave(124)

    def leave_at_once(status: int) -> None:
        """Replacement of `os._exit`, which runs nothing at the program's end."""
        nonlocal code
        if os.getpid() == process and ending.acquire(blocking=False):
            code = status
            found["outcome"] = "exited"
            message = f"the program ended itself with exit code {status}"
            failure = report.stack_failure("os._exit", message, hooks.current_frame(1), watcher)
            found["failures"].append({"name": "", **failure})
            finish()
        leave(status)

    _write(report_file, {"outcome": report.VANISHED})
    _flush_lines()
    faulthandler.enable()
    setattr(os, "_exit", leave_at_once)  # noqa: B010 - an assignment would be a type error
    if options.get("timeout"):
        timer = threading.Timer(options["timeout"], give_up)
        timer.daemon = True
        timer.start()
    try:
        code = _RUNNERS[options["kind"]](options, target, watcher, found)
    finally:
        hooks.stop()
    ending.acquire()
    if os.getpid() == process:
        finish()
    sys.stdout.flush()
    sys.exit(code)


def _flush_lines() -> None:
    """Write output line by line, so that none is lost in a buffer when the program is killed."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)


def _watcher(options: dict[str, Any]) -> Watcher:
    skip = os.path.dirname(os.path.abspath(__file__)) + os.sep
    kinds = {"trace": CallTracer, "probes": ProbeRecorder, "writes": WriteRecorder, "flow": FlowRecorder}
    return kinds.get(options.get("watch", ""), FailureRecorder)(options["roots"], skip=skip, options=options)


def _write(file: str, found: dict[str, Any]) -> None:
    with open(file + ".part", "w", encoding="utf-8", errors="replace") as out:
        json.dump(found, out, default=str)
    os.replace(file + ".part", file)


def _run_program(options: dict[str, Any], target: list[str], watcher: Watcher, found: dict[str, Any]) -> int:
    """Run `python FILE …`, `python -m MODULE …` or `python -c TEXT …`."""
    kind = options["kind"]
    sys.argv = ["-c", *target[1:]] if kind == "code" else list(target)
    sys.path.insert(0, os.path.dirname(os.path.abspath(target[0])) if kind == "program" else os.getcwd())
    hooks.record(watcher)
    try:
        if kind == "code":
            # Tracebacks find the lines of a program without a file in the cache.
            linecache.cache[COMMAND] = (len(target[0]), None, target[0].splitlines(keepends=True), COMMAND)
            module = sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(target[0], COMMAND, "exec"), module.__dict__)
        elif kind == "module":
            runpy.run_module(target[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(os.path.abspath(target[0]), run_name="__main__")
    except SystemExit as ended:
        hooks.stop()
        status = _exit_code(ended)
        if status:
            _note_failure(ended, watcher, found, name=target[0])
            found["outcome"] = "exited"
        return status
    except BaseException as error:  # noqa: BLE001 - whatever ends the program is reported
        hooks.stop()
        _note_failure(error, watcher, found, name="-c" if kind == "code" else target[0])
        printed = "".join(traceback.format_exception(type(error), error, _outside_runner(error)))
        found["failures"][-1]["printed"] = printed
        sys.stderr.write(printed)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _outside_runner(error: BaseException) -> Any:
    """The traceback from the program's first frame on."""
    trace = error.__traceback__
    while trace is not None and (
        trace.tb_frame.f_code.co_filename.startswith(os.path.dirname(__file__))
        or "runpy" in trace.tb_frame.f_code.co_filename
    ):
        trace = trace.tb_next
    return trace


def _exit_code(ended: SystemExit) -> int:
    if ended.code is None or isinstance(ended.code, int):
        return int(ended.code or 0)
    sys.stderr.write(f"{ended.code}\n")
    return 1


def _note_failure(
    error: BaseException, watcher: Watcher, found: dict[str, Any], *, name: str, output: str | None = None
) -> None:
    found["outcome"] = "failed"
    _note_name(found, name)
    if len(found["failures"]) < _MAX_EXPLAINED:
        failure = report.failure(error, watcher)
        printed = {} if output is None else {"printed_by_test": output[-_OUTPUT:]}
        found["failures"].append({"name": name, **failure, **printed})


def _note_name(found: dict[str, Any], name: str) -> None:
    if name in found["failed"]:
        return
    found["failed_count"] += 1
    if len(found["failed"]) < _MAX_NAMES:
        found["failed"].append(name)


def _run_pytest(options: dict[str, Any], target: list[str], watcher: Watcher, found: dict[str, Any]) -> int:
    sys.path.insert(0, os.getcwd())
    if importlib.util.find_spec("pytest") is None:
        found.update(outcome="not run", problem=f"pytest is not installed for `{sys.executable}`")
        return 1
    import pytest

    class Catcher(_Reporter):
        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_protocol(self, item: Any) -> Any:
            _mark_test(watcher, getattr(item, "function", None))
            watcher.begin_test()
            hooks.record(watcher)
            yield
            hooks.stop()

        def pytest_keyboard_interrupt(self, excinfo: Any) -> None:
            if not isinstance(excinfo.value, pytest.Session.Interrupted):
                _note_failure(excinfo.value, watcher, found, name="the run was interrupted", output="")

    code = int(pytest.main([*_PYTEST_OPTIONS, *_without_workers(), *target], plugins=[Catcher(watcher, found)]))
    if code in _NOT_RUN and not found["failed"]:
        found["known_tests"] = _known_tests(target)
    return code


class _Reporter:
    """Pytest plugin that adds failures to the report."""

    def __init__(self, watcher: Watcher, found: dict[str, Any]) -> None:
        self._watcher = watcher
        self._found = found

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        _own_packages(items, self._watcher)

    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        output = "\n".join(text for _, text in getattr(report, "sections", []))
        name = getattr(node, "nodeid", str(node))
        _note_failure(call.excinfo.value, self._watcher, self._found, name=name, output=output)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._found["outcome"] = "failed"
            _note_name(self._found, report.nodeid)
            self._note_reason(report)
        elif report.skipped and not hasattr(report, "wasxfail"):
            *_, reason = report.longrepr
            self._found.setdefault("skipped", {})[report.nodeid] = str(reason)[:200]

    def _note_reason(self, report: Any) -> None:
        """Add pytest's text on a failure without a frame of the user's. Making the text is slow."""
        reasons: dict[str, str] = self._found.setdefault("reasons", {})
        failures = [each for each in self._found["failures"] if each["name"] == report.nodeid]
        is_located = any(frame["own"] for each in failures for frame in each["frames"])
        if not is_located and len(reasons) < _MAX_EXPLAINED:
            reasons.setdefault(report.nodeid, str(report.longrepr)[-_OUTPUT:])

    def pytest_internalerror(self, excinfo: Any) -> None:
        name = "an error of pytest or of one of its plugins"
        _note_failure(excinfo.value, self._watcher, self._found, name=name)


def _mark_test(watcher: Watcher, function: Any) -> None:
    """Note a test function, below its decorators."""
    inner = inspect.unwrap(function) if callable(function) else None
    inner = getattr(inner, "__func__", inner)
    if isinstance(inner, FunctionType):
        watcher.tests.add(inner.__code__)


def _own_packages(items: Iterable[Any], watcher: Watcher) -> None:
    """Treat a package whose own tests are run as the user's, even if it is installed."""
    for folder in {os.path.dirname(str(item.path)) for item in items}:
        if watcher.is_own_file(os.path.join(folder, "test.py")):
            continue
        while os.path.exists(os.path.join(os.path.dirname(folder), "__init__.py")):
            folder = os.path.dirname(folder)
        watcher.add_root(folder)


def _without_workers() -> list[str]:
    """Run tests in this process. The plugin stays enabled, since its options would be unknown otherwise."""
    if os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD") or importlib.util.find_spec("xdist") is None:
        return []
    return ["-n", "0"]


def _known_tests(target: list[str]) -> list[str]:
    """Candidates for an unknown name: the tests of its file, or all test files."""
    files = [word.partition("::")[0] for word in target if not word.startswith("-")]
    existing = [file for file in files if os.path.exists(file)]
    if files and not existing:
        return _test_files()
    import pytest

    found: list[str] = []

    class Lister:
        def pytest_collection_modifyitems(self, items: list[Any]) -> None:
            found.extend(item.nodeid for item in items)

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        pytest.main(["--collect-only", "-p", "no:cacheprovider", *_without_workers(), *existing], plugins=[Lister()])
    return found[:_MAX_NAMES]


def _test_files() -> list[str]:
    found: list[str] = []
    for index, (folder, folders, files) in enumerate(os.walk(".")):
        if index == _MAX_FOLDERS:
            break
        folders[:] = [each for each in folders if not each.startswith(".") and each not in ("node_modules", "venv")]
        found.extend(os.path.relpath(os.path.join(folder, each)) for each in files if _TEST_FILE.fullmatch(each))
    return found[:_MAX_NAMES]


def _run_unittest(options: dict[str, Any], target: list[str], watcher: Watcher, found: dict[str, Any]) -> int:
    """Run `python -m unittest …`."""
    sys.path.insert(0, os.getcwd())
    import unittest

    report_text = io.StringIO()

    class Catching(unittest.TextTestResult):
        def startTest(self, test: Any) -> None:
            _mark_test(watcher, getattr(test, test.id().rpartition(".")[2], None))
            watcher.begin_test()
            super().startTest(test)

        def addError(self, test: Any, err: Any) -> None:
            _note_failure(err[1], watcher, found, name=str(test))
            super().addError(test, err)

        def addFailure(self, test: Any, err: Any) -> None:
            _note_failure(err[1], watcher, found, name=str(test))
            super().addFailure(test, err)

        def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
            if err is not None:
                _note_failure(err[1], watcher, found, name=str(subtest))
            super().addSubTest(test, subtest, err)

    class Runner(unittest.TextTestRunner):
        resultclass = cast(Any, Catching)

        def __init__(self, **options: Any) -> None:
            # The report of the runner is not output of the program.
            super().__init__(stream=report_text, **options)

        def run(self, test: Any) -> Any:
            hooks.record(watcher)
            try:
                return super().run(test)
            finally:
                hooks.stop()

    program = unittest.main(module=None, argv=["python -m unittest", *target], testRunner=Runner, exit=False)
    found["ran"] = program.result.testsRun
    found["reported"] = report_text.getvalue()[-_REPORT:]
    sys.stderr.write(found["reported"])
    return 0 if program.result.wasSuccessful() else 1


_RUNNERS = {
    "program": _run_program, "module": _run_program, "code": _run_program, "pytest": _run_pytest,
    "unittest": _run_unittest,
}  # fmt: skip
