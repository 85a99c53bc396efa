"""Command: the declaration of a CLI command, and its parser."""

from __future__ import annotations

import argparse
import gc
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

from trysquare.core.text import closest_names

Run: TypeAlias = Callable[[argparse.Namespace], "int | Coroutine[Any, Any, int | None] | None"]
Option: TypeAlias = Callable[[argparse.ArgumentParser], object]

EXIT_CODES = """exit codes:
  0    done
  1    the call or check failed; the output says how
  2    wrong usage or configuration; one line on stderr says where
  130  interrupted"""


class Parser(argparse.ArgumentParser):
    """A parser that reports wrong usage in one line and suggests the nearest name."""

    def __init__(self, **settings: Any) -> None:
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(epilog=EXIT_CODES, formatter_class=formatter, allow_abbrev=False, **settings)

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


def option(*flags: str, **settings: Any) -> Option:
    """An argument or option, declared as `add_argument` takes it."""
    return lambda parser: parser.add_argument(*flags, **settings)


@dataclass(frozen=True, slots=True)
class Command:
    """A command or sub-command. `run` returns the exit code, None for 0, and may be a coroutine function."""

    run: Run | None = None
    options: tuple[Option, ...] = ()
    help: str = ""
    """One line for the list of sub-commands; for a top-level command it is the first line of its module."""
    subcommands: Mapping[str, Command] = field(default_factory=dict[str, "Command"])

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add the options, or the sub-commands with theirs."""
        for add in self.options:
            add(parser)
        parser.set_defaults(command=self, parser=parser)
        if self.subcommands:
            choices = parser.add_subparsers(metavar="COMMAND", title="commands")
            for name, command in self.subcommands.items():
                command.add_to(choices.add_parser(name, help=command.help, description=sentence(command.help)))


def collect_seldom(*, is_loaded: bool = False) -> None:
    """Set up the garbage collector of a process of our own, and again once a server has loaded what it serves.

    With the usual thresholds a command collects many times while its modules load, and nearly all of that stays. A call
    of a loaded server leaves hardly any garbage, and looking for it was a twentieth of a call.
    """
    if is_loaded:
        gc.freeze()
    gc.set_threshold(20_000 if is_loaded else 100_000, 20, 50)


def sentence(text: str) -> str:
    """The one-line help of a command as its description."""
    return f"{text[:1].upper()}{text[1:]}."
