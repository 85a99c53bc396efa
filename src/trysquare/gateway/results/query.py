"""Grep and JSONPath over stored results: in-process for simple paths, else in a worker process."""

from __future__ import annotations

import json
import re
import sys
import threading
from contextlib import suppress
from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.threads import run_in_thread
from trysquare.gateway.results.query_worker import run_job
from trysquare.gateway.results.store import SpillFile

_SIMPLE = re.compile(
    r"\$(?:\.[A-Za-z_][A-Za-z0-9_]*|\[(?:0|-?[1-9][0-9]{0,8})\]"
    r"|\['[^'\\\x00-\x1f]*'\]|\[\"[^\"\\\x00-\x1f]*\"\]|\[\*\]|\.\*)*"
)
"""A path that visits each part of a value at most once."""
SMALL = 2 * 1024 * 1024
"""Maximum bytes of a value that a simple path reads in this process."""
SECONDS = 10
MEMORY = 2 * 1024 * 1024 * 1024
_MAX_OUTPUT = 512 * 1024 * 1024
_SCRIPT = Path(__file__).with_name("query_worker.py")


async def run_query(job: JsonObject, data: SpillFile) -> JsonObject:
    """The result of a job. A pattern or path that may take long runs in a worker with limits of time and memory."""
    is_quick = data.size <= SMALL and is_simple(job.get("path", ""))
    found = await run_in_thread(lambda: run_job(job, data.read()) if is_quick else _run(job, data))
    if "error" in found:
        raise ToolError(found["error"], code=ErrorCode.VALIDATION_INVALID_PARAM, instruction=found.get("instruction"))
    return found


def is_simple(path: str) -> bool:
    return _SIMPLE.fullmatch(path) is not None


# Limited, because each may use that much memory.
_AT_ONCE = threading.BoundedSemaphore(2)


def _run(job: JsonObject, data: SpillFile) -> JsonObject:
    from trysquare.processes.worker import run_worker

    given = {**job, "descriptor": data.descriptor, "size": data.size, "seconds": SECONDS, "memory": MEMORY}
    with _AT_ONCE, suppress(TimeoutError):
        ended = run_worker(
            [sys.executable, "-I", str(_SCRIPT)],
            given=json.dumps(given).encode(),
            seconds=SECONDS + 2,
            limit=_MAX_OUTPUT,
            environment={},
            descriptors=(data.descriptor,),
        )
        if (ended.status or 0) >= 0 and 0 < len(ended.output) < _MAX_OUTPUT:
            return json.loads(ended.output)
    raise ToolError(
        f"Timeout: the query exceeded {SECONDS} seconds or {MEMORY >> 30} GB of memory.",
        code=ErrorCode.TOOL_TIMEOUT,
        instruction="Use a simpler pattern or a more exact path.",
    )
