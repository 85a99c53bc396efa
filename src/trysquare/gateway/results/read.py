"""Reads of stored results, and `$from` references to them."""

from __future__ import annotations

from typing import Any, Literal, cast

from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.core.untrusted import cleaned_text, cleaned_value
from trysquare.gateway.models import ResultOrigin
from trysquare.gateway.results.query import run_query
from trysquare.gateway.results.store import ReadOn, ResultStore, StoredResult

CHARACTERS = 8_000
MAX_CHARACTERS = 32_000
MATCHES = 50
MAX_MATCHES = 1_000

Unit = Literal["characters", "lines"]


async def read_result(
    results: ResultStore,
    handle: str,
    *,
    context: CallContext,
    path: str | None = None,
    grep: str | None = None,
    offset: int = 0,
    length: int | None = None,
    unit: Unit = "characters",
    read_call: ReadOn | None = None,
) -> Result[Any]:
    """Part of a large result. `offset` and `length` count characters or lines, or matches of `grep` or `path`."""
    if path is not None and grep is not None:
        raise InvalidArguments(
            "`path` and `grep` exclude each other.",
            code=ErrorCode.VALIDATION_INVALID_PARAM,
            instruction="Send one of the two.",
        )
    stored = results.find(handle, principal=context.principal.subject)
    query: JsonObject = {"handle": handle}
    if grep is not None:
        query["grep"] = grep
        value, following = await _grep(stored, results, grep, offset, _bounded(length, MATCHES, MAX_MATCHES))
    elif path is not None:
        query["path"] = path
        value, following = await _query(stored, results, path, offset, _bounded(length, MATCHES, MAX_MATCHES))
    else:
        value, following = await _slice(stored, results, offset, length, unit)
    on: JsonObject | None = None
    if following is not None:
        value["more_from"] = following
        on = {**query, "offset": following, **({} if length is None else {"length": length})}
    meta = ResultOrigin(server=stored.server, tool=stored.tool).label(handle=stored.handle)
    return Result(success=True, value=value, next=read_call(on) if on and read_call else None, meta=meta)


def _bounded(length: int | None, usual: int, most: int) -> int:
    return min(length or usual, most)


async def _slice(
    stored: StoredResult, results: ResultStore, offset: int, length: int | None, unit: Unit
) -> tuple[JsonObject, int | None]:
    def read() -> tuple[str, bool]:
        views = results.views_of(stored)
        if unit == "lines":
            return views.text.lines(offset, _bounded(length, MATCHES, MAX_MATCHES))
        return views.text.slice(offset, _bounded(length, CHARACTERS, MAX_CHARACTERS))

    text, has_more = await run_in_thread(read)
    read_on = offset + (text.count("\n") + 1 if unit == "lines" else len(text))
    return {"text": cleaned_text(text)}, read_on if has_more else None


async def _grep(
    stored: StoredResult, results: ResultStore, pattern: str, offset: int, length: int
) -> tuple[JsonObject, int | None]:
    views = await run_in_thread(lambda: results.views_of(stored))
    job = {"kind": "grep", "pattern": pattern, "offset": offset, "length": length, "budget": MAX_CHARACTERS}
    found = await run_query(job, views.text.data)
    matches = [{**match, "text": cleaned_text(match["text"])} for match in found["matches"]]
    return {"matches": matches}, offset + len(matches) if found["more"] else None


async def _query(
    stored: StoredResult, results: ResultStore, path: str, offset: int, length: int
) -> tuple[JsonObject, int | None]:
    views = await run_in_thread(lambda: results.views_of(stored))
    job = {"kind": "query", "path": path, "offset": offset, "length": length, "budget": MAX_CHARACTERS}
    found = await run_query(job, views.json)
    value: JsonObject = {"values": cleaned_value(found["values"])}
    if "large" in found:
        value["large"] = cleaned_value(found["large"])
    shown = len(found["values"]) or 1
    return value, offset + shown if found["more"] else None


FROM = "$from"
_NAMES = frozenset({FROM, "path"})
_MAX_DEPTH = 64


async def resolve_references(inputs: JsonObject, results: ResultStore, context: CallContext) -> JsonObject:
    """The inputs with every reference to a stored result replaced; the same object if there is none.

    `{"$from": "HANDLE"}` is the text, `{"$from": "HANDLE", "path": "$.rows[*].id"}` the values at a path.
    """
    if not holds_reference(inputs):
        return inputs
    return cast(JsonObject, await _resolved(inputs, results, context.principal.subject))


def is_reference(value: Any) -> bool:
    """Whether a value is an object of `$from` and optionally `path`."""
    return isinstance(value, dict) and FROM in value and _NAMES.issuperset(cast(JsonObject, value))


def holds_reference(value: Any, depth: int = 0) -> bool:
    """Whether there is a reference anywhere in a value."""
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


async def _resolved(value: Any, results: ResultStore, principal: str, depth: int = 0) -> Any:
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


async def _value_of(reference: JsonObject, results: ResultStore, principal: str) -> Any:
    handle, path = reference[FROM], reference.get("path")
    if not isinstance(handle, str) or not (path is None or isinstance(path, str)):
        raise InvalidArguments(
            "`$from` must be the handle of a large result, and `path` a JSONPath; both are strings.",
            instruction='Send {"$from": "HANDLE", "path": "$.rows[*].id"}.',
            fields={"outcome": "not_sent"},
        )
    stored = results.find(handle, principal=principal)
    views = await run_in_thread(lambda: results.views_of(stored))
    if path is None:
        return await run_in_thread(lambda: views.text.data.read().decode())
    found = await run_query({"kind": "value", "path": path}, views.json)
    return found["value"]
