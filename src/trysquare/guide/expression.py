"""Expressions that select content: a small language, parsed without any I/O.

    expression = part *("," part)          empty parts are skipped; at least one must be left
    part       = ["-"] operand *("&" operand)
    operand    = "#" tag | name ["/" [pattern *("+" pattern)]]

`lang/python+rust,docs/api,guidelines` asks for three things in order. A part that starts with `-` takes documents
away from the whole answer; `&` keeps only documents that both sides hold; `#tag` holds every document with that tag.
Only the first `/` of an operand separates; whitespace around every piece is dropped, and so are empty patterns.
Any text is either an expression or an `ExpressionError` with the position where it went wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from trysquare.core.errors import ErrorCode, ToolError

MAX_LENGTH = 10_000
MAX_OPERANDS = 500
"""Names, tags and patterns of one expression."""


class ExpressionError(ToolError):
    """A text that is not an expression, with the position of the problem."""

    default_code = ErrorCode.VALIDATION_INVALID_PARAM

    def __init__(self, message: str, *, position: int, instruction: str | None = None) -> None:
        super().__init__(
            f"{message} (at character {position + 1})", instruction=instruction, fields={"position": position}
        )
        self.position = position


@dataclass(frozen=True, kw_only=True, slots=True)
class Named:
    """A category or collection by name, with the patterns asked for. No patterns means its own."""

    name: str
    patterns: tuple[str, ...] = ()
    position: int = 0

    def __str__(self) -> str:
        return f"{self.name}/{'+'.join(self.patterns)}" if self.patterns else self.name


@dataclass(frozen=True, kw_only=True, slots=True)
class Tagged:
    """Every document with a tag."""

    tag: str
    position: int = 0

    def __str__(self) -> str:
        return f"#{self.tag}"


Operand: TypeAlias = Named | Tagged


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Operands that a document must all fit; added to the answer, or taken away from it."""

    operands: tuple[Operand, ...]
    exclude: bool = False

    def __str__(self) -> str:
        return ("-" if self.exclude else "") + " & ".join(str(operand) for operand in self.operands)


@dataclass(frozen=True, kw_only=True, slots=True)
class Expression:
    """A whole request: its parts, in order."""

    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return ", ".join(str(part) for part in self.parts)


def parse_expression(text: str) -> Expression:
    """Read a text as an expression, or raise `ExpressionError`."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"The expression is longer than {MAX_LENGTH} characters", position=MAX_LENGTH)
    parts = tuple(_part(piece, start) for piece, start in _split(text, 0, ",") if piece)
    if not parts:
        raise ExpressionError(
            "The expression is empty", position=0, instruction="Name a category or collection, such as `lang/python`."
        )
    operands = [operand for part in parts for operand in part.operands]
    if sum(max(1, len(each.patterns)) if isinstance(each, Named) else 1 for each in operands) > MAX_OPERANDS:
        raise ExpressionError(f"The expression has more than {MAX_OPERANDS} names, tags and patterns", position=0)
    if all(part.exclude for part in parts):
        raise ExpressionError(
            "The expression only excludes",
            position=0,
            instruction="Name first what to take, then with `-` what to leave out: `lang,-lang/draft*`.",
        )
    return Expression(parts=parts)


def with_pattern(expression: Expression, pattern: str) -> Expression:
    """Apply a second argument's pattern to each operand that has none; one that has its own refuses it."""
    for mark in ",&":
        if mark in pattern:
            raise ExpressionError(
                f"`pattern` cannot hold `{mark}`",
                position=pattern.index(mark),
                instruction="Write several patterns with `+`, or put everything into `expression`.",
            )
    patterns = _patterns(pattern)
    if not patterns:
        return expression
    if len(patterns) > MAX_OPERANDS:
        raise ExpressionError(f"`pattern` has more than {MAX_OPERANDS} patterns", position=0)
    parts = (
        replace(part, operands=tuple(_patterned(operand, patterns) for operand in part.operands))
        for part in expression.parts
    )
    return Expression(parts=tuple(parts))


def _patterned(operand: Operand, patterns: tuple[str, ...]) -> Operand:
    if isinstance(operand, Tagged):
        return operand
    if operand.patterns:
        raise ExpressionError(
            f"`{operand}` has a pattern of its own, so `pattern` cannot be given as well",
            position=operand.position,
            instruction=f"Leave `pattern` out, or ask for `{operand.name}` without one.",
        )
    return replace(operand, patterns=patterns)


def _stripped(raw: str, start: int) -> tuple[str, int]:
    """A text without surrounding whitespace, and its position."""
    text = raw.strip()
    return text, start + raw.find(text)


def _split(text: str, start: int, separator: str) -> Iterator[tuple[str, int]]:
    for raw in text.split(separator):
        yield _stripped(raw, start)
        start += len(raw) + len(separator)


def _patterns(text: str) -> tuple[str, ...]:
    return tuple(pattern for pattern, _ in _split(text, 0, "+") if pattern)


def _part(text: str, start: int) -> Part:
    exclude = text.startswith("-")
    if exclude:
        text, start = _stripped(text[1:], start + 1)
    return Part(operands=tuple(_operand(*each) for each in _split(text, start, "&")), exclude=exclude)


def _operand(text: str, start: int) -> Operand:
    if not text:
        raise ExpressionError("A name or a `#tag` is missing", position=start)
    if text.startswith("#"):
        tag, at = _stripped(text[1:], start + 1)
        if not tag:
            raise ExpressionError("The tag after `#` is missing", position=at)
        return Tagged(tag=tag, position=at)
    head, _, tail = text.partition("/")
    name = head.strip()
    if not name:
        raise ExpressionError(
            "The name before `/` is missing",
            position=start,
            instruction="Write the category first, such as `lang/python`.",
        )
    return Named(name=name, patterns=_patterns(tail), position=start)
