"""`trysquare completion SHELL`: print the completion script of a shell."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from trysquare.cli.command import Command, Declared, Parser, option
from trysquare.core.errors import TrysquareError

SCRIPTS = {
    "bash": """\
_trysquare() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <("${COMP_WORDS[0]}" completion bash -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=:] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -F _trysquare trysquare
""",
    "zsh": """\
#compdef trysquare
_trysquare() {
    local line value entry
    local -a whole open
    for line in "${(@f)$("${words[1]}" completion zsh -- "${(@)words[1,CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] || continue
        value=${line%%$'\\t'*}
        entry="${value//:/\\\\:}:${line#*$'\\t'}"
        if [[ $value == *[/=:] ]]; then open+=("$entry"); else whole+=("$entry"); fi
    done
    (( $#whole )) && _describe -V trysquare whole
    (( $#open )) && _describe -V trysquare open -S ''
}
if [[ $funcstack[1] == _trysquare ]]; then
    _trysquare "$@"
else
    compdef _trysquare trysquare
fi
""",
    "fish": """\
function __trysquare_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    command $before[1] completion fish -- $before "$current" 2>/dev/null
end
complete -c trysquare -f -a '(__trysquare_complete)'
""",
}
_FILES = frozenset({"FILE", "PATH", "MCP_JSON", "GGUF", "SOURCE"})
_FOLDERS = frozenset({"FOLDER"})
"""By the name of the value in help."""


@dataclass(slots=True)
class Line:
    """A command line up to the word that is being completed."""

    parser: Parser
    arguments: argparse.Namespace = field(default_factory=argparse.Namespace)
    position: int = 0
    pending: Declared | None = None
    """The option whose value comes next."""
    no_options: bool = False

    @classmethod
    def read(cls, words: Iterable[str]) -> Line:
        # Only now: `main` finds this module as one of its commands.
        from trysquare.cli.main import build_parser

        words = list(words)
        line = cls(build_parser(next((word for word in words if not word.startswith("-")), None)))
        for word in words:
            line._take(word)
        return line

    def _take(self, word: str) -> None:
        if self.pending is not None:
            self._store(self.pending, word)
            self.pending = None
        elif word == "--":
            self.no_options = True
        elif word.startswith("-") and not self.no_options:
            flag, separator, value = word.partition("=")
            found = self.option(flag)
            if found is not None and found.takes_value:
                self._store(found, value) if separator else setattr(self, "pending", found)
        elif self.position == 0 and self.parser.commands:
            self.parser = self.parser.inner.get(word, self.parser)
        else:
            if (found := self.positional()) is not None:
                self._store(found, word)
            self.position += 1

    def option(self, flag: str) -> Declared | None:
        return next((each for each in self.parser.all_options() if flag in each.flags), None)

    def positional(self) -> Declared | None:
        """The argument at this position; the last one may take several words."""
        known = self.parser.positionals()
        if self.position < len(known):
            return known[self.position]
        return known[-1] if known and known[-1].action.nargs in ("*", "+", "...") else None

    def _store(self, declared: Declared, text: str) -> None:
        kind = declared.action.type
        value = cast(Callable[[str], object], kind)(text) if isinstance(kind, type) else text
        setattr(self.arguments, declared.action.dest, value)


def candidates(words: Sequence[str]) -> list[tuple[str, str]]:
    """What can stand in place of the last word, each with its help."""
    *before, current = words or [""]
    line = Line.read(before)
    flag, separator, typed = current.partition("=")
    if line.pending is not None:
        found = [(value, "") for value in _values(line.pending, line, current)]
    elif current.startswith("-") and separator and (named := line.option(flag)) is not None:
        found = [(f"{flag}={value}", "") for value in _values(named, line, typed)]
    elif line.parser.commands and not current.startswith("-"):
        found = [each for commands in line.parser.commands.values() for each in commands.items()]
    elif (current.startswith("-") or line.positional() is None) and not line.no_options:
        shown = [each for each in line.parser.all_options() if each.help != argparse.SUPPRESS]
        found = [(name, each.help % vars(each.action)) for each in shown for name in each.flags]
    else:
        positional = line.positional()
        found = [] if positional is None else [(value, "") for value in _values(positional, line, current)]
    return [(value, text) for value, text in found if value.startswith(current)]


def _values(declared: Declared, line: Line, typed: str) -> Iterable[str]:
    action, complete = declared.action, declared.complete
    if action.choices is not None:
        return map(str, action.choices)
    if complete is not None:
        with contextlib.suppress(TrysquareError, OSError), contextlib.redirect_stdout(io.StringIO()):
            return list(complete(line.arguments) if callable(complete) else complete)
        return ()
    name = str(action.metavar)
    if name in _FILES | _FOLDERS or line.no_options:
        return _paths(typed, folders_only=name in _FOLDERS)
    return ()


def _paths(typed: str, *, folders_only: bool = False) -> Iterator[str]:
    """Files and directories that begin as typed; hidden ones only if a dot was typed."""
    folder, start = typed[: typed.rfind("/") + 1], typed[typed.rfind("/") + 1 :]
    try:
        entries = sorted(os.scandir(os.path.expanduser(folder) or "."), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(".") and not start.startswith("."):
            continue
        if entry.is_dir():
            yield f"{folder}{entry.name}/"
        elif not folders_only:
            yield f"{folder}{entry.name}"


def _split(line: str) -> tuple[list[str], str]:
    """The words of a line, the last of them empty if a new one begins, and the quotation mark that is still open."""
    for closing in ("", "'", '"'):
        try:
            words = shlex.split(line + closing)
        except ValueError:
            continue
        begins = line[-1:].isspace() and not line.endswith("\\ ") and not closing
        return [*words, ""] if begins else words, closing
    return line.split(), ""


def run(arguments: argparse.Namespace) -> None:
    """Print the script, or what completes the words."""
    words: list[str] = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if not words:
        print(SCRIPTS[arguments.shell], end="")
    elif arguments.shell == "bash":
        _print_for_bash(words[0])
    else:
        for value, text in candidates(words[1:]):
            print(f"{value}\t{text}")


def _print_for_bash(line: str) -> None:
    """Print only what follows the last word break, since bash replaces no more; escaped unless it is quoted."""
    words, quote = _split(line)
    current = words[-1] if words else ""
    done = max(current.rfind("="), current.rfind(":")) + 1
    for value, _ in candidates(words[1:]):
        print(value[done:] if quote else re.sub(r"([^\w@%+=:,./~-])", r"\\\1", value[done:]))


_SHELL = option("shell", metavar="SHELL", choices=tuple(SCRIPTS), help=f"one of {', '.join(SCRIPTS)}")
_WORDS = option(
    "words", metavar="WORD", nargs=argparse.REMAINDER, help="a command line, to print what completes its last word"
)
COMMAND = Command(
    run,
    (_SHELL, _WORDS),
    examples=(
        "trysquare completion bash >> ~/.bashrc",
        "trysquare completion zsh > ~/.zfunc/_trysquare",
        "trysquare completion fish > ~/.config/fish/completions/trysquare.fish",
    ),
)
