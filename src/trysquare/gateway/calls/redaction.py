"""Redaction: the arguments of a call as ledger and audit may hold them."""

from __future__ import annotations

import functools
import json
from collections.abc import Set
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.wrappers.secrets import MASK, is_secret_name, masked

MAX_CHARACTERS = 4096


def redacted(inputs: JsonObject, text: str, schema: JsonObject, names: Set[str]) -> str:
    """The inputs as JSON without the values of secret arguments, and without what is too long to keep.

    `text` is the inputs as JSON. Most calls hold no secret, and keep it as it is.
    """
    if _may_hold_secret(inputs, schema, names):
        text = json.dumps(_without(masked(inputs, schema), names), sort_keys=True, separators=(",", ":"))
    if len(text) <= MAX_CHARACTERS:
        return text
    return json.dumps({"(shortened)": text[: MAX_CHARACTERS // 2], "characters": len(text)})


def _may_hold_secret(inputs: JsonObject, schema: JsonObject, names: Set[str]) -> bool:
    return _has_secret_name(inputs, names) or _has_marks(_Schema(schema))


def _has_secret_name(value: Any, names: Set[str]) -> bool:
    if isinstance(value, dict):
        parts = cast(JsonObject, value).items()
        return any(name in names or _is_secret(name) or _has_secret_name(part, names) for name, part in parts)
    return isinstance(value, list) and any(_has_secret_name(item, names) for item in cast(list[Any], value))


# The same few names come with every call.
_is_secret = functools.lru_cache(maxsize=4096)(is_secret_name)


class _Schema:
    """A schema as a key: definitions are never changed, so the same object is the same schema."""

    __slots__ = ("value",)

    def __init__(self, value: JsonObject) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Schema) and other.value is self.value


@functools.lru_cache(maxsize=4096)
def _has_marks(schema: _Schema) -> bool:
    """Whether a schema marks arguments as secret whatever their names are."""
    text = json.dumps(schema.value)
    return '"writeOnly"' in text or '"password"' in text


def _without(value: Any, names: Set[str]) -> Any:
    if isinstance(value, dict):
        return {
            name: MASK if name in names else _without(part, names) for name, part in cast(JsonObject, value).items()
        }
    return [_without(item, names) for item in cast(list[Any], value)] if isinstance(value, list) else value
