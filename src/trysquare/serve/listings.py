"""Listings: what a toolset shows, in pages, made once and kept until the toolset changes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TypeVar

from trysquare.core.context import Principal
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.types import JsonObject
from trysquare.wire.results import COMPLETE

T = TypeVar("T")


def page_of(
    things: Sequence[T], *, key: Callable[[T], str], cursor: str | None, size: int
) -> tuple[Sequence[T], str | None]:
    """One page of a list, and the cursor of the next one.

    A cursor names the last entry of the page before, so that it stays right when entries come and go behind it.
    """
    start = 0 if cursor is None else _position_after(things, key, cursor) + 1
    page = things[start : start + size]
    more = start + size < len(things)
    return page, _encode(key(page[-1])) if more else None


def page_to_wire(field: str, entries: Sequence[JsonObject], following: str | None, principal: Principal) -> JsonObject:
    """The answer to a list request. A list that depends on who asks must not be shared between principals."""
    wire: JsonObject = {"resultType": COMPLETE, field: list(entries)}
    if following is not None:
        wire["nextCursor"] = following
    if principal.scopes is not None:
        wire["cacheScope"] = "private"
    return wire


def _position_after(things: Sequence[T], key: Callable[[T], str], cursor: str) -> int:
    name = _decode(cursor)
    for position, thing in enumerate(things):
        if key(thing) == name:
            return position
    raise InvalidArguments(
        "The cursor is not one of this list, or the list has changed.",
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
