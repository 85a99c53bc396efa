"""A server's schema as a list may show it: one object, without what large model APIs refuse at its top."""

from __future__ import annotations

from typing import Any, cast

from trysquare.catalog.schema_parts import as_list, as_object, properties_of
from trysquare.core.result import dump_json
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import cleaned_json

_COMBINED = ("anyOf", "oneOf", "allOf")


def wire_schema(schema: Any) -> JsonObject:
    """The schema without hidden text; what stands in its alternatives is shown beside one another.

    The server's own schema is what a call is checked against, so that nothing is lost by showing less of it.
    """
    known = _cleaned(as_object(schema))
    properties = dict(properties_of(known))
    for combined in _COMBINED:
        for part in as_list(known.get(combined)):
            properties = {**properties_of(as_object(part)), **properties}
    kept = {key: part for key, part in known.items() if key not in (*_COMBINED, "not", "if", "then", "else")}
    return {**kept, "type": "object", "properties": properties}


def _cleaned(schema: JsonObject) -> JsonObject:
    from pydantic_core import from_json

    text = dump_json(schema).encode()
    cleaned, count = cleaned_json(text)
    return cast(JsonObject, from_json(cleaned)) if count else schema
