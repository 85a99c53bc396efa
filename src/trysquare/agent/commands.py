"""Shell commands as a policy looks at them: the single commands of a line, and whether anything hides in it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from trysquare.agent.globs import matches

_ENDS = frozenset({";", "&", "&&", "|", "||", "|&", ";;", "\n", "(", ")", "{", "}"})
_HIDING = re.compile(r"[$`]|<\(|>\(|<<")
_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_RUNNERS = frozenset(
    {"env", "sudo", "doas", "nohup", "nice", "time", "timeout", "xargs", "exec", "eval", "command", "builtin", "sh",
     "bash", "dash", "zsh", "busybox", "setsid", "stdbuf", "find"}
)  # fmt: skip
"""Programs that run others: what stands behind them counts for a refusal, and they are allowed only by name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandParts:
    """A command line: its single commands, and whether a part of it is only known when it runs."""

    commands: tuple[str, ...]
    hides: bool
    whole: str

    def all_match(self, patterns: Iterable[str]) -> bool:
        """Whether every single command fits a pattern, and nothing hides between them."""
        wanted = tuple(patterns)
        return not self.hides and bool(self.commands) and all(_fits(command, wanted) for command in self.commands)

    def any_matches(self, patterns: Iterable[str]) -> bool:
        """Whether any single command fits a pattern, or stands behind a program that runs it, or within the line."""
        wanted = tuple(patterns)
        behind = [rest for command in self.commands for rest in _behind(command)]
        if any(_fits(command, wanted) for command in (*self.commands, *behind)):
            return True
        # What hides cannot be told apart, so the line as a whole is searched for the pattern's own words.
        return self.hides and any(pattern.strip("* ") in self.whole for pattern in wanted if pattern.strip("* "))


def split_command(line: str) -> CommandParts:
    """The single commands of a shell line, their words parted by one blank, settings of variables left out."""
    try:
        words = _words(line)
    except ValueError:
        # A quote that does not close: whatever the shell makes of it, it is not what was looked at.
        return CommandParts(commands=(line.strip(),), hides=True, whole=line)
    commands: list[list[str]] = [[]]
    for word in words:
        if word in _ENDS:
            commands.append([])
        elif commands[-1] or not _SETTING.fullmatch(word):
            commands[-1].append(word)
    told = tuple(" ".join(command) for command in commands if command)
    # A program's name with a blank in it would look like a program and its first argument.
    odd = any(command[0].split() != [command[0]] for command in commands if command)
    return CommandParts(commands=told, hides=odd or _HIDING.search(line) is not None, whole=line)


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line.replace("\n", " ; "), posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


def _fits(command: str, patterns: tuple[str, ...]) -> bool:
    """`git push*` fits `git push` and `/usr/bin/git push origin`."""
    program, _, rest = command.partition(" ")
    bare = f"{program.rsplit('/', 1)[-1]} {rest}".strip()
    return any(matches(form, pattern) for pattern in patterns for form in {command, bare})


def _behind(command: str) -> list[str]:
    """What a program that runs others may run: each tail of its words."""
    words = command.split(" ")
    if words[0].rsplit("/", 1)[-1] not in _RUNNERS:
        return []
    return [" ".join(words[start:]) for start in range(1, min(len(words), 40))]
