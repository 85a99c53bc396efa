"""Whether a value is what the text of a schema says, and values written as a schema says."""

from __future__ import annotations

from typing import Any, cast

from trysquare.core.error_places import inner_schema, options_of, resolved
from trysquare.core.types import JsonObject

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}
_TRUTHS = {"true": True, "1": True, "yes": True, "y": True, "t": True, "on": True}
_FALSEHOODS = {"false": False, "0": False, "no": False, "n": False, "f": False, "off": False}
_MAX_DEPTH = 30


def satisfies(value: Any, schema: Any, whole: JsonObject, depth: int = 0) -> bool:
    """Whether a value is what `type_text` says of a schema. What the text does not tell is not looked at."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return True
    known = resolved(cast(JsonObject, schema), whole.get("$defs", {}))
    if "const" in known:
        return _is_same(value, known["const"])
    if isinstance(choices := known.get("enum"), list):
        return any(_is_same(value, choice) for choice in cast(list[Any], choices))
    if isinstance(options := known.get("anyOf", known.get("oneOf")), list):
        return any(satisfies(value, option, whole, depth + 1) for option in cast(list[Any], options))
    if not _is_of_kind(value, known.get("type")):
        return False
    if not isinstance(value, list):
        return True
    fixed = cast(list[Any], known.get("prefixItems", []))
    items = cast(list[Any], value)
    wanted = [*fixed, *([known.get("items")] * (len(items) - len(fixed)))]
    return len(items) >= len(fixed) and all(
        satisfies(item, each, whole, depth + 1) for item, each in zip(items, wanted, strict=True)
    )


def as_schema_says(arguments: JsonObject, schema: JsonObject) -> JsonObject:
    """A copy in which numbers and truth values that came as text, and the like, are what the schema names."""
    return cast(JsonObject, _as_schema_says(arguments, schema, schema.get("$defs", {}), 0))


def _as_schema_says(value: Any, schema: JsonObject | None, definitions: JsonObject, depth: int) -> Any:
    if schema is None or depth > _MAX_DEPTH:
        return value
    options = options_of(schema, definitions)
    if isinstance(value, dict):
        parts = cast(JsonObject, value).items()
        return {
            name: _as_schema_says(part, inner_schema(schema, name, definitions), definitions, depth + 1)
            for name, part in parts
        }
    if isinstance(value, list):
        return [
            _as_schema_says(part, inner_schema(schema, index, definitions), definitions, depth + 1)
            for index, part in enumerate(cast(list[Any], value))
        ]
    if any(satisfies(value, option, {"$defs": definitions}) for option in options):
        return value
    written = (_scalar(value, option.get("type")) for option in options)
    return next((other for other in written if other is not value), value)


def _scalar(value: Any, kind: Any) -> Any:
    if kind == "boolean" and not isinstance(value, bool) and isinstance(value, (str, int, float)):
        text = value.lower() if isinstance(value, str) else str(int(value))
        return {**_TRUTHS, **_FALSEHOODS}.get(text, value)
    if kind in ("integer", "number") and isinstance(value, (str, bool)):
        return _number(value, is_whole=kind == "integer")
    return value


def _number(value: str | bool, *, is_whole: bool) -> Any:
    try:
        read = float(value)
        return int(value) if is_whole or isinstance(value, bool) or read.is_integer() else read
    except (ValueError, OverflowError):
        return value


def _is_of_kind(value: Any, kind: Any) -> bool:
    kinds = cast(list[Any], kind) if isinstance(kind, list) else [kind]
    return any(_is_one_kind(value, each) for each in kinds)


def _is_one_kind(value: Any, kind: Any) -> bool:
    if kind not in _KINDS:
        return True
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS[kind])


def _is_same(value: Any, choice: Any) -> bool:
    return value == choice and isinstance(value, bool) == isinstance(choice, bool)
