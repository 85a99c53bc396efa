"""What the writing of a value wants next: text that is forced, a choice, the inside of a string, or a free value."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from trysquare.grammar.shapes import Shape

_TAIL = re.compile(r"[^A-Za-z0-9_]+")
"""What of the text behind a piece may come with it, since tokens such as `","` and `"}},{"` hold both."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Forced:
    """Text that can only come next."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One way to go on."""

    look: str
    """The text by which it is known; no other option's look begins with it."""
    need: Callable[[], int]
    """How many bytes the rest of the answer, the look included, has at least if it is taken."""
    after: tuple[Option, ...] = ()
    """How the text may go on behind the look, and what that needs from there on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """Options of which one is taken. Its text is not taken with it: whoever chose says next what is written."""

    options: tuple[Option, ...]
    names: bool = False
    """Whether the looks are names of tools, which are kept whole so that their probabilities can be told."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Inside:
    """The inside of a string without a pattern, and its closing quote."""

    shortest: int
    longest: int | None
    after: tuple[Option, ...]
    rest: int
    """How many bytes the answer has at least behind the closing quote: the least that any of `after` needs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Free:
    """A value that is not taken apart."""

    shape: Shape
    after: tuple[Option, ...]
    rest: int


Wanted: TypeAlias = Forced | Choice | Inside | Free
Writing: TypeAlias = Generator[Wanted, int, None]
"""Yields what it wants next, and is sent the number of the option that was taken."""


def choose(options: Sequence[Option], *, names: bool = False) -> Generator[Wanted, int, int]:
    """The number of the option that is taken; where there is only one, nobody is asked."""
    if len(options) == 1:
        return 0
    return (yield Choice(options=tuple(options), names=names))


def tails(after: tuple[Option, ...]) -> tuple[Option, ...]:
    """The beginnings of what may follow, as far as they may come with what stands before them, each once."""
    needs: dict[str, list[Callable[[], int]]] = {}
    for option in after:
        marks = _TAIL.match(option.look)
        if marks is not None:
            needs.setdefault(marks[0], []).append(option.need)
    return tuple(Option(look=look, need=partial(_least_of, several)) for look, several in needs.items())


def _least_of(needs: Sequence[Callable[[], int]]) -> int:
    return min(need() for need in needs)


def behind(closing: str, after: tuple[Option, ...]) -> tuple[Option, ...]:
    """A closing brace or bracket with what may follow it."""
    size = len(closing)
    return tuple(Option(look=closing + each.look, need=partial(_more, each.need, size)) for each in after)


def _more(need: Callable[[], int], size: int) -> int:
    return need() + size
