"""Transcript: what the demo prints, and what it holds against what should be seen."""

from __future__ import annotations

import json
import textwrap
from typing import Any, cast

from trysquare.cli.terminal import styled

WIDTH = 100


class Transcript:
    """Prints each step as it happens, and remembers what did not show what it should."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.steps = 0
        self._title = ""

    def chapter(self, text: str) -> None:
        """A heading over several steps."""
        print(f"\n{styled(f'== {text} ', 'bold')}{styled('=' * max(0, WIDTH - len(text) - 4), 'bold')}", flush=True)

    def step(self, title: str, shows: str) -> None:
        """The beginning of a step: its name, and what to look for in it."""
        self._title = title
        self.steps += 1
        print(f"\n{styled(f'{self.steps}. {title}', 'cyan')}: {shows}", flush=True)

    def sent(self, method: str, *parts: Any) -> None:
        """What the client sends."""
        self._line("->", "blue", " ".join([method, *(_text(part) for part in parts)]))

    def received(self, text: str, *, lines: int = 4) -> None:
        """What the server answers, cut to a few lines."""
        shown = text.splitlines()[:lines] or [""]
        if len(text.splitlines()) > lines:
            shown[-1] += " …"
        for line in shown:
            self._line("<-", "green", line)

    def human(self, text: str) -> None:
        """What the human sees or does."""
        self._line("human:", "yellow", text)

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
        cause = _first_cause(error)
        text = f"{type(cause).__name__}: {cause}"
        self.failures.append(f"{self._title}: {text}")
        self._line("NOT SEEN", "red", text)

    def _line(self, mark: str, style: str, text: str) -> None:
        short = textwrap.shorten(text, width=WIDTH - 4 - len(mark), placeholder=" …") if len(text) > WIDTH else text
        print(f"   {styled(mark, style)} {short}", flush=True)


def _first_cause(error: BaseException) -> BaseException:
    """The error itself, where a task group has put it into a group."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    return _first_cause(cast(BaseExceptionGroup[BaseException], error).exceptions[0])


def _text(part: Any) -> str:
    return part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)
