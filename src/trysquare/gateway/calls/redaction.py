"""Redaction: the arguments of a call as ledger and audit may hold them."""

from __future__ import annotations

import functools
import json
from collections.abc import Set
from typing import Any, cast

from trysquare.core.secrets import MASK, is_secret_name, masked, masked_text
from trysquare.core.types import JsonObject

MAX_CHARACTERS = 4096


def redacted(inputs: JsonObject, text: str, schema: JsonObject, names: Set[str]) -> str:
    """The inputs as JSON without secret values, by their names or their looks, and without what is too long to keep.

    `text` is the inputs as JSON. Most calls hold no secret, and keep it as it is.
    """
    if _may_hold_secret(inputs, schema, names):
        text = json.dumps(_without(masked(inputs, schema), names), sort_keys=True, separators=(",", ":"))
    if len(text) <= MAX_CHARACTERS:
        return masked_text(text)
    # Masked before it is cut, so that no half of a key is left at the end.
    beginning = masked_text(text[:MAX_CHARACTERS])[: MAX_CHARACTERS // 2]
    return json.dumps({"(shortened)": beginning, "characters": len(text)})


def _may_hold_secret(inputs: JsonObject, schema: JsonObject, names: Set[str]) -> bool:
    return _has_secret_name(inputs, names) or _has_marks(schema)


def _has_secret_name(value: Any, names: Set[str]) -> bool:
    # Loops, since this is asked of every call, and any() with a generator takes twice the time.
    if isinstance(value, dict):
        for name, part in cast(JsonObject, value).items():
            if name in names or _is_secret(name):
                return True
            if isinstance(part, (dict, list)) and _has_secret_name(part, names):
                return True
    elif isinstance(value, list):
        for item in cast(list[Any], value):
            if _has_secret_name(item, names):
                return True
    return False


# The same few names come with every call.
_is_secret = functools.lru_cache(maxsize=4096)(is_secret_name)


_MARKED: dict[int, tuple[JsonObject, bool]] = {}
_MOST_KEPT = 5_000


def _has_marks(schema: JsonObject) -> bool:
    """Whether a schema marks arguments as secret whatever their names are."""
    known = _MARKED.get(id(schema))
    # Known by the very object, which nothing changes in place.
    if known is not None and known[0] is schema:
        return known[1]
    text = json.dumps(schema)
    while len(_MARKED) >= _MOST_KEPT:
        del _MARKED[next(iter(_MARKED))]
    found = '"writeOnly"' in text or '"password"' in text
    _MARKED[id(schema)] = (schema, found)
    return found


def _without(value: Any, names: Set[str]) -> Any:
    if isinstance(value, dict):
        return {
            name: MASK if name in names else _without(part, names) for name, part in cast(JsonObject, value).items()
        }
    return [_without(item, names) for item in cast(list[Any], value)] if isinstance(value, list) else value
