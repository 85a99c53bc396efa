"""The `trysquare` command: argument parser, command table, exit codes, error output.

Each command is a module of this package with a `COMMAND`. The first line of its docstring names it and is its help;
the module is imported only when the command runs.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import re
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from types import TracebackType
from typing import cast

from trysquare import __version__
from trysquare.cli.command import Command, Parser, collect_seldom, sentence
from trysquare.cli.terminal import TRACEBACK_VARIABLE, print_problem, safe_streams, wants_traceback
from trysquare.core.errors import ConfigurationError, ToolError, TrysquareError
from trysquare.core.text import closest_names
from trysquare.core.untrusted import block, one_line

GROUPS = {
    "Build and try a server": ("serve", "dev", "list", "call", "read", "prompt", "check"),
    "Connect clients and servers": ("install", "discover", "gateway", "token", "adopt"),
    "Work with agents, workflows and content": ("run", "jobs", "bot", "guide", "models", "grammar"),
    "Approve and find out": ("console", "approve", "verify", "explain", "why", "config", "doctor", "completion"),
}
"""The commands by what somebody wants to do; a command that is not named here is in the last group."""
EXAMPLES = (
    "trysquare list server.py",
    "trysquare call server.py greet name=Ada",
    "trysquare install claude-code --tools server.py",
)
_TITLE = re.compile(r'"""`trysquare (?P<name>[a-z]+)[A-Z ]*`: (?P<help>.+?)\.(?:"""|$)')


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if argv is None:
        _prepare_process()
    with safe_streams():
        return _run(sys.argv[1:] if argv is None else argv)


def _run(words: Sequence[str]) -> int:
    try:
        code = _run_command(parse(words))
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


def _run_command(arguments: argparse.Namespace) -> int:
    command, parser = cast(Command, arguments.command), cast(Parser, arguments.parser)
    if command.run is None:
        print(parser.format_help(), end="")
        return 0
    result = command.run(arguments)
    if isinstance(result, Coroutine):
        import asyncio

        result = asyncio.run(result)
    return result or 0


def _prepare_process() -> None:
    """Set up a process of our own: one-line errors, output that no character can break, and fewer collections."""
    collect_seldom()
    sys.excepthook = _show_unexpected
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command line; wrong usage and `--help` end the process."""
    words = [*words[1:], "--help"] if [*words[:1]] == ["help"] else words
    name, inner_name = _command_names(words)
    parser = build_parser(name)
    if name is not None and name not in _names(parser):
        parser.unknown_command(name, _names(parser))
    if name is not None and inner_name is not None:
        subcommands = load_command(name).subcommands
        if subcommands and inner_name not in subcommands:
            Parser(prog=f"trysquare {name}").unknown_command(inner_name, subcommands)
    words, server_command = _split_command(words, name)
    arguments, unknown = parser.parse_known_args(words)
    arguments.server_command = server_command
    _take_rest(arguments, unknown)
    return arguments


def _take_rest(arguments: argparse.Namespace, unknown: Sequence[str]) -> None:
    """Add words that stand after an option to the command's list of arguments, where argparse ends at the option."""
    if not unknown:
        return
    parser = cast(Parser, arguments.parser)
    wrong = next((word for word in unknown if word.startswith("-") and word != "-"), None)
    lists = [each.action.dest for each in parser.positionals() if each.action.nargs == "*"]
    if wrong is not None or not lists:
        parser.unknown_argument(wrong or unknown[0])
    setattr(arguments, lists[-1], [*getattr(arguments, lists[-1]), *unknown])


def _split_command(words: Sequence[str], name: str | None) -> tuple[Sequence[str], Sequence[str]]:
    """The words before the first `--`, and the command after it, for a command that takes one."""
    if name is None or "--" not in words or not load_command(name).takes_command:
        return words, ()
    at = words.index("--")
    if not words[at + 1 :]:
        Parser(prog=f"trysquare {name}").error("a command is missing after `--`")
    return words[:at], words[at + 1 :]


def build_parser(name: str | None) -> Parser:
    """The parser of the whole command line, with the options of one command: no other is imported."""
    parser = Parser(
        prog="trysquare",
        description="Build MCP servers from typed Python functions, and use many servers behind one gateway.",
    )
    parser.add_argument(
        "-V", "--version", action="version", version=f"trysquare {__version__}", help="show the version"
    )
    parser.set_defaults(command=Command(), parser=parser)
    known = find_commands()
    last = [each for each in known if not any(each in names for names in GROUPS.values())]
    grouped = {title: [each for each in names if each in known] for title, names in GROUPS.items()}
    grouped[list(GROUPS)[-1]] += last
    parser.commands = {title: {each: known[each] for each in names} for title, names in grouped.items()}
    parser.examples = EXAMPLES
    if name in known:
        choices = parser.add_subparsers(metavar="COMMAND")
        parser.inner[name] = choices.add_parser(name, description=sentence(known[name]))
        load_command(name).add_to(parser.inner[name])
    return parser


def _names(parser: Parser) -> list[str]:
    return [name for commands in parser.commands.values() for name in commands]


def _command_names(words: Sequence[str]) -> tuple[str | None, str | None]:
    """The command, and the word after it unless that is an option."""
    at = next((at for at, word in enumerate(words) if not word.startswith("-")), len(words))
    name, following = [*words[at : at + 2], None, None][:2]
    return name, None if following is None or following.startswith("-") else following


def find_commands() -> dict[str, str]:
    """The commands of this package with their help, read from the first lines of the modules without importing them."""
    found: dict[str, str] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        with path.open(encoding="utf-8") as module:
            title = _TITLE.match(module.readline())
        if title is not None and title["name"] == path.stem:
            found[path.stem] = title["help"]
    return found


def load_command(name: str) -> Command:
    """Import a command's module; no other command is loaded."""
    return cast(Command, importlib.import_module(f"trysquare.cli.{name}").COMMAND)


def _failed(error: TrysquareError, words: Sequence[str]) -> int:
    if wants_traceback() or "--debug-traceback" in words:
        raise error
    hint = error.instruction if isinstance(error, ToolError) else _nearest_file(error)
    for line in [*str(error).splitlines(), *([hint] if hint else [])]:
        print_problem(line)
    return 1 if isinstance(error, ToolError) else 2


_MISSING = re.compile("not found|not a directory|no such file", re.IGNORECASE)


def _nearest_file(error: TrysquareError) -> str | None:
    """The nearest name beside a file that does not exist."""
    text = str(error)
    if not isinstance(error, ConfigurationError) or error.where is None or "Did you mean" in text:
        return None
    file = Path(error.where)
    if file.exists() or not file.parent.is_dir() or not _MISSING.search(text):
        return None
    near = closest_names(file.name, [each.name for each in file.parent.iterdir()])
    return f"Did you mean `{file.with_name(near[0])}`?" if near else None


def _show_unexpected(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an unexpected error in one line, or its traceback if asked for."""
    if wants_traceback():
        from traceback import format_exception

        print(block("".join(format_exception(kind, error, trace))), file=sys.stderr)
        return
    problem = f"unexpected {kind.__name__}: {one_line(str(error).strip())}"
    print_problem(f"{problem} (set {TRACEBACK_VARIABLE}=1 to see where it comes from)")


if __name__ == "__main__":
    sys.exit(main())
