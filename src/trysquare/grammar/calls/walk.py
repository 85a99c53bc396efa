"""CallWalk: a response in forced and free pieces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder
from math import isfinite
from typing import NoReturn

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.grammar.calls.call_set import CallSet, literal
from trysquare.grammar.calls.writer import AnswerWriter, Choice, Forced, FreeValue, Option, StringContent, Wanted
from trysquare.grammar.dialects.bounds import common_beginning
from trysquare.grammar.dialects.lark import shape_rules
from trysquare.grammar.schema.shapes import Integers, Numbers, Shape, admits
from trysquare.grammar.text.expressions import EVERY_CHARACTER, Chars, repeated, written
from trysquare.grammar.text.regex import regex_text, rust_point

_QUOTE = literal('"')
_SHARE = 2
"""Share of the tokens left that what follows a value may require without being left out."""
_LONGEST_NUMBER = 24
"""Bytes. Models sometimes go on writing digits, and no number of a call needs more."""
_LONGEST_CHARACTER = 6
"""Maximum bytes of a character in a string: those of an escape."""
_ONE_BYTE = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E))
_COMPLETION = 6
"""Bytes that complete a cut string: an escape's five missing ones, and the quote."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """Forced text, or a choice for the model."""

    forced: str | None = None
    lark: str = ""
    choices: tuple[str, ...] = ()
    most_tokens: int | None = None


def choice_piece(options: Iterable[Option], begun: int, tokens_left: int) -> Piece:
    """One of the options, whose first characters are already written.

    A single token decides among most options; the rest of them is then forced.
    """
    by_end: dict[str, list[str]] = {}
    for option in options:
        look = option.look[begun:]
        fitting = _fitting(option.after, tokens_left - len(look.encode()))
        by_end.setdefault(_optional(each.look for each in fitting), []).append(look)
    # As terminals, because llguidance compiles ten thousand terminals quickly, and as many rules slowly.
    alternatives = " | ".join(f"OPTION_{number}{end}" for number, end in enumerate(by_end))
    terminals = "".join(f"OPTION_{at}: {' | '.join(map(literal, looks))}\n" for at, looks in enumerate(by_end.values()))
    choices = tuple(look for looks in by_end.values() for look in looks)
    return Piece(lark=f"start: {alternatives}\n{terminals}", choices=choices, most_tokens=1)


def inside_piece(wanted: StringContent, tokens_left: int) -> Piece:
    """The content of a string with its closing quote."""
    following, kept = _following(wanted, tokens_left)
    most = tokens_left - kept - _COMPLETION
    if most < _LONGEST_CHARACTER * wanted.shortest:
        # Plain one-byte characters, where the string requires some and hardly more fit.
        space = tokens_left - wanted.rest - 1
        longest = space if wanted.longest is None else min(space, wanted.longest)
        text, end, most = repeated(Chars(_ONE_BYTE), wanted.shortest, longest), "", None
    else:
        text = repeated(written(Chars(EVERY_CHARACTER)), wanted.shortest, wanted.longest)
        end = _optional(option.look for option in following)
    return Piece(lark=f"start: TEXT {_QUOTE}{end}\nTEXT: /{regex_text(text, point=rust_point)}/\n", most_tokens=most)


def free_piece(wanted: FreeValue, named: Mapping[str, Shape], tokens_left: int) -> Piece:
    """A value with the first byte of what follows, which ends a number. It is never cut."""
    following, kept = _following(wanted, tokens_left)
    ends = [literal(option.look[:1]) + _optional((option.look[1:],)) for option in following]
    most = _LONGEST_NUMBER if isinstance(wanted.shape, Integers | Numbers) else tokens_left
    rules = shape_rules(wanted.shape, named, root="value", space=min(tokens_left - kept, most))
    return Piece(lark=f"start: value ({' | '.join(ends)})\n{rules}")


def _following(wanted: StringContent | FreeValue, tokens_left: int) -> tuple[list[Option], int]:
    """What may come with the end of a value, and the bytes reserved for the longest of it.

    Options that require more than the shortest completion are allowed only where enough tokens are left.
    """
    following = _fitting(wanted.after, max(wanted.rest, tokens_left // _SHARE))
    return following, max([wanted.rest, *(option.need() for option in following)])


def _fitting(options: Iterable[Option], space: int) -> list[Option]:
    return [option for option in options if option.need() <= space]


def _optional(texts: Iterable[str]) -> str:
    """Any prefix of any of the texts, or nothing."""
    beginnings = dict.fromkeys(text[:end] for text in texts for end in range(1, len(text) + 1))
    return f" ({' | '.join(map(literal, beginnings))})?" if beginnings else ""


_INSIDE = re.compile(r'(?:[^"\\\x00-\x1f\x7f]|\\(?:["\\bfnrt]|u[0-9a-fA-F]{4}))*+')
_CUT_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_ESCAPE_ENDS = {0: "\\", 1: "0020", 2: "020", 3: "20", 4: "0"}
"""The rest of a cut escape, by its number of characters after the backslash."""


class TextRefused(Exception):
    """Text that does not match its piece."""


def inside_end(text: str, shortest: int, longest: int | None) -> tuple[int, str]:
    """Offset after a string's closing quote, and the completion if the text was cut before it."""
    inside = _INSIDE.match(text)
    end = inside.end() if inside else 0
    if text[end : end + 1] == '"':
        _check_inside(text[:end], shortest, longest)
        return end + 1, ""
    cut = text[end:]
    if cut and not _CUT_ESCAPE.match(cut):
        raise TextRefused("this cannot stand in a string")
    completion = _ESCAPE_ENDS[len(cut) - 1] if cut else ""
    _check_inside(text + completion, shortest, longest)
    return len(text), completion + '"'


def _check_inside(inside: str, shortest: int, longest: int | None) -> None:
    length = len(json.loads(f'"{inside}"'))
    if length < shortest:
        raise TextRefused(f"the string is shorter than {shortest} characters")
    if longest is not None and length > longest:
        raise TextRefused(f"the string is longer than {longest} characters")


def free_end(text: str, shape: Shape, named: Mapping[str, Shape]) -> int:
    """End of the JSON value that a text starts with."""
    try:
        value, end = JSONDecoder(parse_constant=_no_constant, parse_float=_finite).raw_decode(text)
    except JSONDecodeError as error:
        raise TextRefused(f"it does not start with a JSON value ({error.msg})") from error
    if not admits(shape, value, named):
        raise TextRefused("the value does not match the schema")
    return end


def _finite(text: str) -> float:
    if not isfinite(value := float(text)):
        raise TextRefused(f"the number {text} is too large")
    return value


def _no_constant(name: str) -> NoReturn:
    raise TextRefused(f"{name} is not a JSON value")


_PLENTY = 512
"""With this many tokens left, the shortest call of each tool is assumed to fit, and its schema is not read."""


class CallWalk:
    """One response. Get the next piece with `next`, then pass its text to `take`."""

    def __init__(self, calls: CallSet) -> None:
        self._writer = AnswerWriter(calls)
        self._writing = self._writer.answer()
        self._wanted: Wanted | None = next(self._writing)
        self._ahead = ""
        """Text that is written already, but not consumed by the writer yet."""
        self._owed = ""
        """Forced text that no piece has returned yet."""
        self._piece: Piece | None = None
        self._text = ""

    @property
    def text(self) -> str:
        return self._text

    def next(self, *, tokens_left: int) -> Piece | None:
        """The next piece, sized to the tokens left; None once only the end of text may come."""
        self._settle(tokens_left)
        chosen = None if self._owed or self._wanted is None else self._chosen(self._wanted, tokens_left)
        self._piece = Piece(forced=self._owed) if self._owed else chosen
        return self._piece

    def take(self, text: str) -> None:
        """Accept the text of the piece, with the first bytes of what follows where one token has both."""
        piece, self._piece = self._piece, None
        try:
            self._take(piece, text)
            self._settle(None)
        except TextRefused as refusal:
            raise ToolError(
                f"The text {text!r} may not follow {self._text[-60:]!r}: {refusal}.",
                code=ErrorCode.GRAMMAR_REFUSED,
                instruction="Constrain the model by the grammar of the piece, and pass back exactly what it wrote.",
            ) from refusal
        self._text += text

    def _take(self, piece: Piece | None, text: str) -> None:
        if piece is None:
            raise TextRefused("no piece was requested, or the response is complete")
        match self._wanted:
            case _ if piece.forced is not None:
                if text != piece.forced:
                    raise TextRefused(f"only {piece.forced!r} may come")
                self._owed = ""
            case Choice():
                self._ahead += text
            case StringContent() as wanted:
                end, self._owed = inside_end(text, wanted.shortest, wanted.longest)
                self._ahead = text[end:]
                self._go_on()
            case FreeValue() as wanted:
                self._ahead = text[free_end(text, wanted.shape, self._writer.named) :]
                self._go_on()
            case _:
                raise TextRefused("the response is complete")

    def _settle(self, tokens_left: int | None) -> None:
        """Advance to the next choice, collecting forced text on the way."""
        while self._wanted is not None:
            left = None if tokens_left is None else tokens_left - len(self._owed.encode())
            match self._wanted:
                case Forced(text=text):
                    self._write(text)
                    self._go_on()
                case Choice() as choice if (number := self._decided(choice, left)) is not None:
                    self._go_on(number)
                case StringContent(shortest=0, rest=rest) if left is not None and left - rest - _COMPLETION < 1:
                    # It could not be completed if it was cut.
                    self._owed += '"'
                    self._go_on()
                case _:
                    return

    def _write(self, text: str) -> None:
        same = min(len(text), len(self._ahead))
        if text[:same] != self._ahead[:same]:
            raise TextRefused(f"only {text!r} may come")
        self._owed += text[same:]
        self._ahead = self._ahead[same:]

    def _go_on(self, number: int = 0) -> None:
        try:
            self._wanted = self._writing.send(number)
        except StopIteration:
            self._wanted = None
            if self._ahead:
                raise TextRefused("the response is complete before the text ends") from None

    def _decided(self, choice: Choice, left: int | None) -> int | None:
        """The number of the chosen option; None while there are several, whose common prefix is owed."""
        options = self._open_options(choice, left)
        if len(options) == 1:
            return choice.options.index(options[0])
        common = "" if choice.names else common_beginning(option.look for option in options)
        self._owed += common[len(self._ahead) :]
        self._ahead = max(common, self._ahead, key=len)
        return None

    def _open_options(self, choice: Choice, left: int | None) -> list[Option]:
        begun = self._ahead
        options = [each for each in choice.options if each.look.startswith(begun) or begun.startswith(each.look)]
        if not options:
            raise TextRefused("it starts none of the allowed texts")
        if left is None or (choice.names and left >= _PLENTY):
            return options
        fitting = _fitting(options, left + len(begun.encode()))
        if not fitting:
            _check_space(min(each.need() for each in options), left)
        return fitting

    def _chosen(self, wanted: Wanted, tokens_left: int) -> Piece:
        match wanted:
            case Choice():
                return choice_piece(self._open_options(wanted, tokens_left), len(self._ahead), tokens_left)
            case StringContent(shortest=shortest, rest=rest):
                _check_space(shortest + 1 + rest, tokens_left)
                return inside_piece(wanted, tokens_left)
            case FreeValue(shape=shape, rest=rest):
                _check_space(self._writer.least(shape) + rest, tokens_left)
                return free_piece(wanted, self._writer.named, tokens_left)
            case Forced():
                raise AssertionError("forced text is collected before")


def _check_space(need: int, left: int) -> None:
    if need > left:
        raise ToolError(
            f"No call fits into the {left} tokens left; the shortest may require {need}.",
            code=ErrorCode.GRAMMAR_REFUSED,
            instruction="Allow more tokens for the response, or offer a tool with fewer arguments.",
            fields={"needed": need, "left": left},
        )
