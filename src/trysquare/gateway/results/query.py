"""Grep and JSONPath over stored results: in-process for simple paths, else in a worker process."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.threads import run_in_thread
from trysquare.gateway.results.query_worker import Refused, document_of, one_or_all, page
from trysquare.gateway.results.store import SpillFile
from trysquare.processes.worker import run_worker

Step: TypeAlias = str | int | None
"""A name, an index, or None for every part."""

_STEP = re.compile(
    r"\.(?P<name>[A-Za-z_][A-Za-z0-9_]*)|\[(?P<position>-?(?:0|[1-9][0-9]{0,8}))\]"
    r"|\['(?P<single>[^'\\\x00-\x1f]*)'\]|\[\"(?P<double>[^\"\\\x00-\x1f]*)\"\]|(?P<every>\[\*\]|\.\*)"
)


def simple_path(path: str) -> tuple[Step, ...] | None:
    """The steps of a path that visits each part of a value at most once, or None for any other."""
    if not path.startswith("$") or path.startswith("$-0"):
        return None
    steps: list[Step] = []
    position = 1
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None or match["position"] == "-0":
            return None
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    if match["every"] is not None:
        return None
    if match["position"] is not None:
        return int(match["position"])
    return next(name for name in (match["name"], match["single"], match["double"]) if name is not None)


def is_singular(steps: Sequence[Step]) -> bool:
    """Whether a path has one result at most."""
    return None not in steps


def follow(steps: Sequence[Step], value: Any) -> Iterator[Any]:
    """The values at a path, in order."""
    found: Iterator[Any] = iter((value,))
    for step in steps:
        found = _next(step, found)
    return found


def _next(step: Step, values: Iterator[Any]) -> Iterator[Any]:
    for value in values:
        if step is None:
            yield from _parts(value)
        elif isinstance(step, int):
            if isinstance(value, list) and -len(cast(list[Any], value)) <= step < len(cast(list[Any], value)):
                yield value[step]
        elif isinstance(value, dict) and step in value:
            yield value[step]


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from cast(JsonObject, value).values()
    elif isinstance(value, list):
        yield from cast(list[Any], value)


SMALL = 2 * 1024 * 1024
"""Maximum bytes of a value that a simple path reads in this process."""
SECONDS = 10
MEMORY = 2 * 1024 * 1024 * 1024
_MAX_OUTPUT = 512 * 1024 * 1024
_SCRIPT = Path(__file__).with_name("query_worker.py")


async def run_query(job: JsonObject, data: SpillFile) -> JsonObject:
    """The result of a job. A pattern or path that may take long runs in a worker with limits of time and memory."""
    steps = simple_path(job["path"]) if "path" in job and data.size <= SMALL else None
    if steps is not None:
        return await run_in_thread(lambda: _follow(steps, job, data))
    return await run_in_thread(lambda: _run(job, data))


def _follow(steps: Sequence[Step], job: JsonObject, data: SpillFile) -> JsonObject:
    try:
        found = follow(steps, document_of(data.read()))
        if job["kind"] == "query":
            return page(found, job)
        return one_or_all(list(found), job, is_singular=is_singular(steps))
    except Refused as refused:
        raise _refusal(str(refused), refused.instruction) from None


# Limited, because each may use that much memory.
_AT_ONCE = threading.BoundedSemaphore(2)


def _run(job: JsonObject, data: SpillFile) -> JsonObject:
    given = {**job, "descriptor": data.descriptor, "size": data.size, "seconds": SECONDS, "memory": MEMORY}
    with _AT_ONCE:
        try:
            ended = run_worker(
                [sys.executable, "-I", str(_SCRIPT)],
                given=json.dumps(given).encode(),
                seconds=SECONDS + 2,
                limit=_MAX_OUTPUT,
                environment={},
                descriptors=(data.descriptor,),
            )
        except TimeoutError:
            raise _over_limit() from None
    if (ended.status or 0) < 0 or not 0 < len(ended.output) < _MAX_OUTPUT:
        raise _over_limit()
    found: Any = json.loads(ended.output)
    if "error" in found:
        raise _refusal(found["error"], found.get("instruction"))
    return found


def _refusal(message: str, instruction: str | None) -> ToolError:
    return ToolError(message, code=ErrorCode.VALIDATION_INVALID_PARAM, instruction=instruction)


def _over_limit() -> ToolError:
    return ToolError(
        f"Timeout: the query exceeded {SECONDS} seconds or {MEMORY >> 30} GB of memory.",
        code=ErrorCode.TOOL_TIMEOUT,
        instruction="Use a simpler pattern or a more exact path.",
    )
