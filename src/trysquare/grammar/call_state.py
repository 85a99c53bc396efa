"""CallState: how far the text of a call has come."""

from __future__ import annotations

import re
from enum import Enum

from trysquare.grammar.call_set import AFTER_NAME, BEFORE_NAME

_ARGUMENTS_KEY = AFTER_NAME[1:]
_STRUCTURE = re.compile(rb'[{}\[\]]|"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""A brace, a bracket, or a string, in which those mean nothing."""
_DEPTHS = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}
_INSIDE_AND_QUOTE = re.compile(rb'(?:[^"\\]|\\.)*+"', re.DOTALL)


class CallState(Enum):
    """What has to come next in a call."""

    START = "start"
    """Its opening brace."""
    NAME_KEY = "name key"
    NAME_VALUE = "name value"
    ARGUMENTS_KEY = "arguments key"
    ARGUMENTS = "arguments"
    END = "end"
    """Its closing brace."""
    COMPLETE = "complete"
    """Nothing: only the end of the text, or of the call, is allowed."""


def call_length(text: bytes) -> int | None:
    """How many bytes the object has with which a text begins; None while it is not complete."""
    depth = 0
    for part in _STRUCTURE.finditer(text):
        depth += _DEPTHS.get(part.group(), 0)
        if not depth:
            return part.end()
    return None


def string_end(text: bytes, start: int) -> int | None:
    """Where the string ends whose inside begins at `start`: just behind its quote. None while it is open."""
    found = _INSIDE_AND_QUOTE.match(text, start)
    return found.end() if found else None


def state_of(text: bytes) -> CallState:
    """The state of a call of which this much is written, which must be the beginning of one."""
    if not text:
        return CallState.START
    if len(text) < len(BEFORE_NAME) - 1:
        return CallState.NAME_KEY
    name_end = string_end(text, len(BEFORE_NAME))
    if name_end is None:
        return CallState.NAME_VALUE
    arguments = name_end + len(_ARGUMENTS_KEY)
    if len(text) < arguments:
        return CallState.ARGUMENTS_KEY
    length = call_length(text[arguments:])
    if length is None:
        return CallState.ARGUMENTS
    return CallState.COMPLETE if len(text) > arguments + length else CallState.END
