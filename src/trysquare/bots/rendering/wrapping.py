"""Wrapping: texts into lines that fit a width, measured by what letters usually take."""

from __future__ import annotations

import unicodedata

_NARROW = frozenset("iljtfrI.,:;'|!()[] ")
_WIDE = frozenset("mwMW@%&—")


def width_of(text: str, size: float) -> float:
    """About how wide a text is in the wider ones of the common sans-serif fonts."""
    return sum(_letter(letter) for letter in text) * size * 1.08


def _letter(letter: str) -> float:
    if letter in _NARROW:
        return 0.32
    if letter in _WIDE:
        return 0.88
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    return 0.68 if letter.isupper() else 0.56


def wrap(text: str, width: float, size: float, *, lines: int) -> list[str]:
    """At most so many lines; a text that is longer ends in `…`."""
    wrapped: list[str] = []
    current = ""
    for word in (piece for whole in text.split() for piece in _pieces(whole, width, size)):
        longer = f"{current} {word}" if current else word
        if current and width_of(longer, size) > width:
            wrapped.append(current)
            current = word
        else:
            current = longer
    wrapped += [current] if current else []
    if len(wrapped) <= lines:
        return wrapped
    return [*wrapped[: lines - 1], _ended(wrapped[lines - 1], width, size)]


def _pieces(word: str, width: float, size: float) -> list[str]:
    """A word, cut where it is longer than a line."""
    pieces = [""]
    for letter in word:
        if pieces[-1] and width_of(pieces[-1] + letter, size) > width:
            pieces.append("")
        pieces[-1] += letter
    return pieces


def _ended(text: str, width: float, size: float) -> str:
    while text and width_of(f"{text}…", size) > width:
        text = text[:-1]
    return f"{text.rstrip()}…"
