"""Mending: a call's arguments, changed place by place on a copy, beside the schema that says what belongs there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias, cast

from pydantic_core import ErrorDetails

from trysquare.core.arguments import type_text
from trysquare.core.shortening import short
from trysquare.core.types import JsonObject

Place: TypeAlias = tuple[str | int, ...]
"""Where in the arguments: `("items", 0, "name")`; empty for the arguments as a whole."""


class Mending:
    """A copy of some arguments in the making. The caller's own values are never changed."""

    def __init__(self, raw: JsonObject, schema: JsonObject) -> None:
        self.arguments: JsonObject = dict(raw)
        self._schema = schema
        self._open: list[Place] = []

    def place(self, detail: ErrorDetails) -> Place:
        """Where an error is, in the caller's own words: pydantic adds the names of union members, which go."""
        found: list[str | int] = []
        inside: Any = self.arguments
        *way, last = detail["loc"] or ("",)
        for part in way:
            if _holds(inside, part):
                found.append(part)
                inside = inside[part]
        if last != "" and (_holds(inside, last) or detail["type"] == "missing"):
            found.append(last)
        return tuple(found)

    def open_places(self) -> list[Place]:
        """The places with a blank that the caller has to fill in."""
        return list(self._open)

    def value_at(self, place: Place) -> Any:
        """What stands at a place."""
        inside: Any = self.arguments
        for part in place:
            if not _holds(inside, part):
                return None
            inside = inside[part]
        return inside

    def schema_at(self, place: Place) -> JsonObject:
        """The schema of a place, or an empty one where the schema does not tell."""
        schema = self._schema
        for part in place:
            schema = self._inner_schema(schema, part)
        return self._resolved(schema)

    def blank(self, place: Place) -> None:
        """Leave a place to the caller, with a mark that says what belongs there."""
        if any(place[: len(known)] == known for known in self._open):
            return
        self._open = [known for known in self._open if known[: len(place)] != place]
        self._open.append(place)
        if place:
            self.put(place, f"<{short(type_text(self.schema_at(place)))}>")

    def put(self, place: Place, value: Any) -> None:
        """Set a place to a value."""
        self._owned_holder(place)[place[-1]] = value

    def take(self, place: Place) -> Any:
        """Remove a place and return what stood there."""
        return self._owned_holder(place).pop(place[-1])

    def drop(self, names: Iterable[str]) -> None:
        """Remove arguments by name."""
        for name in names:
            self.arguments.pop(name, None)

    def _owned_holder(self, place: Place) -> Any:
        """The object or list that holds a place, copied on the way, since the inner ones are the caller's."""
        inside: Any = self.arguments
        for part in place[:-1]:
            inside[part] = inside[part].copy()
            inside = inside[part]
        return inside

    def _inner_schema(self, schema: JsonObject, part: str | int) -> JsonObject:
        for option in self._options(schema):
            inner = _of_index(option) if isinstance(part, int) else _of_name(option, part)
            if isinstance(inner, dict):
                return cast(JsonObject, inner)
        return {}

    def _options(self, schema: JsonObject) -> list[JsonObject]:
        resolved = self._resolved(schema)
        options = cast(list[JsonObject], resolved.get("anyOf") or resolved.get("oneOf") or [])
        return [self._resolved(option) for option in options] or [resolved]

    def _resolved(self, schema: JsonObject) -> JsonObject:
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        return cast(JsonObject, self._schema.get("$defs", {}).get(reference.rsplit("/", 1)[-1], {}))


def _of_index(schema: JsonObject) -> Any:
    return schema.get("items")


def _of_name(schema: JsonObject, name: str) -> Any:
    return schema.get("properties", {}).get(name) or schema.get("additionalProperties")


def _holds(container: Any, part: str | int) -> bool:
    if isinstance(container, dict):
        return part in container
    return isinstance(container, list) and isinstance(part, int) and 0 <= part < len(cast(list[Any], container))
