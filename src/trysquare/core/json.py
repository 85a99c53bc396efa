"""JSON values: safe accessors, maps over their parts, and the only resolver of local `$ref`s."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast
from urllib.parse import unquote

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object. Its values are whatever JSON allows, so `Any` is the honest type."""
JsonPath: TypeAlias = tuple[str | int, ...]
"""A path into a JSON value: `("items", 0, "name")`; empty for the value as a whole."""

_MAX_HOPS = 8


def as_object(value: Any) -> JsonObject:
    """The value if it is an object, else an empty one."""
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return cast(list[Any], value) if isinstance(value, list) else []


def map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """The same JSON value with every string and every key changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {map_strings(key, change): map_strings(part, change) for key, part in cast(JsonObject, value).items()}
    return [map_strings(item, change) for item in cast(list[Any], value)] if isinstance(value, list) else value


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same JSON value with everything changed that is neither an object nor a list; keys stay."""
    if isinstance(value, dict):
        return {key: map_leaves(part, change) for key, part in cast(JsonObject, value).items()}
    return [map_leaves(item, change) for item in cast(list[Any], value)] if isinstance(value, list) else change(value)


def objects_in(waiting: list[Any]) -> Iterator[JsonObject]:
    """Every object in some JSON values, however deep."""
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            inner = cast(JsonObject, part)
            yield inner
            waiting.extend(inner.values())
        elif isinstance(part, list):
            waiting.extend(cast(list[Any], part))


def properties_of(schema: Any) -> dict[str, JsonObject]:
    """The named properties of an object schema; one that is not a schema object counts as empty."""
    return {name: as_object(part) for name, part in as_object(as_object(schema).get("properties")).items()}


def choices_of(schema: Any) -> list[Any]:
    """The values that `const` or `enum` allow."""
    known = as_object(schema)
    return [known["const"]] if "const" in known else as_list(known.get("enum"))


def required_of(schema: Any) -> list[str]:
    return [name for name in as_list(as_object(schema).get("required")) if isinstance(name, str)]


def one_line_json(value: Any) -> str:
    """Compact JSON text of any value, lone surrogates included."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def holds(container: Any, part: str | int) -> bool:
    """Whether an object has this name, or a list this index."""
    if isinstance(container, dict):
        return part in container
    return isinstance(container, list) and isinstance(part, int) and 0 <= part < len(cast(list[Any], container))


def ref_of(schema: Any) -> str | None:
    reference = as_object(schema).get("$ref")
    return reference if isinstance(reference, str) else None


def definition_ref(name: str) -> JsonObject:
    """A schema that refers to a definition of its own document."""
    return {"$ref": f"#/$defs/{name}"}


def resolve_ref(schema: JsonObject, whole: JsonObject) -> JsonObject:
    """The schema that a local `$ref` refers to, merged with its siblings; empty where it leads nowhere.

    Only references into the same document are followed; nothing is ever fetched.
    """
    for _ in range(_MAX_HOPS):
        reference = ref_of(schema)
        if reference is None:
            return schema
        siblings = {key: part for key, part in schema.items() if key != "$ref"}
        schema = {**as_object(resolve_pointer(reference, whole)), **siblings}
    return {}


def resolve_pointer(reference: str, whole: Any) -> Any:
    """The value at a local reference (`#`, `#/$defs/Address`), or None."""
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
