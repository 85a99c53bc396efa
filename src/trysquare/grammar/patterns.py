"""Patterns: the regular expressions of schemas, read into what a string says.

Schemas mean ECMAScript's expressions; most validators in Python use Python's. What both understand alike is read.
Where a class differs between them in a few odd characters, only the characters that both take are in it. What only a
backtracking engine can do is refused.
"""

from __future__ import annotations

from trysquare.grammar.expressions import (
    EMPTY,
    LAST_CODE_POINT,
    Chars,
    Expression,
    Ranges,
    chars,
    in_sequence,
    inverted,
    merged,
    one_of,
    repeated,
)

DIGITS: Ranges = ((48, 57),)
WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
SPACE_FOR_BOTH: Ranges = (
    (9, 13), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip
SPACE_FOR_EITHER = merged((*SPACE_FOR_BOTH, (0x1C, 0x1F), (0x85, 0x85), (0xFEFF, 0xFEFF)))
LINE_ENDS: Ranges = ((10, 10), (13, 13), (0x2028, 0x2029))
CLASSES: dict[str, Ranges] = {"d": DIGITS, "w": WORD, "s": SPACE_FOR_BOTH, "S": inverted(SPACE_FOR_EITHER)}
CONTROLS = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "0": 0}
ANY_TEXT = repeated(Chars(((0, LAST_CODE_POINT),)))
MOST_REPEATS = 10_000


class PatternRefused(Exception):
    """Says what in a pattern cannot be read."""


def read_pattern(pattern: str) -> Expression:
    """What a string says in which the pattern is found."""
    return _PatternReader(pattern).read()


class _PatternReader:
    """Reads a pattern from left to right; `_at` is where it is."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def read(self) -> Expression:
        found = self._alternatives(top=True)
        if self._at < len(self._pattern):
            raise PatternRefused("a `)` closes nothing")
        return found

    def _peek(self, count: int = 1) -> str:
        return self._pattern[self._at : self._at + count]

    def _take(self, text: str) -> bool:
        if self._pattern.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _next(self) -> str:
        if self._at >= len(self._pattern):
            raise PatternRefused("it ends in the middle")
        self._at += 1
        return self._pattern[self._at - 1]

    def _alternatives(self, *, top: bool = False) -> Expression:
        options = [self._branch(top=top)]
        while self._take("|"):
            options.append(self._branch(top=top))
        return one_of(options)

    def _branch(self, *, top: bool) -> Expression:
        """One alternative. At the top, text may surround it where it is not anchored."""
        anchored = self._take("^")
        if anchored and not top:
            raise PatternRefused("`^` inside a group")
        parts: list[Expression] = []
        while self._peek() and self._peek() not in "|)$":
            parts.append(self._piece())
        ended = self._take("$")
        if ended and (not top or self._peek() not in ("", "|")):
            raise PatternRefused("`$` before the end")
        if not top:
            return in_sequence(*parts)
        return in_sequence(EMPTY if anchored else ANY_TEXT, *parts, EMPTY if ended else ANY_TEXT)

    def _piece(self) -> Expression:
        part = self._atom()
        fewest, most = self._quantity()
        if most is not None and most < fewest:
            raise PatternRefused("a quantity whose bounds are the wrong way round")
        if self._peek() in ("?", "+") and (fewest, most) != (1, 1):
            self._lazy()
        return repeated(part, fewest, most)

    def _lazy(self) -> None:
        """A lazy quantity allows the same texts; a possessive one does not, and is Python's alone."""
        if self._next() == "+":
            raise PatternRefused("possessive quantities")

    def _quantity(self) -> tuple[int, int | None]:
        if self._take("*"):
            return 0, None
        if self._take("+"):
            return 1, None
        if self._take("?"):
            return 0, 1
        return self._counted() if self._peek() == "{" else (1, 1)

    def _counted(self) -> tuple[int, int | None]:
        end = self._pattern.find("}", self._at)
        fewest, comma, most = self._pattern[self._at + 1 : max(end, 0)].partition(",")
        if not fewest.isdecimal() or (most and not most.isdecimal()):
            raise PatternRefused("a `{` that is no quantity; write `\\{`")
        self._at = end + 1
        if max(int(fewest), int(most or 0)) > MOST_REPEATS:
            raise PatternRefused(f"more than {MOST_REPEATS} repetitions")
        return int(fewest), (int(most) if most else None) if comma else int(fewest)

    def _atom(self) -> Expression:
        char = self._next()
        if char == "(":
            return self._group()
        if char == "[":
            return chars(self._class())
        if char == ".":
            return chars(inverted(LINE_ENDS))
        if char == "\\":
            return chars(self._escape())
        if char in "*+?^{":
            raise PatternRefused(f"`{char}` has nothing to repeat" if char in "*+?" else f"`{char}` in the middle")
        return chars([(ord(char), ord(char))])

    def _group(self) -> Expression:
        if self._take("?"):
            self._group_kind()
        inner = self._alternatives()
        if not self._take(")"):
            raise PatternRefused("a `(` that is not closed")
        return inner

    def _group_kind(self) -> None:
        if self._take(":"):
            return
        named = self._take("<") and self._peek() not in ("=", "!")
        end = self._pattern.find(">", self._at)
        if not named or end < 0:
            raise PatternRefused("looking ahead or behind, and flags")
        self._at = end + 1

    def _escape(self, *, within: bool = False) -> Ranges:
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

    def _code_point(self, kind: str) -> Ranges:
        digits = self._peek(2 if kind == "x" else 4)
        if len(digits) != (2 if kind == "x" else 4) or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
            raise PatternRefused(f"`\\{kind}` without its hexadecimal digits")
        self._at += len(digits)
        point = int(digits, 16)
        if 0xD800 <= point <= 0xDFFF:
            raise PatternRefused("halves of surrogate pairs")
        return ((point, point),)

    def _class(self) -> Ranges:
        negated = self._take("^")
        if self._peek() == "]":
            raise PatternRefused("an empty class, which the two dialects read differently")
        found: list[tuple[int, int]] = []
        while not self._take("]"):
            found += self._class_part()
        return inverted(found) if negated else merged(found)

    def _class_part(self) -> Ranges:
        low = self._class_item()
        if self._peek() != "-" or self._peek(2) == "-]":
            return low
        self._at += 1
        high = self._class_item()
        if len(low) != 1 or len(high) != 1 or low[0][0] != low[0][1] or high[0][0] != high[0][1]:
            raise PatternRefused("a range from or to a class")
        if low[0][0] > high[0][0]:
            raise PatternRefused("a range whose ends are the wrong way round")
        return ((low[0][0], high[0][0]),)

    def _class_item(self) -> Ranges:
        char = self._next()
        if char == "[":
            raise PatternRefused("`[` inside a class; write `\\[`")
        if char == "\\":
            return self._escape(within=True)
        return ((ord(char), ord(char)),)
