"""Piece: the next part of an answer, as a backend is told it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trysquare.grammar.call_lark import literal
from trysquare.grammar.expressions import Chars, repeated
from trysquare.grammar.json_text import EVERY_CHARACTER, written
from trysquare.grammar.lark import shape_rules
from trysquare.grammar.regex_text import regex_text, rust_point
from trysquare.grammar.shapes import Integers, Numbers, Shape
from trysquare.grammar.wanted import Free, Inside, Option

_QUOTE = literal('"')
_SHARE = 2
"""Of the tokens that are left, the part that what follows a value may need without being left out beside it."""
_LONGEST_NUMBER = 24
"""Bytes. A model that may go on writing digits sometimes does, and no number of a call needs more."""
_LONGEST_CHARACTER = 6
"""The most bytes that a character of a string takes: those of an escape."""
_ONE_BYTE = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E))
_MENDING = 6
"""How many bytes close a string that was cut: an escape's five missing ones, and the quote."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """Text that is forced, or a part that the model has to choose."""

    forced: str | None = None
    lark: str = ""
    choices: tuple[str, ...] = ()
    most_tokens: int | None = None


def choice_piece(options: Iterable[Option], begun: int, tokens_left: int) -> Piece:
    """One of the options, of which the first characters stand already.

    A single token tells most options apart, and what is then left of them is forced.
    """
    by_end: dict[str, list[str]] = {}
    for option in options:
        look = option.look[begun:]
        fitting = _fitting(option.after, tokens_left - len(look.encode()))
        by_end.setdefault(_optional(each.look for each in fitting), []).append(look)
    # As terminals, because llguidance compiles ten thousand of those in no time, and as many rules slowly.
    ways = " | ".join(f"WAY_{number}{end}" for number, end in enumerate(by_end))
    terminals = [f"WAY_{number}: {' | '.join(map(literal, looks))}\n" for number, looks in enumerate(by_end.values())]
    choices = tuple(look for looks in by_end.values() for look in looks)
    return Piece(lark=f"start: {ways}\n{''.join(terminals)}", choices=choices, most_tokens=1)


def must_be_empty(wanted: Inside, tokens_left: int) -> bool:
    """Whether a string can only be closed at once, because it could not be mended if it was cut."""
    return not wanted.shortest and tokens_left - wanted.rest - _MENDING < 1


def inside_piece(wanted: Inside, tokens_left: int) -> Piece:
    """The inside of a string with its quote."""
    following, kept = _following(wanted, tokens_left)
    most = tokens_left - kept - _MENDING
    if most < _LONGEST_CHARACTER * wanted.shortest:
        return _tight_piece(wanted, tokens_left - wanted.rest - 1)
    text = repeated(written(Chars(EVERY_CHARACTER)), wanted.shortest, wanted.longest)
    end = _optional(option.look for option in following)
    return Piece(lark=f"start: TEXT {_QUOTE}{end}\nTEXT: /{regex_text(text, point=rust_point)}/\n", most_tokens=most)


def _tight_piece(wanted: Inside, room: int) -> Piece:
    """Where a string must have some characters and hardly more fit: plain ones, of which a token has one at least."""
    longest = room if wanted.longest is None else min(room, wanted.longest)
    text = repeated(Chars(_ONE_BYTE), wanted.shortest, longest)
    return Piece(lark=f"start: TEXT {_QUOTE}\nTEXT: /{regex_text(text, point=rust_point)}/\n")


def free_piece(wanted: Free, named: Mapping[str, Shape], tokens_left: int) -> Piece:
    """A value with the first byte of what follows it, by which a number's end is known. It is never cut."""
    following, kept = _following(wanted, tokens_left)
    ends = [literal(option.look[:1]) + _optional((option.look[1:],)) for option in following]
    most = _LONGEST_NUMBER if isinstance(wanted.shape, Integers | Numbers) else tokens_left
    rules = shape_rules(wanted.shape, named, root="value", room=min(tokens_left - kept, most))
    return Piece(lark=f"start: value ({' | '.join(ends)})\n{rules}")


def _following(wanted: Inside | Free, tokens_left: int) -> tuple[list[Option], int]:
    """What may come with the end of a value, and how many bytes are kept for the most that it leads to.

    A value may use all of its room. What needs more than the shortest way is let in only where that leaves plenty.
    """
    following = _fitting(wanted.after, max(wanted.rest, tokens_left // _SHARE))
    return following, max([wanted.rest, *(option.need() for option in following)])


def _fitting(options: Iterable[Option], room: int) -> list[Option]:
    return [option for option in options if option.need() <= room]


def _optional(texts: Iterable[str]) -> str:
    """Any beginning of any of the texts, or nothing."""
    beginnings = dict.fromkeys(text[:end] for text in texts for end in range(1, len(text) + 1))
    return f" ({' | '.join(map(literal, beginnings))})?" if beginnings else ""
