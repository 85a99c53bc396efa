"""Secret arguments: which they are, and texts without their values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from trysquare.core.error_places import Place
from trysquare.core.types import JsonObject

MASK = "***"
_SECRET_NAME = re.compile(
    r"passw|passphrase|secret|token|credential|authori[sz]ation|cookie|(api|private|access|signing)[_-]?key",
    re.IGNORECASE,
)
_COUNT_NAME = re.compile(
    r"(tokens|cookies)$|(^|_)(max|min|num|count|number|limit|budget|size|length|total|used)(_|$)", re.IGNORECASE
)
_MAX_DEPTH = 100
_MAX_WRAPPED = 2
"""Lists and objects around a secret that a caller may have left out."""
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:ghp|gho|ghs|github_pat|glpat|xox[a-z]|AKIA|AIza|eyJ|(?:sk|pk|rk|hf|npm)(?=[-_A-Za-z.]*[0-9]))"
    r"[-_A-Za-z0-9.]{12,}"
)
"""A key as well-known services write theirs."""
_USER = re.compile(r"(?<=://)[^/\s\"'\\@:]*:[^/\s\"'\\@]+(?=@)")
_QUERY = re.compile(
    r"(?<=[?&;])([\w.-]*(?:token|key|secret|passw|sig|auth|credential)[\w.-]*=)[^&#\s\"'\\]+", re.IGNORECASE
)
_HEAD = 12
"""So many characters of a long secret are enough to recognise a shortened copy of it."""


def masked(arguments: JsonObject, schema: JsonObject) -> JsonObject:
    """The arguments with secret values replaced, at every depth."""
    return _Reader(schema).masked(arguments)


def secret_places(arguments: JsonObject, schema: JsonObject) -> list[Place]:
    """Where secret values stand in the arguments."""
    found = _Reader(schema).secrets(arguments)
    return [place for place, value in found if value not in (None, "") and not isinstance(value, bool)]


def without_secrets(text: str, arguments: JsonObject, schema: JsonObject) -> str:
    """The text with every value of a secret argument replaced, whole, quoted or shortened."""
    return SecretTexts(arguments, schema).masked(text)


class SecretTexts:
    """The values of a call's secret arguments in every form in which they may stand in a text."""

    def __init__(self, arguments: JsonObject, schema: JsonObject) -> None:
        found = {form for _, value in _Reader(schema).secrets(arguments) for form in _texts(value)}
        self._forms = sorted(found, key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def masked(self, text: str) -> str:
        """The text without them."""
        for form in self._forms:
            text = _without(text, form)
        return text


def masked_text(text: str) -> str:
    """A text with what looks like a secret masked: a key of a service, a password in an address or its query."""
    if "://" in text:
        text = _USER.sub(MASK, text)
    if "=" in text:
        text = _QUERY.sub(rf"\1{MASK}", text)
    return _TOKEN.sub(MASK, text)


def is_secret_name(name: str, value: Any = None) -> bool:
    """Whether what goes by this name is most likely a secret. A number of tokens, such as `max_tokens`, is none."""
    if isinstance(value, (int, float)) and _COUNT_NAME.search(name):
        return False
    return _SECRET_NAME.search(name) is not None


class _Reader:
    """Walks arguments along their schema. A value is secret if its schema says so, or its name does."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self._definitions: JsonObject = schema.get("$defs", {})

    def masked(self, arguments: JsonObject) -> JsonObject:
        return self._masked(arguments, self._forms(self._schema))

    def secrets(self, arguments: JsonObject) -> Iterator[tuple[Place, Any]]:
        # A stack of its own: arguments may be nested deeper than functions can call one another.
        waiting: list[tuple[Place, Any, list[JsonObject]]] = [((), arguments, self._forms(self._schema))]
        while waiting:
            place, value, forms = waiting.pop()
            if isinstance(value, dict):
                for name, part in cast(JsonObject, value).items():
                    inner = self._property(name, forms)
                    if self._is_secret(name, part, inner):
                        yield (*place, name), part
                    elif isinstance(part, (dict, list)):
                        waiting.append(((*place, name), cast(Any, part), inner))
            elif isinstance(value, list):
                for index, item in enumerate(cast(list[Any], value)):
                    inner = self._item(index, forms)
                    if self._is_marked(item, inner):
                        yield (*place, index), item
                    elif isinstance(item, (dict, list)):
                        waiting.append(((*place, index), cast(Any, item), inner))

    def _masked(self, value: Any, forms: list[JsonObject], depth: int = 0) -> Any:
        if depth > _MAX_DEPTH and isinstance(value, (dict, list)):
            return MASK
        if isinstance(value, dict):
            masked: JsonObject = {}
            for name, part in cast(JsonObject, value).items():
                inner = self._property(name, forms)
                is_secret = self._is_secret(name, part, inner)
                masked[name] = MASK if is_secret else self._masked(part, inner, depth + 1)
            return masked
        if isinstance(value, list):
            items = enumerate(cast(list[Any], value))
            return [self._masked(item, self._item(index, forms), depth + 1) for index, item in items]
        return MASK if self._is_marked(value, forms) else value

    def _is_secret(self, name: str, value: Any, forms: list[JsonObject]) -> bool:
        return is_secret_name(name, value) or self._is_marked(value, forms)

    def _is_marked(self, value: Any, forms: list[JsonObject], depth: int = 0) -> bool:
        """Whether the schema marks a value as secret; also one that stands where secrets belong inside."""
        if any(form.get("writeOnly") is True or form.get("format") == "password" for form in forms):
            return True
        if isinstance(value, (dict, list)) or value is None or depth > _MAX_WRAPPED:
            return False
        parts = [part for form in forms for part in _inner_parts(form)]
        return any(self._is_marked(value, self._forms(part), depth + 1) for part in parts)

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

    def _item(self, index: int, forms: list[JsonObject]) -> list[JsonObject]:
        found: list[JsonObject] = []
        for form in forms:
            fixed = cast(list[Any], form.get("prefixItems") or [])
            found.extend(self._forms(fixed[index] if index < len(fixed) else form.get("items")))
        return found


def _inner_parts(form: JsonObject) -> list[Any]:
    """The schemas of what a list or an object may hold."""
    named: Any = form.get("properties")
    fixed: Any = form.get("prefixItems")
    parts: list[Any] = [form.get("items"), form.get("additionalProperties")]
    parts += list(cast(JsonObject, named).values()) if isinstance(named, dict) else []
    return parts + (cast(list[Any], fixed) if isinstance(fixed, list) else [])


def _texts(value: Any) -> Iterator[str]:
    """The forms in which a value may stand in a text."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting.extend(cast(JsonObject, part).values())
        elif isinstance(part, list):
            waiting.extend(cast(list[Any], part))
        elif isinstance(part, str) and part:
            yield from (part, repr(part)[1:-1], json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1])
        elif part is not None and not isinstance(part, (str, bool)):
            yield hex(part) if isinstance(part, int) and part.bit_length() > 10_000 else str(part)


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
