"""Guard: refuse expressions that could run code of the program, and invalid hit conditions.

Python expressions are checked by `recorder/expressions.py`. Other debuggers evaluate by themselves, so that only what
the `ExpressionRules` of the language allow passes; a language without rules allows nothing.
"""

from __future__ import annotations

import re

from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.debug.adapters.registry import find_language
from trysquare.debug.expressions import is_plain, parse_log_message
from trysquare.debug.recorder.expressions import parsed, refusal_of

_HIT_CONDITION = re.compile(r"\s*(>=|<=|==|>|<|%)?\s*\d{1,9}\s*", re.ASCII)
HOW_TO_ALLOW = (
    "if the user agrees that the program's code may run, start the session with allow_side_effects: true "
    "and send `variable` with action=get"
)


def require_reading(expression: str, language: str, *, allowed: bool, file: str = "") -> None:
    """Refuse an invalid expression, and one that could do more than read unless the session allows it."""
    if language == "python":
        try:
            parsed(expression)
        except SyntaxError as error:
            raise InvalidArguments(
                f"`{expression[:80]}` is not a Python expression: {error.msg}.",
                instruction="Write one expression, such as total > 10; statements run with `variable`, action=patch.",
            ) from None
    if not allowed and (reason := _refusal(expression, language, file)):
        raise not_only_reading(expression, reason)


def not_only_reading(expression: str, reason: str, *, open_session: str | None = None) -> ToolError:
    """Error for an expression that could run code; `open_session` is the id of a session that allows it elsewhere."""
    shown = expression if len(expression) <= 80 else expression[:79] + "…"
    instruction = f"Read names, stored attributes, items and operators instead; or, {HOW_TO_ALLOW}."
    following = None
    if open_session is not None:
        instruction = "Send it with `variable`, action=get: this session allows side effects, but this tool only reads."
        arguments = {"action": "get", "expression": expression, "session_id": open_session}
        following = {"tool": "variable", "arguments": arguments}
    return ToolError(
        f"`{shown}` was not evaluated, because that could run code or change something: {reason}.",
        code=ErrorCode.EXECUTION_NOT_ALLOWED,
        instruction=instruction,
        next=following,
    )


def require_hit_condition(text: str | None) -> None:
    """Refuse an invalid hit condition: debuggers would evaluate it as code, or never stop."""
    if text is not None and not _HIT_CONDITION.fullmatch(text):
        raise InvalidArguments(
            f"Invalid hit condition `{text[:80]}`.",
            instruction="Write an integer, alone or after one of == >= <= > < %, such as 5, >=3 or %2.",
        )


def require_log_message(message: str, language: str, *, allowed: bool, file: str = "") -> None:
    """Refuse a log message with an expression that is invalid or could do more than read."""
    for is_expression, text in parse_log_message(message):
        if is_expression:
            require_reading(text, language, allowed=allowed, file=file)
        elif not (allowed or find_language(language).renders_log_messages) and re.search("[{}]", text):
            raise not_only_reading(message, f"the debugger of {language} may evaluate what is in doubled braces")


def require_parts(
    language: str,
    condition: str | None,
    hit_condition: str | None,
    log_message: str | None,
    *,
    allowed: bool,
    file: str = "",
) -> None:
    """Refuse a breakpoint with an invalid or forbidden condition, hit condition or log message."""
    if condition is not None:
        require_reading(condition, language, allowed=allowed, file=file)
    require_hit_condition(hit_condition)
    if log_message is not None:
        require_log_message(log_message, language, allowed=allowed, file=file)


def _refusal(expression: str, language: str, file: str) -> str:
    if language == "python":
        return refusal_of(expression)
    rules = find_language(language).expressions
    if is_plain(expression, rules, file=file):
        return ""
    if any(not each.suffixes or file.endswith(each.suffixes) for each in rules):
        return f"this {language} expression is not known to be read-only"
    return f"in {language} even an operator may run code of the program"
