"""Shell commands as a policy looks at them: which lines are understood, and which programs a line speaks of.

An allow rule holds for one simple command: plain words, with quotes that hold no expansion. Whatever else a shell can
do with a line is not understood, and is never allowed by a rule. Deny and ask rules look wider: at every word that may
be a program, as it stands or behind other programs. They are a help against mistakes and no barrier, because a program
can run others without naming them; what a command can reach is the sandbox's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from trysquare.files.globs import matches

_PLAIN = r"[A-Za-z0-9_./:=,@%+-]"
_QUOTED = r"'[^'\x00-\x1f\x7f]*'|\"[^\"$`\\!\x00-\x1f\x7f]*\""
_WORD = re.compile(rf"(?:{_PLAIN}|{_QUOTED})+")
_PIECE = re.compile(rf"{_PLAIN}+|{_QUOTED}")
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
_PROGRAM = re.compile(rf"{_NAME}|(?:/{_NAME})+")
"""A program by its name, or by its place on this machine: what lies beside the command's folder is another program."""
_PLACED = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]*")

_WIDER = rf"(?:{_PLAIN}|[*?\[\]~^]|{_QUOTED})+"
_JOINED = re.compile(rf"[ \t]*(?:(?P<word>{_WIDER})|(?P<redirect>\d*(?:>>|>|<)(?:&\d+|[ \t]*{_WIDER})|&>[ \t]*{_WIDER})"
                     r"|(?P<end>&&|\|\||[;|&\n]))")  # fmt: skip
_RESERVED = frozenset(
    {"if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in",
     "function", "time", "coproc"}
)  # fmt: skip
"""Words with which bash begins something that is more than a simple command."""

_BORDERS = re.compile(r"[;&|\n()`]+")
_BLANKS = re.compile(r"[\s<>{}$!]+")
_QUOTES = str.maketrans("", "", "'\"\\")


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandLine:
    """A line for a shell."""

    words: tuple[str, ...] | None
    """The program and its arguments where the line is one simple command; else None."""
    is_clear: bool
    """Whether the line is nothing but simple commands, so that no program can hide in it from a shell's reader."""
    mentioned: tuple[tuple[str, ...], ...]
    """The words of each part of the line, without quotes: every word may be a program."""

    def is_allowed_by(self, patterns: Iterable[str]) -> bool:
        """Whether the line is one simple command, and a pattern fits it."""
        if self.words is None:
            return False
        line = " ".join(map(_written, self.words))
        return any(_allows(pattern, line) for pattern in patterns)

    def mentions(self, patterns: Iterable[str]) -> bool:
        """Whether some part of the line may be what a pattern names."""
        wanted = [pattern.split() for pattern in patterns if pattern.split()]
        return any(_mentions(pattern, words) for pattern in wanted for words in self.mentioned)


def read_command(line: str) -> CommandLine:
    """A line for a shell, as far as it is understood."""
    mentioned = (tuple(filter(None, _BLANKS.split(part))) for part in _BORDERS.split(line.translate(_QUOTES)))
    return CommandLine(words=_simple(line), is_clear=_is_clear(line), mentioned=tuple(filter(None, mentioned)))


def _simple(line: str) -> tuple[str, ...] | None:
    """The words of one simple command; None for every other line."""
    words: list[str] = []
    rest = line.strip(" \t")
    while rest:
        word = _WORD.match(rest)
        if word is None or rest[word.end() : word.end() + 1] not in ("", " ", "\t"):
            return None
        words.append(word[0])
        rest = rest[word.end() :].lstrip(" \t")
    if not words or _PROGRAM.fullmatch(words[0]) is None or words[0] in _RESERVED:
        return None
    return tuple(map(_unquoted, words))


def _unquoted(word: str) -> str:
    return "".join(piece[1:-1] if piece[0] in "'\"" else piece for piece in _PIECE.findall(word))


def _written(word: str) -> str:
    """A word as a pattern sees it: one that is more than plain letters stays in quotes, so that it stays one word."""
    return word if word and re.fullmatch(f"{_PLAIN}+", word) else f"'{word}'"


def _is_clear(line: str) -> bool:
    """Whether a line is simple commands alone, one after another, with redirections and patterns of file names."""
    at, first = 0, True
    rest = line.rstrip(" \t\n")
    while at < len(rest):
        token = _JOINED.match(rest, at)
        if token is None:
            return False
        if token["end"]:
            first = True
        elif token["word"]:
            if first and (_PLACED.fullmatch(_unquoted(token["word"])) is None or token["word"] in _RESERVED):
                return False
            first = False
        at = token.end()
    return bool(rest)


def _allows(pattern: str, line: str) -> bool:
    """`ls*` allows `ls` and `ls -l`, and not `lsof`: a star at a word's end is no part of the word."""
    if re.search(r"[A-Za-z0-9]\*$", pattern) and not pattern.endswith("**"):
        return matches(line, pattern[:-1]) or matches(line, f"{pattern[:-1]} *")
    return matches(line, pattern)


def _mentions(pattern: list[str], words: tuple[str, ...]) -> bool:
    """Whether the words hold those of a pattern in their order; what stands between them may be options."""
    return any(
        _begins(pattern[0], word, first=at == 0) and _follow(pattern[1:], words[at + 1 :])
        for at, word in enumerate(words)
    )


def _begins(pattern: str, word: str, *, first: bool) -> bool:
    bare = word.rsplit("/", 1)[-1]
    if matches(word, pattern) or matches(bare, pattern):
        # Behind another program most words are arguments, so there a star at the end does not stand for more letters.
        return first or not pattern.endswith("*") or pattern.strip("*") in ("", word, bare)
    return False


def _follow(patterns: list[str], words: tuple[str, ...]) -> bool:
    for pattern in patterns:
        if pattern.strip("*") == "":
            continue
        found = next((at for at, word in enumerate(words) if matches(word, pattern)), None)
        if found is None:
            return False
        words = words[found + 1 :]
    return True
