"""GBNF parser, and checks of a grammar."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.grammar.text import expressions as ex
from trysquare.grammar.text.regex import QUANTITIES, Scanner

FindingKind: TypeAlias = Literal["missing root", "undefined", "left recursion", "never ends", "unreachable"]


@dataclass(frozen=True, kw_only=True, slots=True)
class GrammarFinding:
    """A problem of a rule."""

    kind: FindingKind
    rule: str
    text: str
    fatal: bool = True
    """Whether the grammar is unusable."""


def check_grammar(grammar: ex.Grammar) -> tuple[GrammarFinding, ...]:
    """All problems of a grammar."""
    return tuple(
        GrammarFinding(kind=kind, rule=rule, text=text, fatal=kind != "unreachable")
        for kind, rule, text in _problems(grammar)
    )


def fatal_errors(grammar: ex.Grammar) -> str:
    """The problems that make a grammar unusable, as one text; empty without any."""
    return " ".join(finding.text for finding in check_grammar(grammar) if finding.fatal)


def _problems(grammar: ex.Grammar) -> Iterable[tuple[FindingKind, str, str]]:
    rules, root = grammar.rules, grammar.root
    graph = {name: ex.rules_named(rule) for name, rule in rules.items()}
    if root not in rules:
        yield "missing root", root, f"The root rule `{root}` is missing."
    for name, named in graph.items():
        for missing in sorted(named - rules.keys()):
            yield "undefined", name, f"The rule `{name}` refers to the undefined rule `{missing}`."
    empty = _fixpoint(grammar, _may_be_empty)
    first = {name: _first_names(rule, empty) for name, rule in rules.items()}
    for name in rules:
        if name in ex.reachable(first, first[name]):
            yield "left recursion", name, f"The rule `{name}` is left-recursive."
    undefined = frozenset[str]().union(*graph.values()) - rules.keys()
    ending = _fixpoint(grammar, lambda rule, known: _matches_some(rule, known | undefined, lambda _: True))
    for name in (name for name in rules if name not in ending):
        yield "never ends", name, f"No text matches the rule `{name}`: every alternative leads back to it."
    reached = ex.reachable(graph, {root})
    for name in rules:
        if name not in reached and root in rules:
            yield "unreachable", name, f"The rule `{name}` is never used."


def _fixpoint(grammar: ex.Grammar, holds: Callable[[ex.Expression, frozenset[str]], bool]) -> frozenset[str]:
    """The rules for which a property holds, given those for which it is known to."""
    known: frozenset[str] = frozenset()
    while True:
        found = frozenset(name for name, rule in grammar.rules.items() if holds(rule, known))
        if found == known:
            return known
        known = found


def _matches_some(expression: ex.Expression, known: frozenset[str], terminal: Callable[[ex.Expression], bool]) -> bool:
    """Whether an expression can be derived from the known rules and from the terminals for which `terminal` holds."""
    match expression:
        case ex.Sequence(parts):
            return all(_matches_some(part, known, terminal) for part in parts)
        case ex.Choice(options):
            return any(_matches_some(option, known, terminal) for option in options)
        case ex.Repeat(part, fewest):
            return fewest == 0 or _matches_some(part, known, terminal)
        case ex.Rule(name):
            return name in known
        case _:
            return terminal(expression)


def _may_be_empty(expression: ex.Expression, empty: frozenset[str]) -> bool:
    return _matches_some(expression, empty, lambda terminal: terminal == ex.EMPTY)


def _first_names(expression: ex.Expression, empty: frozenset[str]) -> frozenset[str]:
    """The rules that an expression can start with."""
    match expression:
        case ex.Sequence(parts):
            found: frozenset[str] = frozenset()
            for part in parts:
                found |= _first_names(part, empty)
                if not _may_be_empty(part, empty):
                    break
            return found
        case ex.Choice(options):
            return frozenset(name for option in options for name in _first_names(option, empty))
        case ex.Repeat(part):
            return _first_names(part, empty)
        case ex.Rule(name):
            return frozenset({name})
        case _:
            return frozenset()


SPACE = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
SPACE_AND_LINES = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
NAME = re.compile(r"[A-Za-z0-9-]+")
RULE_HEAD = re.compile(rf"{NAME.pattern}[ \t]*::=")
COUNT = re.compile(r"\{[ \t]*([0-9]+)[ \t]*(?:(,)[ \t]*([0-9]*)[ \t]*)?\}")
ESCAPES = {"t": 9, "r": 13, "n": 10, "\\": 92, '"': 34, "[": 91, "]": 93}
HEXADECIMAL = {"x": 2, "u": 4, "U": 8}
DEEPEST = 200


def read_gbnf(text: str, *, source: str = "the grammar") -> ex.Grammar:
    """The rules of a GBNF file. A `ToolError` with the location where it is invalid."""
    return _GbnfReader(text, source).read()


class _GbnfReader(Scanner):
    def __init__(self, text: str, source: str) -> None:
        super().__init__(text)
        self._source = source
        self._depth = 0

    def read(self) -> ex.Grammar:
        rules: dict[str, ex.Expression] = {}
        self._skip(lines=True)
        while self._at < len(self._text):
            start = self._at
            name = self._name("the name of a rule, of letters, digits and hyphens")
            if name in rules:
                raise self._wrong(f"an unused name; the rule `{name}` is already defined", start)
            self._skip()
            self._expect("::=")
            self._skip(lines=True)
            rules[name] = self._alternatives()
            self._skip(lines=True)
        return ex.Grammar(rules=rules)

    def _wrong(self, expected: str, position: int | None = None) -> ToolError:
        here = self._at if position is None else position
        line = self._text.count("\n", 0, here) + 1
        column = here - (self._text.rfind("\n", 0, here) + 1) + 1
        found = repr(self._text[here : here + 12]) if here < len(self._text) else "the end of the file"
        return ToolError(
            f"{self._source}, line {line}, column {column}: expected {expected}, found {found}.",
            code=ErrorCode.GRAMMAR_UNSUPPORTED,
            instruction="Correct the grammar at this location.",
            fields={"line": line, "column": column},
        )

    def _skip(self, *, lines: bool = False) -> None:
        found = (SPACE_AND_LINES if lines or self._depth else SPACE).match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._wrong(f"`{text}`")

    def _name(self, expected: str) -> str:
        found = NAME.match(self._text, self._at)
        if found is None:
            raise self._wrong(expected)
        self._at = found.end()
        return found.group()

    def _alternatives(self) -> ex.Expression:
        options = [self._sequence()]
        while self._accept("|"):
            self._skip(lines=True)
            options.append(self._sequence())
        return ex.one_of(options)

    def _sequence(self) -> ex.Expression:
        parts: list[ex.Expression] = []
        while self._peek() and self._peek() not in "|)\r\n":
            if RULE_HEAD.match(self._text, self._at):
                break  # the next rule, as after unclosed parentheses
            parts.append(self._repeated(self._symbol()))
        return ex.in_sequence(*parts)

    def _symbol(self) -> ex.Expression:
        char = self._peek()
        if char == '"':
            return self._literal()
        if char == "[":
            return self._class()
        if char == "(":
            return self._group()
        if char == ".":
            self._at += 1
            return ex.chars([(0, ex.LAST_CODE_POINT)])
        if char in "<!":
            raise self._wrong("text; tokens of a model are not supported")
        return ex.Rule(self._name("a text, a class, a group or the name of a rule"))

    def _group(self) -> ex.Expression:
        if self._depth >= DEEPEST:
            raise self._wrong(f"at most {DEEPEST} nested groups")
        self._at += 1
        self._depth += 1
        self._skip()
        inner = self._alternatives()
        self._expect(")")
        self._depth -= 1
        return inner

    def _repeated(self, part: ex.Expression) -> ex.Expression:
        self._skip()
        while self._peek() and self._peek() in "*+?{":
            fewest, most = self._quantity()
            part = ex.repeated(part, fewest, most)
            self._skip()
        return part

    def _quantity(self) -> tuple[int, int | None]:
        if self._peek() in QUANTITIES:
            self._at += 1
            return QUANTITIES[self._text[self._at - 1]]
        found = COUNT.match(self._text, self._at)
        if found is None:
            raise self._wrong("a quantity such as `{2}`, `{2,}` or `{2,5}`")
        fewest, comma, most = int(found[1]), found[2], found[3]
        if comma and most and int(most) < fewest:
            raise self._wrong("a quantity whose lower bound is not above the upper one")
        self._at = found.end()
        return fewest, (int(most) if most else None) if comma else fewest

    def _literal(self) -> ex.Expression:
        self._at += 1
        found: list[str] = []
        while not self._accept('"'):
            found.append(chr(self._character()))
        return ex.Text("".join(found))

    def _class(self) -> ex.Expression:
        self._at += 1
        negated = self._accept("^")
        found: list[tuple[int, int]] = []
        while not self._accept("]"):
            low = self._character()
            is_range = self._peek() == "-" and self._peek(2) not in ("-]", "-")
            self._at += is_range
            found.append((low, self._character() if is_range else low))
        return ex.chars(ex.inverted(found) if negated else [ends for ends in found if ends[0] <= ends[1]])

    def _character(self) -> int:
        char = self._peek()
        if not char or char in "\r\n":
            raise self._wrong("the end of the text or class, on the same line")
        self._at += 1
        if char != "\\":
            return ord(char)
        kind = self._peek()
        self._at += 1
        return ESCAPES[kind] if kind in ESCAPES else self._hexadecimal(kind)

    def _hexadecimal(self, kind: str) -> int:
        size = HEXADECIMAL.get(kind, 0)
        digits = self._text[self._at : self._at + size]
        if not size or len(digits) != size or not re.fullmatch(r"[0-9A-Fa-f]+", digits):
            raise self._wrong('a GBNF escape: \\t \\r \\n \\\\ \\" \\[ \\] \\xHH \\uHHHH \\UHHHHHHHH')
        self._at += size
        if int(digits, 16) > ex.LAST_CODE_POINT:
            raise self._wrong("a code point up to 10FFFF", self._at - size)
        return int(digits, 16)
