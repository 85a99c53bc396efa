"""Command: the declaration of a CLI command, and its parser."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias, TypedDict

from trysquare.core.text import closest_names

Run: TypeAlias = Callable[[argparse.Namespace], "int | Coroutine[Any, Any, int]"]
Configure: TypeAlias = Callable[[argparse.ArgumentParser], None]

EXIT_CODES = """exit codes:
  0    done
  1    the call or check failed; the output says how
  2    wrong usage or configuration; one line on stderr says where
  130  interrupted"""


class Parser(argparse.ArgumentParser):
    """A parser that reports wrong usage in one line and suggests the nearest name."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def unknown_command(self, name: str, known: Iterable[str]) -> NoReturn:
        """Exit with the nearest of the known commands."""
        self.error(_suggesting(f"unknown command `{name}`", name, known))

    def unknown_argument(self, word: str) -> NoReturn:
        """Exit with the nearest of the parser's options."""
        if not word.startswith("-"):
            self.error(f"unexpected argument `{word}`")
        option = word.partition("=")[0]
        known = sorted(set(re.findall(r"--[a-z][a-z-]+", self.format_help())))
        self.error(_suggesting(f"unknown option `{option}`", option, known))


def _suggesting(problem: str, name: str, known: Iterable[str]) -> str:
    near = closest_names(name, known)
    return f"{problem}; did you mean `{near[0]}`?" if near else problem


def _no_options(parser: argparse.ArgumentParser) -> None:
    """Add nothing."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command or sub-command. `run` returns the exit code, and may be a coroutine function."""

    run: Run | None = None
    configure: Configure = _no_options
    help: str = ""
    """One line for the list of sub-commands; for a top-level command it is the first line of its module."""
    subcommands: Mapping[str, Command] = field(default_factory=dict[str, "Command"])

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add the options, or the sub-commands with theirs."""
        self.configure(parser)
        parser.set_defaults(command=self, parser=parser)
        if self.subcommands:
            choices = parser.add_subparsers(metavar="COMMAND", title="commands")
            for name, command in self.subcommands.items():
                command.add_to(choices.add_parser(name, **described(command.help)))


class Described(TypedDict):
    """Arguments of `add_parser` that every command has."""

    help: str
    description: str
    epilog: str
    formatter_class: type[argparse.HelpFormatter]
    allow_abbrev: bool


def described(text: str) -> Described:
    """The one-line help of a command as arguments of `add_parser`."""
    return Described(
        help=text,
        description=text[:1].upper() + text[1:] + ".",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
