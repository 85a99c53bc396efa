"""What handlers share: the type of a handler, pages of lists, questions to the client."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeAlias, TypeVar

from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.json import JsonObject
from trysquare.server.caller import McpCaller, Request
from trysquare.server.convert import COMPLETE

Handler: TypeAlias = Callable[[Request], Coroutine[Any, Any, JsonObject | bytes]]
"""Answers a request with its result: an object, or the bytes of one."""
T = TypeVar("T")


def questions_to_wire(caller: McpCaller) -> JsonObject:
    """The result that has the client put all open questions to the user and call again."""
    answers = caller.answers
    return {"resultType": "input_required", "inputRequests": answers.wire(), "requestState": answers.state()}


def list_page(
    field: str,
    things: Sequence[T],
    to_wire: Callable[[T], JsonObject],
    *,
    key: Callable[[T], str],
    cursor: str | None,
    size: int,
) -> JsonObject:
    """The answer to a list request: one page, and the cursor of the next one.

    A cursor names the last entry of the page before, so that it stays right when entries come and go behind it.
    """
    start = 0 if cursor is None else _position_after(things, key, cursor) + 1
    end = start + size
    page = things[start:end]
    wire: JsonObject = {"resultType": COMPLETE, field: [to_wire(each) for each in page]}
    if end < len(things):
        wire["nextCursor"] = _encode(key(page[-1]))
    return wire


def _position_after(things: Sequence[T], key: Callable[[T], str], cursor: str) -> int:
    name = _decode(cursor)
    for position, thing in enumerate(things):
        if key(thing) == name:
            return position
    raise InvalidArguments(
        "Unknown cursor: it is not one of this list, or the list has changed.",
        code=ErrorCode.VALIDATION_INVALID_PARAM,
        instruction="List again from the start, without a cursor.",
    )


def _encode(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def _decode(cursor: str) -> str | None:
    try:
        return base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, UnicodeError):
        return None
