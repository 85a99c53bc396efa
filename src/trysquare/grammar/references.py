"""References: what a `$ref` points at, inside its own document."""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import unquote

from trysquare.core.types import JsonObject
from trysquare.grammar.json_text import json_text
from trysquare.grammar.refusals import Unsupported


def target_of(document: Any, reference: Any, pointer: str) -> tuple[str, Any]:
    """The pointer of what is referred to, and the schema there."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        raise Unsupported("$ref", pointer, f"{json_text(reference)} is not in this document; write `#/$defs/…`")
    target = unquote(reference[1:])
    found = document
    for step in target.split("/")[1:]:
        found = _inside(found, step.replace("~1", "/").replace("~0", "~"))
        if found is None:
            raise Unsupported("$ref", pointer, f"there is nothing at {json_text(reference)}")
    return target, found


def _inside(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return cast(JsonObject, value).get(step)
    if isinstance(value, list) and step.isdecimal():
        items = cast(list[Any], value)
        return items[int(step)] if int(step) < len(items) else None
    return None
