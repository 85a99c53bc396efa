"""Log messages: texts with expressions in braces, taken apart as a program's language takes them."""

from __future__ import annotations

import ast

from trysquare.core.errors import InvalidArguments


def pieces_of(message: str) -> list[tuple[bool, str]]:
    """The texts and the expressions (True) of a message. Braces within an expression are its own; `{{` is a brace."""
    pieces: list[tuple[bool, str]] = []
    text, place = "", 0
    while place < len(message):
        if message.startswith(("{{", "}}"), place):
            text, place = text + message[place], place + 2
        elif message[place] == "{":
            end = _end_of(message, place + 1)
            pieces += [(False, text), (True, message[place + 1 : end].strip())]
            text, place = "", end + 1
        else:
            text, place = text + message[place], place + 1
    return [piece for piece in [*pieces, (False, text)] if piece[1]]


def _end_of(message: str, start: int) -> int:
    """Where an expression's closing brace is: the first one up to which it can be read."""
    ends = [index for index in range(start, len(message)) if message[index] == "}"]
    for end in ends:
        try:
            ast.parse(message[start:end].strip(), mode="eval")
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
        return end
    if ends and message[start : ends[0]].strip():
        # Of another language, or not an expression: whoever evaluates it says so.
        return ends[0]
    raise InvalidArguments(
        f"`{message[:80]}`: a brace in the log message is never closed, or holds nothing.",
        instruction="Write expressions in braces, such as `i is {i}`, and a brace itself twice: {{.",
    )
