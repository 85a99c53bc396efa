"""Fitting: an answer brought down to a number of tokens, whatever a program put into it."""

from __future__ import annotations

from typing import Any, cast

from trysquare.catalog.tokens import count_tokens
from trysquare.core.result import dump_json
from trysquare.core.types import JsonObject

_SHORTEST = 40
_CUT = "…"


def fitted(data: JsonObject, limit: int) -> JsonObject:
    """The data within a number of tokens: its longest texts and lists are halved until it fits, and it says so."""
    if _fits(data, limit):
        return data
    longest = max(_lengths(data), default=0)
    while longest > _SHORTEST:
        longest //= 2
        data = cast(JsonObject, _shortened(data, longest))
        if _fits(data, limit):
            break
    return {**data, "truncated": True}


def _fits(data: Any, limit: int) -> bool:
    text = dump_json(data)
    # A token is at least one character, so that a short text need not be counted.
    return len(text) <= limit or (len(text) <= 8 * limit and count_tokens(text) <= limit)


def _lengths(value: Any) -> list[int]:
    if isinstance(value, str):
        return [len(value)]
    if isinstance(value, dict):
        parts = cast(dict[str, Any], value)
        return [len(parts), *(length for part in parts.values() for length in _lengths(part))]
    if isinstance(value, list):
        items = cast(list[Any], value)
        return [len(items), *(length for part in items for length in _lengths(part))]
    return []


def _shortened(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else value[: longest - 1] + _CUT
    if isinstance(value, dict):
        parts = list(cast(dict[str, Any], value).items())
        return {name: _shortened(part, longest) for name, part in parts[:longest]}
    if isinstance(value, list):
        return [_shortened(part, longest) for part in cast(list[Any], value)[:longest]]
    return value
