"""Names of a template that its document cannot have, by the schema of what the template sees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trysquare.bots.documents.shapes import items_of, properties_of
from trysquare.bots.rendering.mustache import Part, Section, Value, parse_template
from trysquare.core.json import JsonObject


def unknown_names(template: str, whole: JsonObject, *inner: JsonObject) -> list[str]:
    """The names of a template that no scope has; `inner` are the scopes within the document, the innermost last."""
    return list(dict.fromkeys(_unknown(parse_template(template), (whole, *inner), whole)))


def _unknown(parts: Sequence[Part], scopes: tuple[Any, ...], whole: JsonObject) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Value):
            if not _found(part.name, scopes, whole)[0]:
                yield part.name
        elif isinstance(part, Section):
            known, schema = _found(part.name, scopes, whole)
            if not known:
                yield part.name
            inside = scopes if part.inverted else (*scopes, items_of(schema, whole) if known else {})
            yield from _unknown(part.parts, inside, whole)


def _found(name: str, scopes: tuple[Any, ...], whole: JsonObject) -> tuple[bool, Any]:
    """Whether a scope may have a name, and the schema of its value."""
    if name == ".":
        return True, scopes[-1]
    first, *rest = name.split(".")
    for scope in reversed(scopes):
        names = properties_of(scope, whole)
        if names is None:
            return True, {}
        if first in names:
            return _descend(names[first], rest, whole)
    return False, {}


def _descend(schema: Any, names: Sequence[str], whole: JsonObject) -> tuple[bool, Any]:
    for name in names:
        known = properties_of(schema, whole)
        if known is None:
            return True, {}
        if name not in known:
            return False, {}
        schema = known[name]
    return True, schema
