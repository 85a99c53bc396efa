"""Loosening: a schema without the parts that no grammar can express, where whoever gets the value checks it anyway."""

from __future__ import annotations

import copy
import logging
from functools import lru_cache
from typing import Any, cast

from trysquare.core.result import dump_json
from trysquare.core.types import JsonObject
from trysquare.grammar.refusals import Unsupported
from trysquare.grammar.schema_reading import read_schema
from trysquare.grammar.shapes import ShapeTree

MOST_PARTS = 50
"""Parts of one schema that are left out before its values are left free altogether."""
ANY_OBJECT: JsonObject = {"type": "object"}

_log = logging.getLogger(__name__)


def read_loosely(schema: JsonObject, *, label: str, tool: str) -> ShapeTree:
    """The shapes of a tool's arguments, without what cannot be expressed. What is left out is told in the log."""
    current = copy.deepcopy(schema)
    for _ in range(MOST_PARTS):
        try:
            return read_schema(current, label=label)
        except Unsupported as refusal:
            if not _remove(current, refusal.pointer):
                break
            _tell(tool, dump_json(schema), refusal.pointer, refusal.why)
    _tell(tool, dump_json(schema), "/", "what is left of it cannot be expressed either")
    return read_schema(ANY_OBJECT, label=label)


def _remove(schema: JsonObject, pointer: str) -> bool:
    """Take the part at a JSON pointer out of a schema; whether there was one."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    if not steps:
        return False
    place: Any = schema
    for step in steps[:-1]:
        if isinstance(place, dict):
            place = cast(JsonObject, place).get(step)
        elif isinstance(place, list) and step.isdecimal() and int(step) < len(cast(list[Any], place)):
            place = cast(list[Any], place)[int(step)]
        else:
            return False
    if isinstance(place, dict):
        return cast(JsonObject, place).pop(steps[-1], None) is not None
    return False


@lru_cache(maxsize=512)
def _tell(tool: str, schema: str, pointer: str, why: str) -> None:
    """Said once for each part of a schema, however often the schema is read."""
    _log.warning("the arguments of `%s` are held to a grammar without %s: %s", tool, pointer, why)
