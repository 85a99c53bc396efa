"""Local references of a schema, `#/$defs/Address`. Anything further away is never fetched."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from trysquare.catalog.schema_parts import as_list, as_object
from trysquare.core.types import JsonObject

_MOST_HOPS = 8


def resolved(schema: JsonObject, whole: JsonObject) -> JsonObject:
    """The schema that a local reference stands for, with what is said beside it; empty where it leads nowhere."""
    for _ in range(_MOST_HOPS):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        beside = {key: part for key, part in schema.items() if key != "$ref"}
        schema = {**as_object(pointed(reference, whole)), **beside}
    return {}


def pointed(reference: str, whole: JsonObject) -> Any:
    """What a local reference points at, or None."""
    if reference == "#":
        return whole
    if not reference.startswith("#/"):
        return None
    found: Any = whole
    for part in reference[2:].split("/"):
        found = _inner(found, unquote(part).replace("~1", "/").replace("~0", "~"))
    return found


def _inner(holder: Any, part: str) -> Any:
    if isinstance(holder, list):
        items = as_list(holder)
        return items[int(part)] if part.isdecimal() and int(part) < len(items) else None
    return as_object(holder).get(part)
