"""The source of a failure in the terminal: the failing line, the suspects in order, and values beside the lines."""

from __future__ import annotations

import sys
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence

from trysquare.cli.terminal import styled, terminal_width
from trysquare.core.untrusted import block, one_line
from trysquare.debug.explain.annotations import Excerpt, FailedTest, Report, SourceLine

_WIDEST = 120
"""Columns where there is no terminal, and at most in one."""
_TAB = 4
_LEAST_BESIDE = 24
"""Columns for values beside a line, below which they stand under it."""
_GAP = "  "
_FAILS = "✗"
_BELOW = "│ "


def print_source(report: Report, *, is_alone: bool) -> None:
    """Print each failure with the source that matters; `is_alone` if nothing else says what failed."""
    if is_alone and report.summary:
        print(report.summary)
    for number, failure in enumerate(report.failures):
        if number or not is_alone:
            print()
        if is_alone:
            _print_heading(failure)
        for at, excerpt in enumerate(failure.excerpts):
            if at or is_alone:
                print()
            _print_excerpt(excerpt)
    if is_alone and report.more > 0:
        print(f"\n{report.more} more failed.")


def _print_heading(failure: FailedTest) -> None:
    width = _width()
    print(styled(_cut(one_line(failure.name, width), width), "bold"))
    for line in textwrap.wrap(one_line(failure.error, 4 * width), width) or [""]:
        print(styled(line, "red"))
    if failure.confidence:
        for line in textwrap.wrap(f"Suspects, most likely first. Confidence: {failure.confidence}.", width):
            print(line)
    for each in failure.suspects:
        place = each.location + (f" in {each.function}" if each.function else "")
        print(f"{styled(str(each.rank), 'yellow')} {_cut(one_line(place, width), width - 3)}")
        for line in textwrap.wrap(one_line(each.why, 4 * width), width - 2):
            print(f"  {styled(line, 'dim')}")


def _print_excerpt(excerpt: Excerpt) -> None:
    print(styled(_cut(excerpt.file, _width()), "bold"))
    margin = _Margin(excerpt.lines)
    codes = [_plain(line.text) for line in excerpt.lines]
    beside = [_columns(code) for code, line in zip(codes, excerpt.lines, strict=True) if line.values]
    # Beside the longest of the lines that have values, unless too little is left there.
    column = min(max(beside, default=0), max(_width() - margin.width - len(_GAP) - _LEAST_BESIDE, 0))
    for line, code in zip(excerpt.lines, codes, strict=True):
        if line.is_after_gap:
            print(styled(f"{' ' * (margin.width - 3)}⋮", "dim"))
        for text in _rows(line, code, margin, column):
            print(text)


class _Margin:
    """What stands before each line: the mark of a failing line or the rank of a suspect, and the line's number."""

    def __init__(self, lines: Sequence[SourceLine]) -> None:
        self._digits = len(str(max((line.number for line in lines), default=1)))
        self.width = 4 + self._digits + len(_GAP)

    def of(self, line: SourceLine) -> str:
        rank = "  " if line.rank is None else styled(f"{line.rank:>2}", "yellow")
        mark = styled(_FAILS, "red") if line.is_failing else " "
        return f"{mark}{rank} {styled(f'{line.number:>{self._digits}}', 'dim')}{_GAP}"


def _rows(line: SourceLine, code: str, margin: _Margin, column: int) -> Iterator[str]:
    width = _width()
    space = width - margin.width
    style = "red" if line.is_failing else "yellow" if line.rank is not None else ""
    used = _columns(code)
    shown = styled(_cut(code, space), style) if style else _cut(code, space)
    values = one_line(line.values, 4 * width)
    if not values:
        yield f"{margin.of(line)}{shown}".rstrip()
        return
    if used <= column:
        rows = textwrap.wrap(values, space - column - len(_GAP) - 2, break_on_hyphens=False)
        if len(rows) == 1:
            yield f"{margin.of(line)}{shown}{' ' * (column - used)}{_GAP}{styled(f'# {rows[0]}', 'cyan')}"
            return
    yield f"{margin.of(line)}{shown}"
    indent = len(code) - len(code.lstrip())
    before = " " * (margin.width + min(indent, space // 2)) + _BELOW
    for row in textwrap.wrap(values, max(width - len(before), _LEAST_BESIDE), break_on_hyphens=False):
        yield styled(f"{before}{row}", "cyan")


def _width() -> int:
    return min(terminal_width(), _WIDEST) if sys.stdout.isatty() else _WIDEST


def _plain(text: str) -> str:
    """A line of source as it is printed: tabs as spaces, and nothing that moves the cursor."""
    return block(text.expandtabs(_TAB).rstrip())


def _columns(text: str) -> int:
    """The columns that a text takes: wide characters take two, and combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )


def _cut(text: str, width: int) -> str:
    """The text within a number of columns."""
    if _columns(text) <= width:
        return text
    while text and _columns(text) > width - 1:
        text = text[:-1]
    return f"{text}…"
