"""Held calls: the calls in an answer that was held to the calls' grammar or schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.models.messages import CallRequest, Message


def read_held_calls(text: str, messages: Sequence[Message]) -> tuple[CallRequest, ...]:
    """The calls of a whole answer; none where it was cut, so that the loop can say so."""
    try:
        found: Any = json.loads(text)
    except ValueError:
        return ()
    if isinstance(found, dict):
        # Servers that want an object at the top get the calls in one.
        found = cast(JsonObject, found).get("calls", cast(JsonObject, found))
    pieces = cast(list[Any], found) if isinstance(found, list) else [found]
    ids = new_ids(messages)
    calls = tuple(_call(piece, ids) for piece in pieces)
    return tuple(call for call in calls if call) if all(calls) else ()


def _call(piece: Any, ids: Iterator[str]) -> CallRequest | None:
    if not isinstance(piece, dict):
        return None
    held = cast(JsonObject, piece)
    name, arguments = held.get("name"), held.get("args")
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    return CallRequest(id=next(ids), name=name, arguments=cast(JsonObject, arguments))


def new_ids(messages: Iterable[Message]) -> Iterator[str]:
    """Ids that no call of the dialogue has, the same each time for the same dialogue."""
    taken = {call.id for message in messages for call in message.calls}
    number = len(taken)
    while True:
        number += 1
        if (made := f"call_{number}") not in taken:
            yield made
