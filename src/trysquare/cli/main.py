"""The command line. Each command is a file beside this one, imported only when it runs."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import re
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import NoReturn, cast

from trysquare import __version__
from trysquare.cli.actions import Command
from trysquare.cli.streams import safe_streams
from trysquare.core.errors import ToolError, TrysquareError
from trysquare.core.nearest import nearest
from trysquare.core.untrusted import block, one_line
from trysquare.serve.early import EarlyStart, begin_early
from trysquare.serve.light_dataclasses import light_dataclasses

COMMANDS = {
    "serve": "serve tools to an MCP client over stdio, or over HTTP with --http",
    "list": "show the tools that a client would see, with what they cost in tokens",
    "call": "call one tool and print its answer",
    "check": "check descriptions and schemas against the rules",
    "config": "show the effective settings and where each came from",
    "guide": "list, check and export the guide's content",
    "bot": "make and check workflow bots, see where their runs stand, and decide about them",
    "gateway": "add, test and look after the MCP servers behind the gateway",
    "models": "list, install, check and remove small models for this machine",
    "jobs": "list, show, resume, cancel and replay the durable runs of agents",
    "run": "let an agent work on the project",
    "grammar": "print, check and certify what the calls of a model are held to",
    "explain": "say why a test or program fails, after one recorded run",
    "approve": "answer a tool's question for consent, as the person in charge",
    "token": "create, list and revoke bearer tokens for HTTP",
    "install": "add the server to the configuration of an MCP client",
    "doctor": "tell what is installed, what works, and what to run for the rest",
    "demo": "drive every part through a real MCP client and show what happens",
}
MODULES = {"demo": "trysquare.cli.demo.command"}
"""Where a command is not in the file of its name."""
EXIT_CODES = """exit codes:
  0    done
  1    the call, check or demo failed; the output says how
  2    wrong usage or configuration; one line on stderr says where
  130  interrupted"""
TRACEBACK_VARIABLE = "TRYSQUARE_TRACEBACK"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if argv is not None:
        return _run(argv, early=None)
    words = sys.argv[1:]
    _prepare_process()
    early = begin_early(words)
    with light_dataclasses():
        return _run(words, early=early)


def _run(words: Sequence[str], *, early: EarlyStart | None) -> int:
    with safe_streams():
        return _run_command(words, early=early)


def _run_command(words: Sequence[str], *, early: EarlyStart | None) -> int:
    try:
        arguments = _parse(words)
        arguments.early = early
        code = cast(Command, arguments.command).run(arguments)
        sys.stdout.flush()
    except TrysquareError as error:
        return _failed(error, words)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has gone, as with `| head`. Python would complain once more when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return code


def _prepare_process() -> None:
    """What holds for a process of our own: short errors, and output that no character can break."""
    sys.excepthook = _show_unexpected
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _parse(words: Sequence[str]) -> argparse.Namespace:
    name = next((word for word in words if not word.startswith("-")), None)
    parser = _Parser(
        prog="trysquare",
        description="The tool layer between AI agents and everything they act on, served over MCP.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"trysquare {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", required=True, dest="command_name")
    chosen: argparse.ArgumentParser = parser
    for known, about in COMMANDS.items():
        inner = commands.add_parser(
            known, help=about, description=about[0].upper() + about[1:] + ".", epilog=EXIT_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
        )  # fmt: skip
        if known == name:
            command = cast(Command, importlib.import_module(MODULES.get(known, f"trysquare.cli.{known}")))
            command.configure(inner)
            inner.set_defaults(command=command)
            chosen = inner
    if name is not None and name not in COMMANDS:
        parser.error(_no_command(name))
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        chosen.error(_not_understood(unknown[0], chosen))
    return arguments


def _no_command(name: str) -> str:
    near = nearest(name, COMMANDS)
    return f"there is no command `{name}`" + (f"; the nearest is `{near[0]}`" if near else "")


def _not_understood(word: str, parser: argparse.ArgumentParser) -> str:
    if not word.startswith("-"):
        return f"`{word}` is one word too many"
    option = word.partition("=")[0]
    near = nearest(option, sorted(set(re.findall(r"--[a-z][a-z-]+", parser.format_help()))))
    return f"there is no option `{option}`" + (f"; the nearest is `{near[0]}`" if near else "")


def _failed(error: TrysquareError, words: Sequence[str]) -> int:
    if _wants_traceback(words):
        raise error
    for line in str(error).splitlines():
        print(f"trysquare: {line}", file=sys.stderr)
    if not isinstance(error, ToolError):
        return 2
    if error.instruction:
        print(f"trysquare: {error.instruction}", file=sys.stderr)
    return 1


def _wants_traceback(words: Sequence[str]) -> bool:
    return "--debug-traceback" in words or os.environ.get(TRACEBACK_VARIABLE) == "1"


def _show_unexpected(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """One line for an error that nobody foresaw, unless its traceback is asked for."""
    if _wants_traceback(sys.argv):
        from traceback import format_exception

        print(block("".join(format_exception(kind, error, trace))), file=sys.stderr)
        return
    print(
        f"trysquare: unexpected {kind.__name__}: {one_line(str(error).strip())} "
        f"(set {TRACEBACK_VARIABLE}=1 to see where it comes from)",
        file=sys.stderr,
    )


if __name__ == "__main__":
    sys.exit(main())
