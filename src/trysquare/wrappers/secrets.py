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


def masked(arguments: JsonObject, schema: JsonObject) -> JsonObject:
    """The arguments with secret values replaced, at every depth."""
    return _Reader(schema).masked(arguments)


def without_secrets(text: str, arguments: JsonObject, schema: JsonObject) -> str:
    """The text with every value of a secret argument replaced, whole, quoted or shortened."""
    found = {form for value in _Reader(schema).secrets(arguments) for form in _texts(value)}
    for form in sorted(found, key=len, reverse=True):
        text = _without(text, form)
    return text


def is_secret_name(name: str) -> bool:
    """Whether what goes by this name is most likely a secret."""
    return _SECRET_NAME.search(name) is not None


class _Reader:
    """Walks arguments along their schema. A value is secret if its schema says so, or its name does."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self._definitions: JsonObject = schema.get("$defs", {})

    def masked(self, arguments: JsonObject) -> JsonObject:
        return self._masked(arguments, self._forms(self._schema))

    def secrets(self, arguments: JsonObject) -> Iterator[Any]:
        return self._secrets(arguments, self._forms(self._schema))

    def _masked(self, value: Any, forms: list[JsonObject]) -> Any:
        if isinstance(value, dict):
            return {
                name: MASK if self._is_secret(name, inner := self._property(name, forms)) else self._masked(part, inner)
                for name, part in cast(JsonObject, value).items()
            }
        if isinstance(value, list):
            return [self._masked(item, self._items(forms)) for item in cast(list[Any], value)]
        return MASK if _is_marked(forms) else value

    def _secrets(self, value: Any, forms: list[JsonObject]) -> Iterator[Any]:
        if isinstance(value, dict):
            for name, part in cast(JsonObject, value).items():
                inner = self._property(name, forms)
                if self._is_secret(name, inner):
                    yield part
                else:
                    yield from self._secrets(part, inner)
        elif isinstance(value, list):
            for item in cast(list[Any], value):
                yield from self._secrets(item, self._items(forms))
        elif _is_marked(forms):
            yield value

    def _is_secret(self, name: str, forms: list[JsonObject]) -> bool:
        return is_secret_name(name) or _is_marked(forms)

    def _forms(self, schema: Any, seen: frozenset[str] = frozenset()) -> list[JsonObject]:
        """The schema itself and those that it refers to or chooses among, also where they refer in a circle."""
        if not isinstance(schema, dict):
            return []
        own = cast(JsonObject, schema)
        name = str(own.get("$ref", "")).removeprefix("#/$defs/")
        others = [self._definitions[name]] if name in self._definitions and name not in seen else []
        for keyword in ("anyOf", "oneOf", "allOf"):
            others.extend(own.get(keyword, []))
        return [own, *(form for other in others for form in self._forms(other, seen | {name}))]

    def _property(self, name: str, forms: list[JsonObject]) -> list[JsonObject]:
        found = [form.get("properties", {}).get(name, form.get("additionalProperties")) for form in forms]
        return [inner for part in found for inner in self._forms(part)]

    def _items(self, forms: list[JsonObject]) -> list[JsonObject]:
        return [inner for form in forms for inner in self._forms(form.get("items"))]


def _is_marked(forms: list[JsonObject]) -> bool:
    return any(form.get("writeOnly") is True or form.get("format") == "password" for form in forms)


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
