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
import shutil
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FunctionType
from typing import Any, cast

from trysquare.debug.recorder import hooks, report
from trysquare.debug.recorder.forks import can_fork, private_folder, run_forked
from trysquare.debug.recorder.frames import FailureRecorder, FlowRecorder
from trysquare.debug.recorder.hooks import COMMAND, CodeKey, Watcher, key_of
from trysquare.debug.recorder.localize import Localizer, Tests
from trysquare.debug.recorder.spectrum import Coverage, stop_tracing
from trysquare.debug.recorder.tracer import CallTracer, ProbeRecorder
from trysquare.debug.recorder.writes import WriteRecorder

_MAX_EXPLAINED = 3
"""Failures to record in full; of others only the names."""
_MAX_NAMES = 200
_MAX_FOLDERS = 1000
_OUTPUT = 4000
_REPORT = 32_000
_TEST_FILE = re.compile(r"test_.*\.py|.*_test\.py")
_PYTEST_OPTIONS = [
    "-pno:cacheprovider", "-pno:randomly", "-q", "--no-header", "--tb=native", "--color=no", "--capture=tee-sys"
]  # fmt: skip
_FROM_CACHE = ("--lf", "--last-failed", "--ff", "--failed-first", "--nf", "--new-first", "--sw", "--stepwise")
"""Options that need what pytest remembers of its last run."""
_AGAIN_SECONDS = 20.0
_BEFORE_SECONDS = 10.0
"""The most that a test may take to show where it fails, before it is recorded."""
_UNRECORDED = "Run once more to be recorded, it {}: the values are those at the end of the first run."
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
    error: BaseException, watcher: Watcher, found: dict[str, Any], *, name: str, output: str | None = None,
    test: Sequence[str] = (),
) -> None:  # fmt: skip
    found["outcome"] = "failed"
    _note_name(found, name)
    if len(found["failures"]) < _MAX_EXPLAINED:
        failure = report.failure(error, watcher)
        printed = {} if output is None else {"printed_by_test": output[-_OUTPUT:]}
        found["failures"].append({"name": name, "test": list(test), **failure, **printed})


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
            if self.is_plain:
                yield
                return
            if self.is_one_of_many:
                begun = time.perf_counter()
                yield
                watcher.focus(self.codes)
                self.record_again(item, time.perf_counter() - begun)
                self.codes = set()
                return
            before: list[dict[str, Any]] = []
            if can_fork and not self.codes and options.get("run_before"):
                before = self.run_before(item, min(_BEFORE_SECONDS, options["timeout"] / 4))
            hooks.record(watcher)
            yield
            hooks.stop()
            if before and item.nodeid not in found["failed"]:
                self.add_unrecorded(item.nodeid, before)

        def pytest_keyboard_interrupt(self, excinfo: Any) -> None:
            if not isinstance(excinfo.value, pytest.Session.Interrupted):
                _note_failure(excinfo.value, watcher, found, name="the run was interrupted", output="")

    options_of_ours = _PYTEST_OPTIONS[any(word in _FROM_CACHE for word in target) :]
    code = int(pytest.main([*options_of_ours, *_without_workers(), *target], plugins=[Catcher(watcher, found)]))
    if code in _NOT_RUN and not found["failed"]:
        found["known_tests"] = _known_tests(target)
    return code


class _Reporter:
    """Pytest plugin that adds failures to the report."""

    def __init__(self, watcher: Watcher, found: dict[str, Any]) -> None:
        self._watcher = watcher
        self._found = found
        self.is_one_of_many = False
        """Whether tests run unrecorded at first, and those that fail once more, recorded, in a copy of this process."""
        self.is_plain = False
        """Whether a test runs to see where it fails, and not to be recorded."""
        self.codes: set[CodeKey] = set()
        """The functions in which a test has failed."""

    def run_before(self, item: Any, seconds: float) -> list[dict[str, Any]]:
        """Run a test unrecorded in a copy of this process, and note in which functions it fails; its failures."""

        def work(send: Callable[[Any], None]) -> None:
            self.is_plain = True
            self._found["failures"] = []
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            send({"functions": sorted(self.codes), "failures": self._found["failures"]})

        ended = run_forked(work, seconds=seconds)
        message: dict[str, Any] = ended.messages[0] if ended.messages else {"functions": [], "failures": []}
        self._watcher.focus({(file, line, name) for file, line, name in message["functions"]})
        return [each for each in message["failures"] if each["name"] == item.nodeid]

    def add_unrecorded(self, name: str, failures: list[dict[str, Any]]) -> None:
        """Report failures of a test that did not fail once more when it was recorded."""
        failures[0]["notes"].append(_UNRECORDED.format("did not fail"))
        self._found["outcome"] = "failed"
        self._found["failures"] += failures
        _note_name(self._found, name)

    def record_again(self, item: Any, seconds: float) -> None:
        """Record a test that has just failed, in a copy of this process."""
        failures: list[dict[str, Any]] = self._found["failures"]
        at = next((index for index, each in enumerate(failures) if each["name"] == item.nodeid), None)
        if at is None:
            return
        self.is_one_of_many = False

        def work(send: Callable[[Any], None]) -> None:
            recorded: list[dict[str, Any]] = []
            self._found["failures"] = recorded
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            again = [each for each in recorded if each["name"] == item.nodeid]
            send(
                {
                    "failures": again,
                    "lines": self._watcher.lines,
                    "spent": self._watcher.spent,
                    **self._watcher.to_json(),
                }
            )

        ended = run_forked(work, seconds=_AGAIN_SECONDS + 20 * seconds)
        self.is_one_of_many = True
        known = sum(each["name"] == item.nodeid for each in failures)
        message: dict[str, Any] = ended.messages[0] if ended.messages else {"failures": []}
        again: list[dict[str, Any]] = message["failures"]
        if [_kind(each) for each in again] != [_kind(each) for each in failures[at : at + known]]:
            happened = "did not end" if ended.timed_out else "failed otherwise" if again else "did not fail"
            failures[at]["notes"].append(_UNRECORDED.format(happened))
            return
        failures[at : at + known] = again
        self._watcher.lines += int(message["lines"])
        self._watcher.spent += float(message["spent"])

    def pytest_collection_finish(self, session: Any) -> None:
        self.is_one_of_many = can_fork and len(session.items) > 1

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        _own_packages(items, self._watcher)
        _plugin_files(config, self._watcher)

    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        output = "\n".join(text for _, text in getattr(report, "sections", []))
        name = getattr(node, "nodeid", str(node))
        test = (str(node.path), _name_in_file(node.nodeid)) if hasattr(node, "path") and "::" in name else ()
        self.codes |= set(_functions_of(call.excinfo.value))
        _note_failure(call.excinfo.value, self._watcher, self._found, name=name, output=output, test=test)

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


def _functions_of(error: BaseException) -> Iterator[CodeKey]:
    """The functions that an exception passed, with those of its causes and of its parts."""
    waiting: list[Any] = [error]
    known: set[int] = set()
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in known:
            continue
        known.add(id(each))
        waiting += [each.__cause__, each.__context__, *(getattr(each, "exceptions", None) or ())]
        trace = each.__traceback__
        while trace is not None:
            yield key_of(trace.tb_frame.f_code)
            trace = trace.tb_next


def _kind(failure: dict[str, Any]) -> tuple[Any, ...]:
    """What a failure is: its error, and the line of the user's at which it was raised."""
    own = [(each["file"], each["line"]) for each in failure["frames"] if each["own"]]
    return failure["type"], own[-1:]


def _name_in_file(node_id: str) -> str:
    return node_id.partition("::")[2]


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


def _plugin_files(config: Any, watcher: Watcher) -> None:
    """Treat the plugins that pytest finds by itself as part of it, also one that is installed for development."""
    for plugin, _ in config.pluginmanager.list_plugin_distinfo():
        file = getattr(plugin, "__file__", None) or getattr(sys.modules.get(type(plugin).__module__), "__file__", None)
        if file:
            watcher.add_framework_file(file)


def _without_workers() -> list[str]:
    """Run tests in this process, without coverage. The plugins stay, since their options would be unknown otherwise."""
    if os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        return []
    options = {"xdist": ["-n", "0"], "pytest_cov": ["--no-cov"]}
    return [word for name, words in options.items() if importlib.util.find_spec(name) is not None for word in words]


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
            _note_failure(err[1], watcher, found, name=str(test), test=_unittest_id(test))
            super().addError(test, err)

        def addFailure(self, test: Any, err: Any) -> None:
            _note_failure(err[1], watcher, found, name=str(test), test=_unittest_id(test))
            super().addFailure(test, err)

        def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
            if err is not None:
                _note_failure(err[1], watcher, found, name=str(subtest), test=_unittest_id(test))
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


def _locate_by_pytest(options: dict[str, Any], target: list[str], watcher: Watcher, found: dict[str, Any]) -> int:
    """Collect tests, and find the suspects of a failing one; `target` are words for pytest."""
    sys.path.insert(0, os.getcwd())
    import pytest

    class Plugin:
        def __init__(self) -> None:
            self.result: dict[str, Any] = {}

        def pytest_runtestloop(self, session: Any) -> bool:
            items = {item.nodeid: item for item in session.items}
            _own_packages(session.items, watcher)
            _plugin_files(session.config, watcher)
            files = {name: str(item.path) for name, item in items.items()}
            tests = Tests(list(items), lambda name: self._run(items[name]), files, imported=coverage.end())
            wanted = [tuple(each) for each in options["failing"]]
            name = next((each for each in items if (files[each], _name_in_file(each)) in wanted), None)
            if name is None or not can_fork:
                found["located"] = {"located": False, "reason": "the test was not found again"}
            else:
                found["located"] = Localizer(tests, watcher, options).locate(name)
            return True

        def _run(self, item: Any) -> dict[str, Any]:
            self.result = {"outcome": "passed", "error": "", "frames": []}
            begun = time.perf_counter()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            return {**self.result, "seconds": time.perf_counter() - begun}

        def pytest_exception_interact(self, call: Any) -> None:
            # A file beside it that cannot be loaded is reported here as well, before any test runs.
            if self.result.get("frames") == []:
                self.result.update(_error_of(call.excinfo.value))

        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed:
                self.result["outcome"] = "failed"
                self.result["error"] = self.result["error"] or str(report.longrepr)[:2000]
            elif report.skipped and self.result["outcome"] == "passed":
                self.result["outcome"] = "skipped"

    folder = options["folder"] = private_folder()
    coverage = Coverage(watcher.is_own_file)
    coverage.begin()
    words = [*_PYTEST_OPTIONS[:-1], "-s", "--basetemp", os.path.join(folder, "pytest"), *_without_workers()]
    try:
        return int(pytest.main([*words, *target], plugins=[Plugin()]))
    finally:
        stop_tracing()
        shutil.rmtree(folder, ignore_errors=True)


def _unittest_id(test: Any) -> tuple[str, ...]:
    """The file of a test case and its dotted name; nothing for the error of a class's or module's set-up."""
    import unittest

    module = sys.modules.get(type(test).__module__)
    is_case = isinstance(test, unittest.TestCase) and getattr(module, "__file__", None)
    return (str(getattr(module, "__file__", "")), test.id()) if is_case else ()


def _locate_by_unittest(options: dict[str, Any], target: list[str], watcher: Watcher, found: dict[str, Any]) -> int:
    """Load test cases, and find the suspects of a failing one; `target` are words for unittest."""
    sys.path.insert(0, os.getcwd())
    import unittest

    def cases(suite: Any) -> Iterator[Any]:
        for each in suite if isinstance(suite, unittest.TestSuite) else [suite]:
            if isinstance(each, unittest.TestSuite):
                yield from cases(each)
            else:
                yield each

    def run_one(case: Any) -> dict[str, Any]:
        result = unittest.TestResult()
        errors: list[BaseException] = []
        result.addError = result.addFailure = lambda test, err: errors.append(err[1])  # type: ignore[method-assign]
        result.addSubTest = lambda test, subtest, err: errors.extend([] if err is None else [err[1]])  # type: ignore[method-assign]
        begun = time.perf_counter()
        unittest.TestSuite([case]).run(result)
        outcome = "failed" if errors else "skipped" if result.skipped else "passed"
        error: dict[str, Any] = _error_of(errors[0]) if errors else {"error": "", "frames": []}
        return {"outcome": outcome, **error, "seconds": time.perf_counter() - begun}

    class Runner:
        def __init__(self, **options: Any) -> None:
            pass

        def run(self, suite: Any) -> Any:
            known = {case.id(): case for case in cases(suite)}
            files = {name: _unittest_id(case)[:1] for name, case in known.items()}
            tests = Tests(list(known), lambda name: run_one(known[name]), {k: v[0] for k, v in files.items() if v})
            name = next((each[1] for each in options["failing"] if each[1] in known), None)
            if name is None or not can_fork:
                found["located"] = {"located": False, "reason": "the test was not found again"}
            else:
                found["located"] = Localizer(tests, watcher, options).locate(name)
            return unittest.TestResult()

    folder = options["folder"] = private_folder()
    try:
        unittest.main(module=None, argv=["python -m unittest", *target], testRunner=Runner, exit=False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _error_of(error: BaseException | None) -> dict[str, Any]:
    """An exception as its text and the lines of its traceback."""
    frames: list[tuple[str, int]] = []
    trace = None if error is None else error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - the text is made by the exception's own code, which may be broken
        text = type(error).__name__
    return {"error": text[:2000], "frames": frames[-60:]}


_RUNNERS = {
    "locate pytest": _locate_by_pytest,
    "locate unittest": _locate_by_unittest,
    "program": _run_program, "module": _run_program, "code": _run_program, "pytest": _run_pytest,
    "unittest": _run_unittest,
}  # fmt: skip
