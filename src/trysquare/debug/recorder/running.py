"""Running the program under test: a file, a module, a text, or tests of pytest or unittest."""

from __future__ import annotations

import faulthandler
import io
import json
import linecache
import os
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable
from typing import Any

from trysquare.debug.recorder import hooks
from trysquare.debug.recorder import report as report_module
from trysquare.debug.recorder.flow import Flow
from trysquare.debug.recorder.probing import Probing
from trysquare.debug.recorder.recording import LINES, Recording
from trysquare.debug.recorder.suites import note_failure, run_pytest, run_unittest
from trysquare.debug.recorder.tracing import Tracing
from trysquare.debug.recorder.watcher import COMMAND, Watcher
from trysquare.debug.recorder.writing import Writing


def run(report_file: str, options: dict[str, Any], target: list[str], runpy: Any) -> None:
    """Run what is asked for, record it, write the report, and end as the program would have ended."""
    kept = _watcher(options)
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
        found.update(exit_code=code, seconds=seconds, spent=round(kept.spent, 3), lines=kept.lines, full=kept.is_full)
        _write(report_file, {**found, **kept.to_json()})

    def give_up() -> None:
        if ending.acquire(blocking=False):
            found["outcome"] = "unfinished"
            found["failures"].append({"name": "", **report_module.still_running(options["timeout"], kept)})
            finish()
            leave(124)

    def leave_at_once(status: int) -> None:
        """`os._exit`: the program ends here, and nothing that waits for its end is run."""
        nonlocal code
        if os.getpid() == process and ending.acquire(blocking=False):
            code = status
            found["outcome"] = "exited"
            found["failures"].append({"name": "", **report_module.ended_here(status, hooks.current_frame(1), kept)})
            finish()
        leave(status)

    _write(report_file, {"outcome": report_module.VANISHED})
    _show_output_at_once()
    setattr(os, "_exit", leave_at_once)  # noqa: B010 - the name is public, the module's type is not ours to change
    _call_after(options.get("timeout"), give_up)
    try:
        code = _RUNNERS[options["kind"]](options, target, kept, found, runpy)
    finally:
        hooks.stop()
    ending.acquire()
    if os.getpid() == process:
        finish()
    sys.stdout.flush()
    sys.exit(code)


def _show_output_at_once() -> None:
    """What a program has written is there even if it is ended by force; of a crash, its place is written."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    faulthandler.enable()


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
    """A file, a module or a text, as `python FILE …`, `python -m MODULE …` and `python -c TEXT …` run it."""
    kind = options["kind"]
    sys.argv = ["-c", *target[1:]] if kind == "code" else list(target)
    sys.path.insert(0, os.path.dirname(os.path.abspath(target[0])) if kind == "program" else os.getcwd())
    hooks.record(kept)
    try:
        if kind == "code":
            _run_text(target[0])
        elif kind == "module":
            runpy.run_module(target[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(os.path.abspath(target[0]), run_name="__main__")
    except SystemExit as ended:
        hooks.stop()
        status = _exit_code(ended)
        if status:
            note_failure(ended, kept, found, name=target[0])
            found["outcome"] = "exited"
        return status
    except BaseException as error:  # noqa: BLE001 - whatever ends the program is what we are here to tell
        hooks.stop()
        note_failure(error, kept, found, name="-c" if kind == "code" else target[0])
        printed = "".join(traceback.format_exception(type(error), error, _outside_runner(error)))
        found["failures"][-1]["printed"] = printed
        sys.stderr.write(printed)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _run_text(text: str) -> None:
    """Run a program that has no file; its lines are kept where tracebacks look for them."""
    linecache.cache[COMMAND] = (len(text), None, text.splitlines(keepends=True), COMMAND)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    exec(compile(text, COMMAND, "exec"), module.__dict__)


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


_RUNNERS = {
    "program": _run_program,
    "module": _run_program,
    "code": _run_program,
    "pytest": run_pytest,
    "unittest": run_unittest,
}
