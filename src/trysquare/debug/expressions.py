"""Expressions in the debuggee's language: which ones run no code, plain paths, and log messages."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from trysquare.core.errors import InvalidArguments

_TOKEN = re.compile(
    r"""\s*(?:(?P<name>[A-Za-z_$][\w$]*)|(?P<literal>\d[\w.]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"""|(?P<sign>->|===|!==|==|!=|<=|>=|&&|\|\||[-+*/%<>!.\[\]()]))""",
    re.ASCII,
)
_STEP = re.compile(r"""\s*(?:(?:\.|->|\?\.)?\s*([A-Za-z_$@][\w$]*)|\[\s*(\d+|"[^"\\]*"|'[^'\\]*')\s*\])\s*""", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpressionRules:
    """Expressions of a language that run no code of the program, whatever their names stand for."""

    signs: frozenset[str] | None = None
    """Operators that never run code; None where none of them can be overloaded."""
    calls: frozenset[str] = frozenset()
    """Names that look like a call but are operators, such as `sizeof`."""
    suffixes: tuple[str, ...] = ()
    """Suffixes of the source files in which the rules hold; empty for all files."""


def is_plain(expression: str, rules: Sequence[ExpressionRules], *, file: str = "") -> bool:
    """Whether an expression runs no code. Without rules that hold in the file, none is plain."""
    known = next((each for each in rules if not each.suffixes or file.endswith(each.suffixes)), None)
    text = expression.strip()
    if known is None or any(sign in text for sign in ("/*", "//", "++", "--")):
        return False
    previous, position = None, 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None or not _may_follow(token, previous, known):
            return False
        previous, position = token, token.end()
    return previous is not None


def _may_follow(token: re.Match[str], previous: re.Match[str] | None, rules: ExpressionRules) -> bool:
    """Whether a token may stand after another, so that it is neither a call nor a command of the debugger."""
    sign = token["sign"]
    if sign is None:
        return previous is None or previous["sign"] is not None
    if rules.signs is not None and sign not in rules.signs:
        return False
    is_call = sign == "(" and previous is not None and previous["sign"] in (None, ")", "]")
    return not is_call or (previous is not None and previous["name"] in rules.calls)


def path_of(expression: str) -> list[str] | None:
    """The names and indexes of a plain path such as `a.b[0].c`; None for any other expression."""
    path: list[str] = []
    position, text = 0, expression.strip()
    while position < len(text):
        found = _STEP.match(text, position)
        is_joined = found is not None and text[position : found.end()].lstrip()[:1] in ".-?["
        if found is None or bool(path) is not is_joined:
            return None
        path.append(found[1] or found[2].strip("\"'"))
        position = found.end()
    return path or None


def parse_log_message(message: str) -> list[tuple[bool, str]]:
    """The texts and the expressions (True) of a log message. An expression may contain braces; `{{` is a brace."""
    parts: list[tuple[bool, str]] = []
    text, position = "", 0
    while position < len(message):
        if message.startswith(("{{", "}}"), position):
            text, position = text + message[position], position + 2
        elif message[position] == "{":
            end = _closing_brace(message, position + 1)
            parts += [(False, text), (True, message[position + 1 : end].strip())]
            text, position = "", end + 1
        else:
            text, position = text + message[position], position + 1
    return [part for part in [*parts, (False, text)] if part[1]]


def _closing_brace(message: str, start: int) -> int:
    """The first closing brace up to which the text parses; for another language, simply the first one."""
    ends = [index for index in range(start, len(message)) if message[index] == "}"]
    for end in ends:
        try:
            ast.parse(message[start:end].strip(), mode="eval")
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
        return end
    if ends and message[start : ends[0]].strip():
        return ends[0]
    raise InvalidArguments(
        f"Invalid log message `{message[:80]}`: a brace is not closed, or is empty.",
        instruction="Write expressions in braces, such as `i is {i}`, and a brace itself twice: {{.",
    )
