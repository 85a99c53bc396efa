"""Regular expressions: parse, bound, write."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from math import inf

from trysquare.grammar.text import expressions as ex

MOST_SPLITS = 200
"""Maximum number of ways to divide a length between two parts."""


def of_length(expression: ex.Expression, shortest: int, longest: float) -> ex.Expression | None:
    """The texts with these lengths; None where that would take too many rules."""
    least, most = ex.length_of(expression)
    if least > longest or most < shortest:
        return ex.NEVER
    if least >= shortest and most <= longest:
        return expression
    match expression:
        case ex.Choice(options):
            found = [of_length(option, shortest, longest) for option in options]
            return None if None in found else ex.one_of(option for option in found if option is not None)
        case ex.Repeat(part, fewest, highest):
            return _repeat_of_length(part, fewest, highest, shortest, longest)
        case ex.Sequence(parts):
            return _sequence_of_length(parts, shortest, longest)
        case _:
            return expression


def _repeat_of_length(
    part: ex.Expression, fewest: int, highest: int | None, shortest: int, longest: float
) -> ex.Expression | None:
    size, most = ex.length_of(part)
    if size != most or not size:
        return None
    low = max(fewest, -(-shortest // size))
    high = min(inf if highest is None else highest, longest // size)
    return ex.repeated(part, low, None if high == inf else int(high))


def _sequence_of_length(parts: tuple[ex.Expression, ...], shortest: int, longest: float) -> ex.Expression | None:
    """The first part of varying length takes each of its lengths, the others the rest."""
    index = next(index for index, part in enumerate(parts) if len(set(ex.length_of(part))) > 1)
    before, part, after = parts[:index], parts[index], ex.in_sequence(*parts[index + 1 :])
    fixed = ex.length_of(ex.in_sequence(*before))[0]
    if len(set(ex.length_of(after))) == 1:
        rest = fixed + ex.length_of(after)[0]
        found = of_length(part, max(0, shortest - rest), longest - rest)
        return None if found is None else ex.in_sequence(*before, found, after)
    shortest, longest = max(0, shortest - fixed), longest - fixed
    least, most = ex.length_of(part)
    last = min(most, longest - ex.length_of(after)[0])
    if last - least > MOST_SPLITS:
        return None
    ways: list[ex.Expression] = []
    for size in range(least, int(last) + 1):
        here = of_length(part, size, size)
        there = of_length(after, max(0, shortest - size), longest - size)
        if here is None or there is None:
            return None
        ways.append(ex.in_sequence(here, there))
    return ex.in_sequence(*before, ex.one_of(ways)) if len(ways) - ways.count(ex.NEVER) <= MOST_SPLITS else None


DIGITS: ex.Ranges = ((48, 57),)
WORD: ex.Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
SPACE_FOR_BOTH: ex.Ranges = (
    (9, 13), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip
SPACE_FOR_EITHER = ex.merged((*SPACE_FOR_BOTH, (0x1C, 0x1F), (0x85, 0x85), (0xFEFF, 0xFEFF)))
LINE_ENDS: ex.Ranges = ((10, 10), (13, 13), (0x2028, 0x2029))
CLASSES: dict[str, ex.Ranges] = {"d": DIGITS, "w": WORD, "s": SPACE_FOR_BOTH, "S": ex.inverted(SPACE_FOR_EITHER)}
CONTROLS = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "0": 0}
ANY_TEXT = ex.repeated(ex.Chars(((0, ex.LAST_CODE_POINT),)))
MOST_REPEATS = 10_000
QUANTITIES: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class PatternRefused(Exception):
    """An unsupported part of a pattern."""


def read_pattern(pattern: str) -> ex.Expression:
    """The strings in which a pattern matches.

    Schemas mean ECMAScript patterns, most Python validators use Python's: only what both read alike is supported. A
    class that differs between them has only the characters of both. What requires backtracking is rejected.
    """
    return _PatternReader(pattern).read()


class Scanner:
    """Position of a recursive-descent parser in its text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def _peek(self, count: int = 1) -> str:
        return self._text[self._at : self._at + count]

    def _accept(self, text: str) -> bool:
        found = self._text.startswith(text, self._at)
        self._at += len(text) * found
        return found


class _PatternReader(Scanner):
    def read(self) -> ex.Expression:
        found = self._alternatives(top=True)
        if self._at < len(self._text):
            raise PatternRefused("an unmatched `)`")
        return found

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise PatternRefused("an incomplete pattern")
        self._at += 1
        return self._text[self._at - 1]

    def _alternatives(self, *, top: bool = False) -> ex.Expression:
        options = [self._branch(top=top)]
        while self._accept("|"):
            options.append(self._branch(top=top))
        return ex.one_of(options)

    def _branch(self, *, top: bool) -> ex.Expression:
        """One alternative; at the top level, any text may surround it where it is not anchored."""
        anchored = self._accept("^")
        if anchored and not top:
            raise PatternRefused("`^` inside a group")
        parts: list[ex.Expression] = []
        while self._peek() and self._peek() not in "|)$":
            parts.append(self._piece())
        ended = self._accept("$")
        if ended and (not top or self._peek() not in ("", "|")):
            raise PatternRefused("`$` before the end")
        if not top:
            return ex.in_sequence(*parts)
        return ex.in_sequence(ex.EMPTY if anchored else ANY_TEXT, *parts, ex.EMPTY if ended else ANY_TEXT)

    def _piece(self) -> ex.Expression:
        part = self._atom()
        fewest, most = self._quantity()
        if most is not None and most < fewest:
            raise PatternRefused("a quantity with reversed bounds")
        if self._peek() in ("?", "+") and (fewest, most) != (1, 1) and self._next() == "+":
            # A lazy quantity matches the same texts; a possessive one does not, and only Python has it.
            raise PatternRefused("possessive quantities")
        return ex.repeated(part, fewest, most)

    def _quantity(self) -> tuple[int, int | None]:
        if self._peek() in QUANTITIES:
            return QUANTITIES[self._next()]
        return self._counted() if self._peek() == "{" else (1, 1)

    def _counted(self) -> tuple[int, int | None]:
        end = self._text.find("}", self._at)
        fewest, comma, most = self._text[self._at + 1 : max(end, 0)].partition(",")
        if not fewest.isdecimal() or (most and not most.isdecimal()):
            raise PatternRefused("a `{` that is not a quantity (write `\\{`)")
        self._at = end + 1
        if max(int(fewest), int(most or 0)) > MOST_REPEATS:
            raise PatternRefused(f"more than {MOST_REPEATS} repetitions")
        return int(fewest), (int(most) if most else None) if comma else int(fewest)

    def _atom(self) -> ex.Expression:
        char = self._next()
        if char == "(":
            return self._group()
        if char == "[":
            return ex.chars(self._class())
        if char == ".":
            return ex.chars(ex.inverted(LINE_ENDS))
        if char == "\\":
            return ex.chars(self._escape())
        if char in "*+?^{":
            raise PatternRefused(f"`{char}` has nothing to repeat" if char in "*+?" else f"`{char}` in the middle")
        return ex.chars([(ord(char), ord(char))])

    def _group(self) -> ex.Expression:
        if self._accept("?") and not self._accept(":"):
            self._skip_group_name()
        inner = self._alternatives()
        if not self._accept(")"):
            raise PatternRefused("an unclosed `(`")
        return inner

    def _skip_group_name(self) -> None:
        named = self._accept("<") and self._peek() not in ("=", "!")
        end = self._text.find(">", self._at)
        if not named or end < 0:
            raise PatternRefused("a lookaround or a flag")
        self._at = end + 1

    def _escape(self, *, within: bool = False) -> ex.Ranges:
        char = self._next()
        if char in CLASSES:
            return CLASSES[char]
        if char in "xu":
            return self._code_point(char)
        if char in CONTROLS and not (char == "0" and self._peek().isdecimal()):
            return ((CONTROLS[char], CONTROLS[char]),)
        if char == "b" and within:
            return ((8, 8),)
        if char.isalnum():
            raise PatternRefused(f"`\\{char}`")
        return ((ord(char), ord(char)),)

    def _code_point(self, kind: str) -> ex.Ranges:
        digits = self._peek(2 if kind == "x" else 4)
        if not re.fullmatch(r"[0-9a-fA-F]{2}" if kind == "x" else r"[0-9a-fA-F]{4}", digits):
            raise PatternRefused(f"`\\{kind}` without its hexadecimal digits")
        self._at += len(digits)
        point = int(digits, 16)
        if 0xD800 <= point <= 0xDFFF:
            raise PatternRefused("an unpaired surrogate")
        return ((point, point),)

    def _class(self) -> ex.Ranges:
        negated = self._accept("^")
        if self._peek() == "]":
            raise PatternRefused("an empty class, which dialects read differently,")
        found: list[tuple[int, int]] = []
        while not self._accept("]"):
            found += self._class_part()
        return ex.inverted(found) if negated else ex.merged(found)

    def _class_part(self) -> ex.Ranges:
        low = self._class_item()
        if self._peek() != "-" or self._peek(2) == "-]":
            return low
        self._at += 1
        high = self._class_item()
        if len(low) != 1 or len(high) != 1 or low[0][0] != low[0][1] or high[0][0] != high[0][1]:
            raise PatternRefused("a range from or to a class")
        if low[0][0] > high[0][0]:
            raise PatternRefused("a reversed range")
        return ((low[0][0], high[0][0]),)

    def _class_item(self) -> ex.Ranges:
        char = self._next()
        if char == "[":
            raise PatternRefused("`[` inside a class; write `\\[`")
        if char == "\\":
            return self._escape(within=True)
        return ((ord(char), ord(char)),)


def regex_text(expression: ex.Expression, *, point: Callable[[int], str]) -> str:
    """The expression as a regular expression; `point` escapes a character."""
    match expression:
        case ex.Text(text):
            return "".join(_character(ord(char), point) for char in text)
        case ex.Chars(ranges):
            return class_text(ranges, lambda code: _character(code, point))
        case ex.Sequence(parts):
            written = ((part, regex_text(part, point=point)) for part in parts)
            return "".join(f"(?:{inner})" if isinstance(part, ex.Choice) else inner for part, inner in written)
        case ex.Choice(options):
            return "|".join(regex_text(option, point=point) for option in options)
        case ex.Repeat(part, fewest, most):
            inner = regex_text(part, point=point)
            single = isinstance(part, ex.Chars) or (isinstance(part, ex.Text) and len(part.text) == 1)
            return (inner if single else f"(?:{inner})") + quantity(fewest, most)
        case _:
            raise ValueError("a regular expression has no rules")


def quantity(fewest: int, most: int | None) -> str:
    """A quantifier, as regular expressions and GBNF both write it."""
    for sign, counts in QUANTITIES.items():
        if counts == (fewest, most):
            return sign
    return f"{{{fewest}}}" if fewest == most else f"{{{fewest},{'' if most is None else most}}}"


def class_text(ranges: ex.Ranges, write: Callable[[int], str]) -> str:
    """A character class; `write` escapes a character in it."""
    return f"[{''.join(write(low) if low == high else f'{write(low)}-{write(high)}' for low, high in ranges)}]"


def _character(code: int, point: Callable[[int], str]) -> str:
    char = chr(code)
    return char if char.isascii() and char.isalnum() else point(code)


def rust_point(code: int) -> str:
    """A character escaped for llguidance, between the slashes of a Lark file."""
    if chr(code) in " !\"#%&',:;<=>@_`~":
        return chr(code)
    return f"\\{chr(code)}" if chr(code) in "\\.+*?()|[]{}^$-" else f"\\x{{{code:x}}}"


@lru_cache(maxsize=512)
def _compiled(expression: ex.Expression) -> re.Pattern[str]:
    return re.compile(regex_text(expression, point=lambda code: f"\\U{code:08x}"), re.DOTALL)


def says(expression: ex.Expression, text: str) -> bool:
    """Whether an expression matches a whole text."""
    return _compiled(expression).fullmatch(text) is not None
