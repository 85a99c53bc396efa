"""References: a large result as an input of another tool, without passing through the model.

`{"$from": "HANDLE", "path": "$.rows[*].id"}` inside the inputs stands for the values that the path leads to, and
`{"$from": "HANDLE"}` for the whole text. A handle belongs to one principal, and nobody else can refer to it.
"""

from __future__ import annotations

from typing import Any, cast

from trysquare.core.context import CallContext
from trysquare.core.errors import InvalidArguments
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.gateway.answers.isolated import run_isolated
from trysquare.gateway.answers.large import LargeResults

FROM = "$from"
_NAMES = frozenset({FROM, "path"})
_MAX_DEPTH = 64


async def resolve(inputs: JsonObject, results: LargeResults, context: CallContext) -> JsonObject:
    """The inputs with every reference replaced by what it stands for; the same object where there is none."""
    if not holds_reference(inputs):
        return inputs
    return cast(JsonObject, await _resolved(inputs, results, context.principal.subject))


def is_reference(value: Any) -> bool:
    """Whether a value is a reference: an object of `$from`, and perhaps `path`, and nothing else."""
    return isinstance(value, dict) and FROM in value and _NAMES.issuperset(cast(JsonObject, value))


def holds_reference(value: Any, depth: int = 0) -> bool:
    """Whether there is a reference anywhere in a value."""
    # A loop, since every call is looked through; most of its inputs are texts and numbers.
    if isinstance(value, dict):
        if FROM in value and is_reference(value):
            return True
        parts = cast(JsonObject, value).values()
    elif isinstance(value, list):
        parts = cast(list[Any], value)
    else:
        return False
    for part in parts:
        if isinstance(part, (dict, list)) and depth < _MAX_DEPTH and holds_reference(part, depth + 1):
            return True
    return False


async def _resolved(value: Any, results: LargeResults, principal: str, depth: int = 0) -> Any:
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, dict):
        parts = cast(JsonObject, value)
        if is_reference(parts):
            return await _value_of(parts, results, principal)
        return {name: await _resolved(part, results, principal, depth + 1) for name, part in parts.items()}
    if isinstance(value, list):
        return [await _resolved(item, results, principal, depth + 1) for item in cast(list[Any], value)]
    return value


async def _value_of(reference: JsonObject, results: LargeResults, principal: str) -> Any:
    handle, path = reference[FROM], reference.get("path")
    if not isinstance(handle, str) or not (path is None or isinstance(path, str)):
        raise InvalidArguments(
            "`$from` must be the handle of a large result, and `path` a JSONPath; both are texts.",
            instruction='Write {"$from": "HANDLE", "path": "$.rows[*].id"}.',
            fields={"outcome": "not_sent"},
        )
    kept = results.find(handle, principal=principal)
    views = await run_in_thread(lambda: results.views_of(kept))
    if path is None:
        return await run_in_thread(lambda: views.text.data.read().decode())
    found = await run_isolated({"kind": "value", "path": path}, views.json)
    return found["value"]
