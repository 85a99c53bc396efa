"""Guarding: what is refused before a program sees it: expressions that could run its code, and false hit conditions.

Python's expressions are read by our own walk over them (`recorder/evaluating.py`), which has the last word. Other
debuggers evaluate by themselves, so only what cannot run code in their language is let through.
"""

from __future__ import annotations

import re

from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.debug.log_messages import pieces_of
from trysquare.debug.names import ToolName
from trysquare.debug.recorder.expressions import parsed, refusal_of

_HIT = re.compile(r"\s*(>=|<=|==|>|<|%)?\s*\d{1,9}\s*", re.ASCII)
_TOKEN = re.compile(
    r"""\s*(?:(?P<name>[A-Za-z_$][\w$]*)|(?P<literal>\d[\w.]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"""|(?P<sign>->|===|!==|==|!=|<=|>=|&&|\|\||[-+*/%<>!.\[\]()]))""",
    re.ASCII,
)
_PURE = {
    "go": frozenset({"len", "cap"}),
    "java": frozenset[str](),
    "c": frozenset({"sizeof"}),
    "rust": frozenset[str](),
}
"""Languages without operators or attributes of a class's own, and what looks like a call in them and is none."""
_SCRIPTS = ("javascript", "typescript")
_IDENTITY = frozenset({"===", "!==", "&&", "||", "!", "(", ")", "-"})
"""Signs of JavaScript that never run code, between plain names and literals."""
_SUFFIXES = {".c": "c", ".rs": "rust"}
_NATIVE = ("c", "cpp", "rust")
HOW_TO_ALLOW = (
    "if the user agrees that the program's code may run, start the session with allow_side_effects: true "
    "and send `variable` with action=get"
)


def require_reading(expression: str, language: str, *, allowed: bool, file: str = "") -> None:
    """Refuse an expression that is none, or that could do more than read unless the session allows it."""
    if language == "python":
        _require_expression(expression)
    if allowed:
        return
    reason = _refusal(expression, language, file)
    if reason:
        raise not_only_reading(expression, reason)


def not_only_reading(expression: str, reason: str, *, open_session: str | None = None) -> ToolError:
    """That an expression would do more than read, and what to send instead; to a session that allows more, if named."""
    shown = expression if len(expression) <= 80 else expression[:79] + "…"
    return ToolError(
        f"`{shown}` is not evaluated, since that could run code or change something: {reason}.",
        code=ErrorCode.EXECUTION_NOT_ALLOWED,
        instruction=(
            "Send it with `variable`, action=get: this session allows side effects, and this tool only reads."
            if open_session is not None
            else f"Read names, stored attributes, items and operators instead; or, {HOW_TO_ALLOW}."
        ),
        next=None
        if open_session is None
        else {
            "tool": str(ToolName.VARIABLE),
            "arguments": {"action": "get", "expression": expression, "session_id": open_session},
        },
    )


def require_hit_condition(text: str | None) -> None:
    """Refuse a hit condition that is none: debuggers evaluate it as code, or never stop."""
    if text is not None and not _HIT.fullmatch(text):
        raise InvalidArguments(
            f"`{text[:80]}` is not a hit condition.",
            instruction="Write a whole number, alone or after one of == >= <= > < %, such as 5, >=3 or %2.",
        )


def require_log_message(message: str, language: str, *, allowed: bool, file: str = "") -> None:
    """Refuse a log message with an expression that is none, or that could do more than read."""
    for is_expression, text in pieces_of(message):
        if is_expression:
            require_reading(text, language, allowed=allowed, file=file)


def require_parts(
    language: str,
    condition: str | None,
    hit_condition: str | None,
    log_message: str | None,
    *,
    allowed: bool,
    file: str = "",
) -> None:
    """Refuse a breakpoint one part of which cannot be taken as it is."""
    if condition is not None:
        require_reading(condition, language, allowed=allowed, file=file)
    require_hit_condition(hit_condition)
    if log_message is not None:
        require_log_message(log_message, language, allowed=allowed, file=file)


def is_plain(expression: str, language: str, *, file: str = "") -> bool:
    """Whether an expression of a language with a debugger of its own can run nothing, whatever its names stand for."""
    # A program of C may have parts in C++, whose operators are code: only the file tells.
    known = next((_SUFFIXES[end] for end in _SUFFIXES if file.endswith(end)), "") if language in _NATIVE else language
    before = None
    place = 0
    text = expression.strip()
    if any(sign in text for sign in ("/*", "//", "++", "--")):
        return False
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None or not _follows(found, before, known):
            return False
        before, place = found, found.end()
    return before is not None


def _follows(found: re.Match[str], before: re.Match[str] | None, language: str) -> bool:
    """Whether a word may stand after another, so that it is neither a call nor a command of the debugger's."""
    if before is not None and found["sign"] is None and before["sign"] is None:
        return False
    if language in _SCRIPTS:
        is_call = found["sign"] == "(" and _is_callee(before)
        return found["sign"] is None or (found["sign"] in _IDENTITY and not is_call)
    if language not in _PURE:
        return False
    return not (found["sign"] == "(" and _is_callee(before) and not (before and before["name"] in _PURE[language]))


def _is_callee(before: re.Match[str] | None) -> bool:
    return before is not None and (before["sign"] is None or before["sign"] in (")", "]"))


def _refusal(expression: str, language: str, file: str) -> str:
    if language == "python":
        return refusal_of(expression)
    if is_plain(expression, language, file=file):
        return ""
    if language in _PURE or language in _SCRIPTS or file.endswith(tuple(_SUFFIXES)):
        return f"nothing tells that this one of {language} only reads"
    return f"in {language} even an operator may be code of the program's"


def _require_expression(expression: str) -> None:
    try:
        parsed(expression)
    except SyntaxError as error:
        raise InvalidArguments(
            f"`{expression[:80]}` is not a Python expression: {error.msg}.",
            instruction="Write one expression, such as total > 10; statements run with `variable`, action=patch.",
        ) from None
