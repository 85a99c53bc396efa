"""Transcript: what the demo prints, and what it holds against what should be seen."""

from __future__ import annotations

import io
import json
import sys
import textwrap
from typing import Any, cast

from trysquare.cli.terminal import count, styled, terminal_width

WIDEST, MOST_LINES = 100, 2
_MARGIN = "    "
_MARKS = {"->": "→", "<-": "←", "ok": "✓", "NOT SEEN": "✗ NOT SEEN", "--": "·"}
"""Marks for terminals and pipes that can show them."""


class Transcript:
    """Prints each step as it happens, and remembers what did not show what it should."""

    def __init__(self, *, of: int = 0, headings: bool = True) -> None:
        self.failures: list[str] = []
        self.skipped: list[str] = []
        self.steps = 0
        self._of, self._headings = of, headings
        self._title = ""
        self._width = min(WIDEST, terminal_width())
        self._marks = _MARKS if _can_show("".join(_MARKS.values())) else {}

    def title(self, text: str) -> None:
        """The first line."""
        print(styled(text, "bold"), flush=True)

    def chapter(self, text: str) -> None:
        """A heading over several steps."""
        if self._headings:
            rule = "=" * max(0, self._width - len(text) - 4)
            print(f"\n{styled(f'== {text} {rule}', 'bold')}", flush=True)

    def step(self, title: str, shows: str) -> None:
        """The beginning of a step: its name, and what to look for in it."""
        self._title = title
        self.steps += 1
        of = f"/{self._of}" if self._of else ""
        print(f"\n{styled(f'{self.steps}{of} {title}', 'cyan')}", flush=True)
        for line in textwrap.wrap(shows, self._width - len(_MARGIN)):
            print(f"{_MARGIN}{styled(line, 'dim')}", flush=True)

    def left_out(self, title: str, missing: str) -> None:
        """A step that cannot be played here, and the command that brings what it needs."""
        self.step(title, "")
        self.lacking(missing)

    def lacking(self, missing: str) -> None:
        """A part of a step that cannot be played here, and the command that brings what it needs."""
        self.skipped.append(self._title)
        self._line("--", "yellow", f"left out: {missing}")

    def code(self, text: str) -> None:
        """A file, as it is."""
        for line in text.rstrip("\n").splitlines():
            print(f"{_MARGIN}  {styled(line, 'dim')}".rstrip(), flush=True)

    def sent(self, method: str, *parts: Any) -> None:
        """What the client sends."""
        self._line("->", "blue", " ".join([method, *(_text(part) for part in parts)]))

    def received(self, text: str, *, lines: int = 4) -> None:
        """What the server answers, cut to a few lines."""
        whole = [line for line in text.splitlines() if line.strip()] or [""]
        shown = whole[:lines]
        if len(whole) > lines:
            shown[-1] += " …"
        for line in shown:
            self._line("<-", "green", line)

    def human(self, text: str) -> None:
        """What the human sees or does."""
        self._line("human", "yellow", text)

    def note(self, text: str) -> None:
        """What happens beside the protocol."""
        self._line("--", "dim", text)

    def expect(self, holds: bool, what: str) -> None:
        """Hold what was seen against what should be: an expectation that fails fails the demo."""
        if not holds:
            self.failures.append(f"{self._title}: expected {what}")
        self._line("ok" if holds else "NOT SEEN", "green" if holds else "red", what)

    def broke(self, error: BaseException) -> None:
        """A step that could not be played to its end."""
        cause = first_cause(error)
        text = f"{type(cause).__name__}: {cause}"
        self.failures.append(f"{self._title}: {text}")
        self._line("NOT SEEN", "red", text)

    def conclude(self, seconds: float) -> None:
        """The last line, when nothing failed."""
        shown = self.steps - len(self.skipped)
        played = f"{count(shown, 'step')} showed what {'it' if shown == 1 else 'they'} should"
        left = f"; {len(self.skipped)} left out, in whole or in part" if self.skipped else ""
        print(f"\n{styled(f'{played}, in {seconds:.1f} s{left}.', 'green')}")

    def failed(self) -> None:
        """The last lines, when something failed."""
        print(f"\n{styled(f'{len(self.failures)} of {self.steps} steps did not show what they should:', 'red')}")
        for failure in self.failures:
            print(f"  {failure}")

    def _line(self, mark: str, style: str, text: str) -> None:
        """Print a marked line, wrapped below itself and cut after a few lines."""
        shown = self._marks.get(mark, mark)
        room = self._width - len(_MARGIN) - len(shown) - 1
        first, *rest = _wrapped(text, room, MOST_LINES)
        print(f"{_MARGIN}{styled(shown, style)} {first}".rstrip(), flush=True)
        for line in rest:
            print(f"{_MARGIN}{' ' * len(shown)} {line}", flush=True)


def _wrapped(text: str, width: int, most: int) -> list[str]:
    lines: list[str] = []
    while len(text) > width and len(lines) < most - 1:
        # At a space if there is one, so that words stay whole; long JSON is cut where the line ends.
        cut = text.rfind(" ", width // 2, width + 1)
        cut = width if cut < 0 else cut
        lines.append(text[:cut].rstrip())
        text = text[cut:].lstrip()
    return [*lines, text if len(text) <= width else f"{text[: width - 1].rstrip()}…"]


def replace_what_cannot_be_shown() -> None:
    """Let stdout print `?` for characters that its encoding does not have."""
    cast(io.TextIOWrapper, sys.stdout).reconfigure(errors="replace")


def _can_show(marks: str) -> bool:
    try:
        marks.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def first_cause(error: BaseException) -> BaseException:
    """The error itself, where a task group has put it into a group."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    return first_cause(cast(BaseExceptionGroup[BaseException], error).exceptions[0])


def _text(part: Any) -> str:
    return part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)
