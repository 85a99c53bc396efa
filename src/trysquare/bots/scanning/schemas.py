"""Schemas of rules: whether a JSON Schema can be used at all, found out before anything is held against it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from trysquare.core.types import JsonObject


def schema_problem(schema: JsonObject) -> str | None:
    """Why a JSON Schema cannot be used, or None where it can."""
    # Imported late: most bots are loaded by commands that need no schema.
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        place = "/".join(str(piece) for piece in error.absolute_path)
        return f"this is no JSON Schema, at `{place or '/'}`: {error.message[:200]}"
    except RecursionError:
        return "this schema is nested too deeply"
    return next(_unusable(schema, schema), None)


def _unusable(schema: Any, whole: JsonObject) -> Iterator[str]:
    if isinstance(schema, list):
        for each in cast("list[Any]", schema):
            yield from _unusable(each, whole)
    if not isinstance(schema, Mapping):
        return
    keys = cast("Mapping[str, Any]", schema)
    yield from _wrong_reference(keys, whole)
    for name, each in keys.items():
        # What stands in these is a value and no schema.
        if name not in ("const", "enum", "default", "examples"):
            yield from _unusable(each, whole)


def _wrong_reference(keys: Mapping[str, Any], whole: JsonObject) -> Iterator[str]:
    reference = keys.get("$ref")
    if not isinstance(reference, str):
        return
    if not reference.startswith("#"):
        yield f"the schema refers to `{reference[:80]}`, which lies outside of it; only `#/…` can be followed"
    elif not _leads_somewhere(reference, whole):
        yield f"the schema refers to `{reference[:80]}`, and it has no such part"


def _leads_somewhere(reference: str, whole: JsonObject) -> bool:
    if reference == "#":
        return True
    if not reference.startswith("#/"):
        return any(reference[1:] == name for name in _anchors(whole))
    found: Any = whole
    for piece in reference[2:].split("/"):
        name = piece.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and name in found:
            found = cast("Mapping[str, Any]", found)[name]
        elif isinstance(found, list) and name.isdigit() and int(name) < len(cast("list[Any]", found)):
            found = cast("list[Any]", found)[int(name)]
        else:
            return False
    return True


def _anchors(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        keys = cast("Mapping[str, Any]", schema)
        if isinstance(anchor := keys.get("$anchor"), str):
            yield anchor
        for each in keys.values():
            yield from _anchors(each)
    elif isinstance(schema, list):
        for each in cast("list[Any]", schema):
            yield from _anchors(each)


def expression_problem(pattern: str) -> str | None:
    """Why a text is no regular expression, or None where it is one."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"this is no regular expression: {error}"
    return None
