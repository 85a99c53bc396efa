"""Regex text: regular expressions written for the engines that take them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from trysquare.grammar.expressions import Chars, Choice, Expression, Ranges, Repeat, Sequence, Text


def regex_text(expression: Expression, *, point: Callable[[int], str]) -> str:
    """The expression as a regular expression; `point` writes a character that is not plain."""
    match expression:
        case Text(text):
            return "".join(_character(ord(char), point) for char in text)
        case Chars(ranges):
            return _class(ranges, point)
        case Sequence(parts):
            return "".join(_grouped(part, point) for part in parts)
        case Choice(options):
            return "|".join(regex_text(option, point=point) for option in options)
        case Repeat(part, fewest, most):
            return _atom(part, point) + quantity(fewest, most)
        case _:
            raise ValueError("a regular expression has no rules")


def quantity(fewest: int, most: int | None) -> str:
    """How often, as regular expressions and GBNF both write it."""
    short: dict[tuple[int, int | None], str] = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    if (fewest, most) in short:
        return short[fewest, most]
    return f"{{{fewest}}}" if fewest == most else f"{{{fewest},{'' if most is None else most}}}"


def _grouped(part: Expression, point: Callable[[int], str]) -> str:
    inner = regex_text(part, point=point)
    return f"(?:{inner})" if isinstance(part, Choice) else inner


def _atom(part: Expression, point: Callable[[int], str]) -> str:
    inner = regex_text(part, point=point)
    single = isinstance(part, Chars) or (isinstance(part, Text) and len(part.text) == 1)
    return inner if single else f"(?:{inner})"


def _class(ranges: Ranges, point: Callable[[int], str]) -> str:
    inner = "".join(
        _character(low, point) if low == high else f"{_character(low, point)}-{_character(high, point)}"
        for low, high in ranges
    )
    return f"[{inner}]"


def _character(code: int, point: Callable[[int], str]) -> str:
    char = chr(code)
    return char if char.isascii() and char.isalnum() else point(code)


def python_point(code: int) -> str:
    """A character as Python's expressions escape it."""
    return f"\\U{code:08x}"


def rust_point(code: int) -> str:
    """A character as llguidance's expressions escape it, between the slashes of a Lark file."""
    if chr(code) in " !\"#%&',:;<=>@_`~":
        return chr(code)
    return f"\\{chr(code)}" if chr(code) in "\\.+*?()|[]{}^$-" else f"\\x{{{code:x}}}"


@lru_cache(maxsize=512)
def _compiled(expression: Expression) -> re.Pattern[str]:
    return re.compile(regex_text(expression, point=python_point), re.DOTALL)


def says(expression: Expression, text: str) -> bool:
    """Whether a text, as a whole, is what the expression allows."""
    return _compiled(expression).fullmatch(text) is not None
