"""Secret arguments: which they are, and texts without their values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from trysquare.core.types import JsonObject

MASK = "***"
_SECRET_NAME = re.compile(
    r"passw|passphrase|secret|token|credential|authori[sz]ation|cookie|(api|private|access|signing)[_-]?key",
    re.IGNORECASE,
)
_HEAD = 12
"""So many characters of a long secret are enough to recognise a shortened copy of it."""


def is_secret(name: str, schema: JsonObject) -> bool:
    """Whether an argument's values stay out of logs and questions: its schema says so, or its name does."""
    marked = schema.get("writeOnly") is True or schema.get("format") == "password"
    return marked or _SECRET_NAME.search(name) is not None


def masked(arguments: JsonObject, schema: JsonObject) -> JsonObject:
    """The arguments with secret values replaced, at every depth."""
    properties = cast(dict[str, JsonObject], schema.get("properties", {}))
    return {
        name: MASK if is_secret(name, properties.get(name, {})) else _masked_inside(value)
        for name, value in arguments.items()
    }


def without_secrets(text: str, arguments: JsonObject, schema: JsonObject) -> str:
    """The text with every value of a secret argument replaced, whole, quoted or shortened."""
    for value in sorted(set(_secret_texts(arguments, schema)), key=len, reverse=True):
        text = _without(text, value)
    return text


def _masked_inside(value: Any) -> Any:
    if isinstance(value, dict):
        return masked(cast(JsonObject, value), {})
    if isinstance(value, list):
        return [_masked_inside(item) for item in cast(list[Any], value)]
    return value


def _secret_texts(arguments: JsonObject, schema: JsonObject) -> Iterator[str]:
    properties = cast(dict[str, JsonObject], schema.get("properties", {}))
    for name, value in arguments.items():
        if is_secret(name, properties.get(name, {})):
            yield from _texts(value)
        elif isinstance(value, dict):
            yield from _secret_texts(cast(JsonObject, value), {})
        elif isinstance(value, list):
            for item in cast(list[Any], value):
                if isinstance(item, dict):
                    yield from _secret_texts(cast(JsonObject, item), {})


def _texts(value: Any) -> Iterator[str]:
    """The forms in which a value may stand in a text."""
    if isinstance(value, dict):
        for part in cast(JsonObject, value).values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in cast(list[Any], value):
            yield from _texts(part)
    elif isinstance(value, str) and value:
        yield from (value, repr(value)[1:-1], json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    elif value is not None and not isinstance(value, (str, bool)):
        yield str(value)


def _without(text: str, secret: str) -> str:
    """The text without a secret. A long one is also found where only its beginning was kept."""
    head = secret[:_HEAD]
    place = text.find(head)
    while place >= 0:
        end = place + len(head)
        for expected in secret[_HEAD:]:
            if end >= len(text) or text[end] != expected:
                break
            end += 1
        text = text[:place] + MASK + text[end:]
        place = text.find(head, place + len(MASK))
    return text
