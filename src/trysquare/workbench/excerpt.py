"""Excerpts: numbered lines of a file, as many as an answer should hold."""

from __future__ import annotations

from dataclasses import dataclass

from trysquare.workbench.text import Text

MOST_LINES = 1_000
MOST_LETTERS = 30_000
LONGEST_LINE = 2_000
_AROUND = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Excerpt:
    """Some lines of a file: from which to which, of how many."""

    output: str
    first: int
    last: int
    total: int

    @property
    def is_cut(self) -> bool:
        """Whether there are lines after it."""
        return self.last < self.total


def numbered(text: Text, first: int = 1, last: int | None = None) -> Excerpt:
    """Lines with their numbers, up to what fits."""
    return _excerpt(text, first, last, "{number}\t{line}")


def plain(text: Text) -> Excerpt:
    """Lines as they are, up to what fits."""
    return _excerpt(text, 1, None, "{line}")


def around(text: Text, first: int, last: int) -> str:
    """Numbered lines with a few before and after."""
    return numbered(text, max(1, first - _AROUND), min(last + _AROUND, first + 40)).output


def _excerpt(text: Text, first: int, last: int | None, form: str) -> Excerpt:
    lines = text.lines()
    until = min(len(lines), last or len(lines), first + MOST_LINES - 1)
    shown: list[str] = []
    letters = 0
    for number in range(first, until + 1):
        line = form.format(number=number, line=_short(lines[number - 1].rstrip("\r\n")))
        letters += len(line) + 1
        if letters > MOST_LETTERS and shown:
            break
        shown.append(line)
    return Excerpt(output="\n".join(shown), first=first, last=first + len(shown) - 1, total=len(lines))


def _short(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}… ({len(line):,} letters)"
