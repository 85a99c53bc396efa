"""Reading: a part of a large result, by place, by pattern or by JSONPath."""

from __future__ import annotations

from typing import Any, Literal

from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import cleaned_text, cleaned_value
from trysquare.gateway.answers.isolated import run_isolated
from trysquare.gateway.answers.large import KeptResult, LargeResults, ReadOn
from trysquare.gateway.answers.origin import Origin

CHARACTERS = 8_000
MAX_CHARACTERS = 32_000
MATCHES = 50
MAX_MATCHES = 1_000

Unit = Literal["characters", "lines"]


async def read_result(
    results: LargeResults,
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
    """A part of a large result. `offset` and `length` count characters or lines, or what `grep` or `path` finds."""
    if path is not None and grep is not None:
        raise InvalidArguments(
            "`path` and `grep` were both given, and a result is read by one of them.",
            code=ErrorCode.VALIDATION_INVALID_PARAM,
            instruction="Leave out one of the two.",
        )
    kept = results.find(handle, principal=context.principal.subject)
    asked: JsonObject = {"handle": handle}
    if grep is not None:
        asked["grep"] = grep
        value, following = await _grepped(kept, results, grep, offset, _bounded(length, MATCHES, MAX_MATCHES))
    elif path is not None:
        asked["path"] = path
        value, following = await _queried(kept, results, path, offset, _bounded(length, MATCHES, MAX_MATCHES))
    else:
        value, following = await _sliced(kept, results, offset, length, unit)
    return _answered(kept, value, asked, following, length, read_call)


def _bounded(length: int | None, usual: int, most: int) -> int:
    return min(length or usual, most)


async def _sliced(
    kept: KeptResult, results: LargeResults, offset: int, length: int | None, unit: Unit
) -> tuple[JsonObject, int | None]:
    def read() -> tuple[str, bool]:
        views = results.views_of(kept)
        if unit == "lines":
            return views.text.lines(offset, _bounded(length, MATCHES, MAX_MATCHES))
        return views.text.slice(offset, _bounded(length, CHARACTERS, MAX_CHARACTERS))

    text, has_more = await run_in_thread(read)
    read_on = offset + (text.count("\n") + 1 if unit == "lines" else len(text))
    return {"text": cleaned_text(text)}, read_on if has_more else None


async def _grepped(
    kept: KeptResult, results: LargeResults, pattern: str, offset: int, length: int
) -> tuple[JsonObject, int | None]:
    views = await run_in_thread(lambda: results.views_of(kept))
    job = {"kind": "grep", "pattern": pattern, "offset": offset, "length": length, "budget": MAX_CHARACTERS}
    found = await run_isolated(job, views.text.data)
    matches = [{**match, "text": cleaned_text(match["text"])} for match in found["matches"]]
    return {"matches": matches}, offset + len(matches) if found["more"] else None


async def _queried(
    kept: KeptResult, results: LargeResults, path: str, offset: int, length: int
) -> tuple[JsonObject, int | None]:
    views = await run_in_thread(lambda: results.views_of(kept))
    job = {"kind": "query", "path": path, "offset": offset, "length": length, "budget": MAX_CHARACTERS}
    found = await run_isolated(job, views.json)
    value: JsonObject = {"values": cleaned_value(found["values"])}
    if "large" in found:
        value["large"] = cleaned_value(found["large"])
    shown = len(found["values"]) or 1
    return value, offset + shown if found["more"] else None


def _answered(
    kept: KeptResult,
    value: JsonObject,
    asked: JsonObject,
    following: int | None,
    length: int | None,
    read_call: ReadOn | None,
) -> Result[Any]:
    on: JsonObject | None = None
    if following is not None:
        value["more_from"] = following
        on = {**asked, "offset": following, **({} if length is None else {"length": length})}
    meta = Origin(server=kept.server, tool=kept.tool).label(handle=kept.handle)
    return Result(success=True, value=value, next=read_call(on) if on and read_call else None, meta=meta)
