"""Command: the declaration of a CLI command, its parser, and its help."""

from __future__ import annotations

import argparse
import gc
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

from trysquare.cli.terminal import styled
from trysquare.core.text import closest_names

Run: TypeAlias = Callable[[argparse.Namespace], "int | Coroutine[Any, Any, int | None] | None"]
Completer: TypeAlias = "Callable[[argparse.Namespace], Iterable[str]] | Iterable[str]"
"""The values that an argument can have; a function gets the options that are already on the line."""
Option: TypeAlias = "Callable[[Parser], object]"

EXIT_CODES = {
    "0": "done",
    "1": "the call or check failed; the output says how",
    "2": "wrong usage or configuration; one line on stderr says where",
    "130": "interrupted",
}
ARGUMENTS, OPTIONS = "Arguments", "Options"
_LONGEST_LEFT, _WIDEST = 26, 100
"""Columns of the names in help, and of all of it."""
_REQUIRED = "the following arguments are required: "


@dataclass(frozen=True, slots=True)
class Declared:
    """An argument or option as it was declared."""

    action: argparse.Action
    help: str
    complete: Completer | None = None

    @property
    def flags(self) -> Sequence[str]:
        return self.action.option_strings

    @property
    def takes_value(self) -> bool:
        return self.action.nargs != 0

    @property
    def value(self) -> str:
        """Its value as usage shows it: `NAME`, `[NAME]`, `NAME ...`."""
        action = self.action
        if not self.takes_value:
            return ""
        choices = "|".join(map(str, action.choices or ()))
        name = action.metavar if isinstance(action.metavar, str) else choices or action.dest.upper()
        forms = {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]", "...": f"[{name} ...]"}
        return forms.get(str(action.nargs), name)

    @property
    def left(self) -> str:
        """The names and value, for the left column of help."""
        names = [flag for flag in self.flags if not flag.startswith("--no-")]
        if names and len(names) < len(self.flags) and self.action.nargs == 0:
            names = [f"--[no-]{name.removeprefix('--')}" for name in names]
        names = names or list(self.flags)
        return f"{', '.join(names)} {self.value}".strip() if names else self.value.strip("[]").partition(" ")[0]


@dataclass(slots=True)
class Section:
    """A titled group of arguments or options. The short help only names those of a folded one."""

    title: str
    folded: bool = False
    declared: list[Declared] = field(default_factory=list[Declared])

    def shown(self) -> list[Declared]:
        """All but hidden options; those for help are the last."""
        known = [each for each in self.declared if each.help != argparse.SUPPRESS]
        return sorted(known, key=lambda each: isinstance(each.action, _ShowHelp))


class _ShowHelp(argparse.Action):
    """`--help` and `--help-all`."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        print(parser.format_help(everything=option_string == "--help-all"), end="")
        parser.exit()


class Parser(argparse.ArgumentParser):
    """A parser with help by sections that reports wrong usage in one line and suggests the nearest name."""

    def __init__(self, **settings: Any) -> None:
        self.sections: dict[str, Section] = {}
        self.commands: Mapping[str, Mapping[str, str]] = {}
        """Names and help of the commands below this one, by section."""
        self.inner: dict[str, Parser] = {}
        """Parsers of those commands that were loaded."""
        self.examples: Sequence[str] = ()
        self.option_hint = ""
        super().__init__(add_help=False, allow_abbrev=False, **settings)
        self.add_argument("-h", "--help", nargs=0, action=_ShowHelp, help="show this help")
        self.add_argument("--help-all", nargs=0, action=_ShowHelp, help="show this help with all options")

    def add_argument(self, *flags: Any, **settings: Any) -> argparse.Action:
        title = OPTIONS if flags[0].startswith("-") else ARGUMENTS
        return self._declare(self._section(title), super().add_argument, flags, settings)

    def add_group(self, title: str, *, folded: bool = False) -> Callable[..., argparse.Action]:
        """Begin or continue a section; the returned function adds an option to it."""
        section = self._section(title, folded=folded)
        return lambda *flags, **settings: self._declare(section, super(Parser, self).add_argument, flags, settings)

    def _section(self, title: str, *, folded: bool = False) -> Section:
        return self.sections.setdefault(title, Section(title, folded))

    @staticmethod
    def _declare(
        section: Section, add: Callable[..., argparse.Action], flags: Any, settings: dict[str, Any]
    ) -> argparse.Action:
        text, complete, choices = settings.get("help") or "", settings.pop("complete", None), settings.get("choices")
        if settings.get("nargs") == "*" and not flags[0].startswith("-"):
            # Without a default, argparse reports it as missing.
            settings.setdefault("default", [])
        if choices is not None:
            settings["type"] = _one_of(choices)
        action = add(*flags, **settings)
        section.declared.append(Declared(action, text, complete))
        return action

    def all_options(self) -> list[Declared]:
        """Every option, hidden ones included."""
        return [each for section in self.sections.values() for each in section.declared if each.flags]

    def positionals(self) -> list[Declared]:
        """The arguments without a flag, in order."""
        return [each for section in self.sections.values() for each in section.declared if not each.flags]

    def format_help(self, *, everything: bool = False) -> str:
        return _Help(self, everything=everything).text()

    def error(self, message: str) -> NoReturn:
        problem = re.sub(r"^argument (\S+): ", r"\1: ", message)
        if problem.startswith(_REQUIRED):
            problem = f"missing argument {problem.removeprefix(_REQUIRED)}"
        problem = problem.replace("expected one argument", "a value is missing")
        self.exit(2, f"{styled(f'{self.prog}:', 'red', stream=sys.stderr)} {problem} (see {self.prog} --help)\n")

    def unknown_command(self, name: str, known: Iterable[str]) -> NoReturn:
        """Exit with the nearest of the known commands."""
        self.error(_suggesting(f"unknown command `{name}`", name, known))

    def unknown_argument(self, word: str) -> NoReturn:
        """Exit with the nearest of the parser's options."""
        if not word.startswith("-"):
            self.error(f"unexpected argument `{word}`")
        option = word.partition("=")[0]
        shown = sorted(flag for each in self.all_options() if each.help != argparse.SUPPRESS for flag in each.flags)
        # Without the dashes, which would make any two short names alike.
        near = closest_names(option.strip("-"), [flag.strip("-") for flag in shown if flag.startswith("--")])
        problem = f"unknown option `{option}`" + (f"; did you mean `--{near[0]}`?" if near else "")
        hint = self.option_hint.format(name=option.lstrip("-"))
        self.error(f"{problem}{' ' if problem.endswith('?') else '. '}{hint}" if hint else problem)


def _suggesting(problem: str, name: str, known: Iterable[str]) -> str:
    near = closest_names(name, known)
    return f"{problem}; did you mean `{near[0]}`?" if near else problem


def _one_of(choices: Iterable[str]) -> Callable[[str], str]:
    """Type of an option with choices: an unknown one is reported with the nearest."""
    known = [str(choice) for choice in choices]

    def read(text: str) -> str:
        if text not in known:
            near = closest_names(text, known)
            hint = f"did you mean `{near[0]}`?" if near else f"choose from {', '.join(known)}"
            raise argparse.ArgumentTypeError(f"unknown value `{text}`; {hint}")
        return text

    return read


class _Help:
    """The help of one parser, as text."""

    def __init__(self, parser: Parser, *, everything: bool) -> None:
        self._parser = parser
        self._everything = everything
        self._width = max(40, min(shutil.get_terminal_size((80, 24)).columns, _WIDEST))

    def text(self) -> str:
        parser = self._parser
        sections = [section for section in parser.sections.values() if section.shown()]
        # The arguments first, then what the command does, then what all commands share.
        sections.sort(key=lambda section: (section.title != ARGUMENTS, section.folded))
        parts = [f"{styled('Usage:', 'bold')} {self._usage()}"]
        parts += [self._filled(parser.description)] if parser.description else []
        parts += [self._table(title, list(commands.items())) for title, commands in parser.commands.items()]
        for section in sections:
            if self._everything or not section.folded:
                parts.append(self._table(section.title, [(one.left, _expanded(one)) for one in section.shown()]))
        if folded := [section for section in sections if section.folded and not self._everything]:
            names = [(one.title, ", ".join(map(_name, one.shown()))) for one in folded]
            parts.append(self._table("Shared options (explained by --help-all)", names))
        if parser.examples:
            parts.append("\n".join([styled("Examples:", "bold"), *(f"  {line}" for line in parser.examples)]))
        if self._everything or " " not in parser.prog:
            parts.append(self._table("Exit codes", list(EXIT_CODES.items())))
        if parser.commands:
            parts.append(f"Run `{parser.prog} COMMAND --help` for the options of a command.")
        return "\n\n".join(parts) + "\n"

    def _usage(self) -> str:
        words = [self._parser.prog, "COMMAND"] if self._parser.commands else [self._parser.prog]
        usage = self._parser.usage or " ".join([*words, *(one.value for one in self._parser.positionals())])
        return usage if "[options]" in usage else f"{usage} [options]"

    def _filled(self, text: str) -> str:
        return "\n".join(textwrap.wrap(text, self._width))

    def _table(self, title: str, rows: Sequence[tuple[str, str]]) -> str:
        width = min(max((len(left) for left, _ in rows), default=0), _LONGEST_LEFT)
        lines = [styled(f"{title}:", "bold")]
        for left, right in rows:
            wrapped = textwrap.wrap(right, self._width - width - 4, break_on_hyphens=False) or [""]
            if len(left) > width:
                lines.append(f"  {left}")
                left = ""
            lines.append(f"  {left.ljust(width)}  {wrapped[0]}".rstrip())
            lines += [" " * (width + 4) + line for line in wrapped[1:]]
        return "\n".join(lines)


def _expanded(declared: Declared) -> str:
    return declared.help % {**vars(declared.action)}


def _name(declared: Declared) -> str:
    return next((flag for flag in declared.flags if flag.startswith("--")), declared.left)


def option(*flags: str, **settings: Any) -> Option:
    """An argument or option as `add_argument` takes it; `complete` gives the values for shell completion."""
    return lambda parser: parser.add_argument(*flags, **settings)


@dataclass(frozen=True, slots=True)
class Command:
    """A command or sub-command. `run` returns the exit code, None for 0, and may be a coroutine function."""

    run: Run | None = None
    options: tuple[Option, ...] = ()
    help: str = ""
    """One line for the list of sub-commands; for a top-level command it is the first line of its module."""
    subcommands: Mapping[str, Command] = field(default_factory=dict[str, "Command"])
    examples: tuple[str, ...] = ()
    """Command lines for the help, each of which works as it is written."""
    option_hint: str = ""
    """What to write instead of an unknown option, whose name is `{name}`."""
    takes_command: bool = False
    """Whether the words after `--` are a command that starts a server."""

    def add_to(self, parser: Parser) -> None:
        """Add the options, or the sub-commands with theirs."""
        for add in self.options:
            add(parser)
        parser.examples, parser.option_hint = self.examples, self.option_hint
        parser.set_defaults(command=self, parser=parser)
        if self.subcommands:
            parser.commands = {"Commands": {name: command.help for name, command in self.subcommands.items()}}
            choices = parser.add_subparsers(metavar="COMMAND")
            for name, command in self.subcommands.items():
                parser.inner[name] = choices.add_parser(name, description=sentence(command.help))
                command.add_to(parser.inner[name])


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
