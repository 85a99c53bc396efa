"""Reads of stored results, and `$from` references to them."""

from __future__ import annotations

from typing import Any, cast

from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.core.untrusted import cleaned_text, cleaned_value
from trysquare.gateway.arguments import FROM, MAX_DEPTH, ReadCall, is_reference
from trysquare.gateway.models import ResultOrigin
from trysquare.gateway.results.query import run_query
from trysquare.gateway.results.store import ReadOn, ResultStore, Views

CHARACTERS = 8_000
MAX_CHARACTERS = 32_000
MATCHES = 50
MAX_MATCHES = 1_000


async def read_result(
    results: ResultStore, call: ReadCall, *, context: CallContext, read_call: ReadOn | None = None
) -> Result[Any]:
    """Part of a large result. `offset` and `length` count characters or lines, or matches of `grep` or `path`."""
    if call.path and call.grep:
        raise InvalidArguments(
            "`path` and `grep` exclude each other.",
            code=ErrorCode.VALIDATION_INVALID_PARAM,
            instruction="Send one of the two.",
        )
    stored = results.find(call.handle, principal=context.principal.subject)
    views = await run_in_thread(lambda: results.views_of(stored))
    is_text = not call.path and not call.grep
    value, following = await (_slice(views, call) if is_text else _search(views, call))
    on: JsonObject | None = None
    if following is not None:
        value["more_from"] = following
        on = {**call.model_dump(exclude_defaults=True, exclude={"offset", "length"}), "offset": following}
        on |= {} if call.length is None else {"length": call.length}
    meta = ResultOrigin(server=stored.server, tool=stored.tool).label(handle=stored.handle)
    return Result(success=True, value=value, next=read_call(on) if on and read_call else None, meta=meta)


async def _slice(views: Views, call: ReadCall) -> tuple[JsonObject, int | None]:
    if call.unit == "lines":
        read, length = views.text.lines, min(call.length or MATCHES, MAX_MATCHES)
    else:
        read, length = views.text.slice, min(call.length or CHARACTERS, MAX_CHARACTERS)
    text, has_more = await run_in_thread(lambda: read(call.offset, length))
    read_on = call.offset + (text.count("\n") + 1 if call.unit == "lines" else len(text))
    return {"text": cleaned_text(text)}, read_on if has_more else None


async def _search(views: Views, call: ReadCall) -> tuple[JsonObject, int | None]:
    is_grep = bool(call.grep)
    wanted = {"kind": "grep", "pattern": call.grep} if is_grep else {"kind": "query", "path": call.path}
    length = min(call.length or MATCHES, MAX_MATCHES)
    job = {**wanted, "offset": call.offset, "length": length, "budget": MAX_CHARACTERS}
    found = await run_query(job, views.text.data if is_grep else views.json)
    # A value that is too large to return counts as one.
    shown = len(found["matches" if is_grep else "values"]) or 1
    value = {name: cleaned_value(part) for name, part in found.items() if name != "more"}
    return value, call.offset + shown if found["more"] else None


async def resolve_references(inputs: JsonObject, results: ResultStore, context: CallContext) -> JsonObject:
    """The inputs with every reference to a stored result replaced.

    `{"$from": "HANDLE"}` is the text, `{"$from": "HANDLE", "path": "$.rows[*].id"}` the values at a path.
    """
    return cast(JsonObject, await _resolved(inputs, results, context.principal.subject))


async def _resolved(value: Any, results: ResultStore, principal: str, depth: int = 0) -> Any:
    if depth > MAX_DEPTH:
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
