"""Running the program under test: a file, a module, or tests of pytest or unittest."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, cast

from trysquare.debug.recorder import hooks
from trysquare.debug.recorder import report as report_module
from trysquare.debug.recorder.flow import Flow
from trysquare.debug.recorder.probing import Probing
from trysquare.debug.recorder.recording import LINES, Recording
from trysquare.debug.recorder.tracing import Tracing
from trysquare.debug.recorder.watcher import Watcher
from trysquare.debug.recorder.writing import Writing


def run(report_file: str, options: dict[str, Any], target: list[str], runpy: Any) -> None:
    """Run what is asked for, record it, write the report, and end as the program would have ended."""
    kept = _watcher(options)
    found: dict[str, Any] = {"outcome": "unknown", "failures": []}
    begun = time.perf_counter()
    code = 0
    ending = threading.Lock()

    def finish() -> None:
        hooks.stop()
        if found["outcome"] == "unknown":
            found["outcome"] = "exited" if code else "passed"
        seconds = round(time.perf_counter() - begun, 3)
        found.update(exit_code=code, seconds=seconds, spent=round(kept.spent, 3), lines=kept.lines, full=kept.is_full)
        _write(report_file, {**found, **kept.to_json()})

    def give_up() -> None:
        if ending.acquire(blocking=False):
            found["outcome"] = "unfinished"
            found["failures"].append({"name": "", **report_module.still_running(options["timeout"], kept)})
            finish()
            os._exit(124)

    _call_after(options.get("timeout"), give_up)
    try:
        code = _RUNNERS[options["kind"]](options, target, kept, found, runpy)
    finally:
        hooks.stop()
    ending.acquire()
    finish()
    sys.stdout.flush()
    sys.exit(code)


def _call_after(seconds: float | None, work: Callable[[], None]) -> None:
    """Do something in a thread of its own, which the program need not wait for."""
    if seconds:
        timer = threading.Timer(seconds, work)
        timer.daemon = True
        timer.start()


def _watcher(options: dict[str, Any]) -> Watcher:
    """What to record, by the options' word for it."""
    roots, skip = options["roots"], os.path.dirname(os.path.abspath(__file__)) + os.sep
    match options.get("watch", "failure"):
        case "trace":
            return Tracing(roots, skip=skip, options=options)
        case "probes":
            return Probing(roots, skip=skip, options=options)
        case "writes":
            return Writing(roots, skip=skip, options=options)
        case "flow":
            return Flow(roots, skip=skip)
        case _:
            return Recording(roots, skip=skip, lines=options.get("lines", LINES))


def _write(file: str, found: dict[str, Any]) -> None:
    with open(file + ".part", "w", encoding="utf-8", errors="replace") as out:
        json.dump(found, out, default=str)
    os.replace(file + ".part", file)


def _run_program(options: dict[str, Any], target: list[str], kept: Watcher, found: dict[str, Any], runpy: Any) -> int:
    """A file or a module, as `python FILE …` and `python -m MODULE …` run it."""
    is_module = options["kind"] == "module"
    sys.argv = list(target)
    sys.path.insert(0, os.getcwd() if is_module else os.path.dirname(os.path.abspath(target[0])))
    hooks.record(kept)
    try:
        if is_module:
            runpy.run_module(target[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(os.path.abspath(target[0]), run_name="__main__")
    except SystemExit as ended:
        return _exit_code(ended)
    except BaseException as error:  # noqa: BLE001 - whatever ends the program is what we are here to tell
        hooks.stop()
        _note_failure(error, kept, found, name=target[0])
        sys.__excepthook__(type(error), error, _outside_runner(error))
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _outside_runner(error: BaseException) -> Any:
    """The traceback from the program's own first frame on."""
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


def _note_failure(error: BaseException, kept: Watcher, found: dict[str, Any], *, name: str) -> None:
    found["outcome"] = "failed"
    if len(found["failures"]) < 3:
        found["failures"].append({"name": name, **report_module.failure(error, kept)})


def _run_pytest(options: dict[str, Any], target: list[str], kept: Watcher, found: dict[str, Any], runpy: Any) -> int:
    """Tests of pytest, in this process, so that what fails can be looked at before it is gone."""
    sys.path.insert(0, os.getcwd())
    import pytest

    class Catcher:
        """Takes each failing test's exception while its frames still live."""

        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_protocol(self, item: Any) -> Any:
            hooks.record(kept)
            yield
            hooks.stop()

        def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
            name = getattr(node, "nodeid", str(node))
            _note_failure(call.excinfo.value, kept, found, name=name)

    return int(pytest.main([*_PYTEST_OPTIONS, *_without_workers(), *target], plugins=[Catcher()]))


_PYTEST_OPTIONS = ("-p", "no:cacheprovider", "-p", "no:randomly", "-q", "--no-header")


def _without_workers() -> list[str]:
    """Tests have to run in this process; options of a plugin that is switched off would be unknown, so it stays."""
    is_there = importlib.util.find_spec("xdist") is not None and not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    return ["-n", "0"] if is_there else []


def _run_unittest(options: dict[str, Any], target: list[str], kept: Watcher, found: dict[str, Any], runpy: Any) -> int:
    """Tests of unittest, by name."""
    sys.path.insert(0, os.getcwd())
    import unittest

    class Catching(unittest.TextTestResult):
        """Takes each failing test's exception while its frames still live."""

        def addError(self, test: Any, err: Any) -> None:
            _note_failure(err[1], kept, found, name=str(test))
            super().addError(test, err)

        def addFailure(self, test: Any, err: Any) -> None:
            _note_failure(err[1], kept, found, name=str(test))
            super().addFailure(test, err)

        def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
            if err is not None:
                _note_failure(err[1], kept, found, name=str(subtest))
            super().addSubTest(test, subtest, err)

    suite = unittest.defaultTestLoader.loadTestsFromNames(target)
    hooks.record(kept)
    result = unittest.TextTestRunner(resultclass=cast(Any, Catching)).run(suite)
    return 0 if result.wasSuccessful() else 1


_RUNNERS = {"program": _run_program, "module": _run_program, "pytest": _run_pytest, "unittest": _run_unittest}
