"""CallState: how far the text of a call has come."""

from __future__ import annotations

from enum import Enum

from trysquare.grammar.call_set import AFTER_NAME, BEFORE_NAME

_ARGUMENTS_KEY = AFTER_NAME[1:]


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
    """How many bytes the call has with which a text begins; None while it is not complete."""
    depth, position = 0, 0
    while position < len(text):
        byte = text[position]
        if byte == 0x22:  # a string, in which braces mean nothing
            end = string_end(text, position + 1)
            if end is None:
                return None
            position = end
            continue
        depth += (byte in b"{[") - (byte in b"}]")
        position += 1
        if not depth:
            return position
    return None


def string_end(text: bytes, start: int) -> int | None:
    """Where the string ends whose inside begins at `start`: just behind its quote. None while it is open."""
    position = start
    while position < len(text):
        if text[position] == 0x5C:
            position += 2
        elif text[position] == 0x22:
            return position + 1
        else:
            position += 1
    return None


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
