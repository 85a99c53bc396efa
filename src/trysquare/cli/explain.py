"""`trysquare explain TARGET`: why a test or program fails, in a terminal."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

from trysquare.cli.output import print_json
from trysquare.core.errors import ConfigurationError, ToolError
from trysquare.core.result import Result
from trysquare.debug.elsewhere import explain_target
from trysquare.debug.recorded import TIMEOUT
from trysquare.debug.targets import read_target
from trysquare.debug.tools.explain import told
from trysquare.processes.nursery import open_nursery


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of `explain`."""
    parser.add_argument(
        "target", metavar="TARGET", nargs="+",
        help="a failing test such as tests/test_x.py::test_y, or a command such as `python app.py`",
    )  # fmt: skip
    parser.add_argument("--project", type=Path, default=Path("."), help="the folder to run in (default: this one)")
    parser.add_argument("--python", metavar="PATH", help="the Python to use (default: that of the folder's .venv)")
    parser.add_argument("--timeout", type=float, default=TIMEOUT, help="seconds it may run (default: %(default)g)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Explain; 0 if there is an explanation or nothing failed, 1 if it could not be found out."""
    return asyncio.run(_run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    if not arguments.project.is_dir():
        raise ConfigurationError(f"`{arguments.project}` is not a folder.", where="--project")
    root = arguments.project.resolve()
    words: list[str] = arguments.target
    try:
        # A single word may be a whole command line; several were split by the shell, and are not split again.
        target = read_target(words[0] if len(words) == 1 else words, root, runtime=arguments.python)
        async with open_nursery() as nursery:
            explained = await explain_target(target, root, nursery, timeout=arguments.timeout)
        result = told(explained, root, str(target))
    except ToolError as error:
        result = Result.from_error(error)
    if arguments.json:
        print_json(result.to_json())
    else:
        _print(result)
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
        print(f"The last that it wrote:\n{output}")
