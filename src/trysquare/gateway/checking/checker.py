"""Checker: what is known of a tool's inputs, made once for each definition."""

from __future__ import annotations

from dataclasses import dataclass

from trysquare.catalog.schema_parts import as_object, properties_of
from trysquare.core.types import JsonObject
from trysquare.gateway.checking.checking import CompiledSchema
from trysquare.gateway.checking.compiling import compile_schema
from trysquare.gateway.checking.local_refs import resolved
from trysquare.gateway.server import Definition

_MOST_KEPT = 5_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Checker:
    """A tool's inputs: their schema, ready to be asked."""

    schema: JsonObject
    compiled: CompiledSchema
    names: frozenset[str]
    is_open: bool
    """Whether names that the schema does not know are plainly welcome."""

    @property
    def whole(self) -> JsonObject:
        """The schema as an object, whatever the server sent."""
        return as_object(self.schema)


_CHECKERS: dict[int, Checker] = {}


def checker_of(definition: Definition) -> Checker:
    """The checker of a definition. Known by the very object of its schema, which nothing changes in place."""
    schema = definition.input_schema
    known = _CHECKERS.get(id(schema))
    if known is not None and known.schema is schema:
        return known
    whole = as_object(schema)
    root = resolved(whole, whole)
    made = Checker(
        schema=schema,
        compiled=compile_schema(schema),
        names=frozenset(as_object(root.get("properties"))),
        is_open="additionalProperties" in root or "patternProperties" in root or not properties_of(root),
    )
    while len(_CHECKERS) >= _MOST_KEPT:
        _CHECKERS.pop(next(iter(_CHECKERS)), None)
    _CHECKERS[id(schema)] = made
    return made
