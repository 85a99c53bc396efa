"""`trysquare explain TARGET`: explain why a test or program fails, from one recorded run."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from trysquare.cli.annotated_source import print_source
from trysquare.cli.command import Command, option
from trysquare.cli.debug_prompt import PRINCIPAL, run_prompt
from trysquare.cli.options import JSON
from trysquare.cli.terminal import print_report
from trysquare.core.errors import ConfigurationError, ToolError
from trysquare.core.result import Result
from trysquare.debug.explain.annotations import Report, report_of
from trysquare.debug.explain.localization import BUDGET
from trysquare.debug.explain.native import explain_target
from trysquare.debug.explain.recording import TIMEOUT
from trysquare.debug.explain.regression import require_new_file, write_regression_test
from trysquare.debug.handover import require_stoppable, start_stopped
from trysquare.debug.provider import open_service, tools_of
from trysquare.debug.service import DebugConfig
from trysquare.debug.sessions.launch import read_target
from trysquare.debug.tools.recording import explain_result

_ABOUT_TARGET = "a failing test such as tests/test_x.py::test_y, or a command such as `python app.py`"
_OPTIONS = (
    option("target", metavar="TARGET", nargs="*", help=_ABOUT_TARGET),
    option("-k", dest="expression", metavar="EXPRESSION", help="only tests that match this expression of pytest"),
    option("--lf", action="store_true", help="the tests that failed in pytest's last run"),
    option(
        "--project", type=Path, metavar="FOLDER", default=Path("."), help="the directory to run in (default: this one)"
    ),
    option("--python", metavar="PATH", help="the Python to use (default: that of the directory's .venv)"),
    option(
        "--timeout", type=float, metavar="SECONDS", default=TIMEOUT, help="timeout in seconds (default: %(default)g)"
    ),
    option(
        "--budget", type=float, metavar="SECONDS", default=BUDGET,
        help="time for passing tests and trial changes; 0: only record the failing one (default: %(default)g)",
    ),
    option("--no-changes", action="store_true", help="do not try changes of suspect lines"),
    option("--no-git", action="store_true", help="do not suspect lines more that were changed lately"),
    option(
        "--write-test", type=Path, metavar="FILE", help="write a new test with a recorded call of the first suspect"
    ),
    option(
        "--stop", nargs="?", choices=("failure", "suspect"), const="failure",
        help="then debug it, stopped at the failure (default) or at the first suspect; put it after TARGET",
    ),
    option("--source", action="store_true", help="print annotated source: the failing line, suspects, and values"),
    option("--full", action="store_true", help="print everything, not the most important 2 KB, and the source"),
    JSON,
)  # fmt: skip


async def explain(arguments: argparse.Namespace) -> int:
    """Explain; 0 if there is an explanation or nothing failed, 1 otherwise."""
    _check(arguments)
    root = arguments.project.resolve()
    report: Report | None = None
    async with open_service(DebugConfig(root=root)) as service:
        stop = None
        try:
            target = read_target(_target_words(arguments), root, runtime=arguments.python)
            if arguments.stop is not None:
                require_stoppable(target, root)
            explained = await explain_target(
                target, root, service.supervisor, timeout=arguments.timeout, sessions=service.sessions,
                principal=PRINCIPAL, budget=arguments.budget, changes=not arguments.no_changes,
                git=not arguments.no_git, regression=arguments.write_test is not None,
            )  # fmt: skip
            written = ""
            if arguments.write_test is not None:
                file = arguments.write_test.resolve()
                written = await write_regression_test(explained, file, target, root, service.supervisor)
            result = explain_result(explained, root, str(target), full=arguments.full)
            result = replace(result, warnings=(*result.warnings, written)) if written else result
            if arguments.source or arguments.full:
                report = report_of(explained, root, summary=str(result.value))
            if arguments.stop is not None and explained.failures:
                _, stop = await start_stopped(
                    service, explained, target, root, arguments.stop, principal=PRINCIPAL, timeout=arguments.timeout
                )
        except ToolError as error:
            result = Result.from_error(error)
        print_report(result.to_json(), lambda: _print(result, report, is_source=arguments.source), json=arguments.json)
        if stop is not None:
            await run_prompt(tools_of(service), stop)
    return 0 if result.success else 1


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what cannot be done before anything runs."""
    if not arguments.project.is_dir():
        raise ConfigurationError(f"`{arguments.project}` is not a directory.", where="--project")
    if arguments.stop is not None and arguments.json:
        raise ConfigurationError("it reads commands, so it cannot be used with --json.", where="--stop")
    if arguments.source and arguments.json:
        raise ConfigurationError("it is for a reader, so it cannot be used with --json.", where="--source")
    if arguments.write_test is not None:
        require_new_file(arguments.write_test)


def _target_words(arguments: argparse.Namespace) -> str | list[str]:
    """The target. A single word may be a whole command line; several were split by the shell, and stay so."""
    words: list[str] = arguments.target
    chosen = (["-k", arguments.expression] if arguments.expression else []) + (["--lf"] if arguments.lf else [])
    if not words and not chosen:
        raise ConfigurationError("there is no test or command to explain.", where="TARGET")
    if not chosen:
        return words[0] if len(words) == 1 else words
    return [*words, *chosen] if words else ["pytest", *chosen]


def _print(result: Result[Any], report: Report | None, *, is_source: bool) -> None:
    for warning in result.warnings:
        print(f"trysquare: {warning}", file=sys.stderr)
    if result.success:
        if not (is_source and report is not None):
            print(result.value)
        if report is not None:
            print_source(report, is_alone=is_source)
        return
    print(f"trysquare: {result.error}", file=sys.stderr)
    if result.instruction:
        print(f"trysquare: {result.instruction}", file=sys.stderr)
    if output := str(result.fields.get("output") or ""):
        print(f"Last output:\n{output}")


COMMAND = Command(
    explain,
    _OPTIONS,
    examples=("trysquare explain tests/test_shop.py::test_total", "trysquare explain python app.py --timeout 20"),
)
