"""`trysquare explain TARGET`: explain why a test or program fails, from one recorded run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from trysquare.cli.command import Command, option
from trysquare.cli.options import JSON
from trysquare.cli.terminal import print_report
from trysquare.core.errors import ConfigurationError, ToolError
from trysquare.core.result import Result
from trysquare.debug.explain.native import explain_target
from trysquare.debug.explain.recording import TIMEOUT
from trysquare.debug.sessions.launch import read_target
from trysquare.debug.tools.recording import explain_result
from trysquare.processes.supervisor import supervise

_ABOUT_TARGET = "a failing test such as tests/test_x.py::test_y, or a command such as `python app.py`"
_OPTIONS = (
    option("target", metavar="TARGET", nargs="+", help=_ABOUT_TARGET),
    option(
        "--project", type=Path, metavar="FOLDER", default=Path("."), help="the directory to run in (default: this one)"
    ),
    option("--python", metavar="PATH", help="the Python to use (default: that of the directory's .venv)"),
    option(
        "--timeout", type=float, metavar="SECONDS", default=TIMEOUT, help="timeout in seconds (default: %(default)g)"
    ),
    JSON,
)


async def explain(arguments: argparse.Namespace) -> int:
    """Explain; 0 if there is an explanation or nothing failed, 1 otherwise."""
    if not arguments.project.is_dir():
        raise ConfigurationError(f"`{arguments.project}` is not a directory.", where="--project")
    root = arguments.project.resolve()
    words: list[str] = arguments.target
    try:
        # A single word may be a whole command line; several were split by the shell, and are not split again.
        target = read_target(words[0] if len(words) == 1 else words, root, runtime=arguments.python)
        async with supervise() as supervisor:
            explained = await explain_target(target, root, supervisor, timeout=arguments.timeout)
        result = explain_result(explained, root, str(target))
    except ToolError as error:
        result = Result.from_error(error)
    print_report(result.to_json(), lambda: _print(result), json=arguments.json)
    return 0 if result.success else 1


def _print(result: Result[Any]) -> None:
    for warning in result.warnings:
        print(f"trysquare: {warning}", file=sys.stderr)
    if result.success:
        print(result.value)
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
