"""GBNF reading: grammar files, of whoever wrote them, as rules."""

from __future__ import annotations

import re

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.grammar.expressions import (
    LAST_CODE_POINT,
    Expression,
    Grammar,
    Rule,
    Text,
    chars,
    in_sequence,
    inverted,
    one_of,
    repeated,
)

SPACE = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
SPACE_AND_LINES = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
NAME = re.compile(r"[A-Za-z0-9-]+")
COUNT = re.compile(r"\{[ \t]*([0-9]+)[ \t]*(?:(,)[ \t]*([0-9]*)[ \t]*)?\}")
ESCAPES = {"t": 9, "r": 13, "n": 10, "\\": 92, '"': 34, "[": 91, "]": 93}
HEXADECIMAL = {"x": 2, "u": 4, "U": 8}
DEEPEST = 200


def read_gbnf(text: str, *, source: str = "the grammar") -> Grammar:
    """The rules of a GBNF file. A `ToolError` says where it cannot be read."""
    return _GbnfReader(text, source).read()


class _GbnfReader:
    """Reads a file from its start to its end; `_at` is where it is."""

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source
        self._at = 0
        self._depth = 0

    def read(self) -> Grammar:
        rules: dict[str, Expression] = {}
        self._skip(lines=True)
        while self._at < len(self._text):
            place = self._at
            name = self._name("the name of a rule, of letters, digits and hyphens")
            if name in rules:
                raise self._wrong(f"a name that is not taken; there is a rule `{name}` already", place)
            self._skip()
            self._expect("::=")
            self._skip(lines=True)
            rules[name] = self._alternatives()
            self._skip(lines=True)
        return Grammar(rules=rules)

    def _wrong(self, expected: str, place: int | None = None) -> ToolError:
        here = self._at if place is None else place
        line = self._text.count("\n", 0, here) + 1
        column = here - (self._text.rfind("\n", 0, here) + 1) + 1
        found = repr(self._text[here : here + 12]) if here < len(self._text) else "the end"
        return ToolError(
            f"{self._source}, line {line}, column {column}: expected {expected}, found {found}.",
            code=ErrorCode.GRAMMAR_UNSUPPORTED,
            instruction="Correct the grammar at that place.",
            fields={"line": line, "column": column},
        )

    def _skip(self, *, lines: bool = False) -> None:
        found = (SPACE_AND_LINES if lines or self._depth else SPACE).match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._wrong(f"`{text}`")

    def _name(self, expected: str) -> str:
        found = NAME.match(self._text, self._at)
        if found is None:
            raise self._wrong(expected)
        self._at = found.end()
        return found.group()

    def _alternatives(self) -> Expression:
        options = [self._sequence()]
        while self._take("|"):
            self._skip(lines=True)
            options.append(self._sequence())
        return one_of(options)

    def _sequence(self) -> Expression:
        parts: list[Expression] = []
        while self._peek() and self._peek() not in "|)\r\n":
            if NAME.match(self._text, self._at) and self._starts_rule():
                break
            parts.append(self._repeated(self._symbol()))
        return in_sequence(*parts)

    def _starts_rule(self) -> bool:
        """Whether a name is the head of the next rule, as inside parentheses that were never closed."""
        return re.compile(r"[A-Za-z0-9-]+[ \t]*::=").match(self._text, self._at) is not None

    def _symbol(self) -> Expression:
        char = self._peek()
        if char == '"':
            return self._literal()
        if char == "[":
            return self._class()
        if char == "(":
            return self._group()
        if char == ".":
            self._at += 1
            return chars([(0, LAST_CODE_POINT)])
        if char in "<!":
            raise self._wrong("text; tokens of a model are not understood here")
        return Rule(self._name("a text, a class, a group or the name of a rule"))

    def _group(self) -> Expression:
        if self._depth >= DEEPEST:
            raise self._wrong(f"no more than {DEEPEST} groups inside one another")
        self._at += 1
        self._depth += 1
        self._skip()
        inner = self._alternatives()
        self._expect(")")
        self._depth -= 1
        return inner

    def _repeated(self, part: Expression) -> Expression:
        self._skip()
        while self._peek() and self._peek() in "*+?{":
            fewest, most = self._quantity()
            part = repeated(part, fewest, most)
            self._skip()
        return part

    def _quantity(self) -> tuple[int, int | None]:
        short: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if self._peek() in short:
            self._at += 1
            return short[self._text[self._at - 1]]
        found = COUNT.match(self._text, self._at)
        if found is None:
            raise self._wrong("a quantity such as `{2}`, `{2,}` or `{2,5}`")
        fewest, comma, most = int(found[1]), found[2], found[3]
        if comma and most and int(most) < fewest:
            raise self._wrong("a quantity whose bounds are the right way round")
        self._at = found.end()
        return fewest, (int(most) if most else None) if comma else fewest

    def _literal(self) -> Expression:
        self._at += 1
        found: list[str] = []
        while not self._take('"'):
            found.append(chr(self._character()))
        return Text("".join(found))

    def _class(self) -> Expression:
        self._at += 1
        negated = self._take("^")
        found: list[tuple[int, int]] = []
        while not self._take("]"):
            low = self._character()
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                found.append((low, self._character()))
            else:
                found.append((low, low))
        return chars(inverted(found) if negated else [ends for ends in found if ends[0] <= ends[1]])

    def _character(self) -> int:
        char = self._peek()
        if not char or char in "\r\n":
            raise self._wrong("the end of the text or class, on the same line")
        self._at += 1
        if char != "\\":
            return ord(char)
        kind = self._peek()
        self._at += 1
        if kind in ESCAPES:
            return ESCAPES[kind]
        return self._hexadecimal(kind)

    def _hexadecimal(self, kind: str) -> int:
        size = HEXADECIMAL.get(kind, 0)
        digits = self._text[self._at : self._at + size]
        if not size or not re.fullmatch(r"[0-9A-Fa-f]+", digits) or len(digits) != size:
            raise self._wrong('an escape that GBNF knows: \\t \\r \\n \\\\ \\" \\[ \\] \\xHH \\uHHHH \\UHHHHHHHH')
        self._at += size
        if int(digits, 16) > LAST_CODE_POINT:
            raise self._wrong("a code point up to 10FFFF", self._at - size)
        return int(digits, 16)
