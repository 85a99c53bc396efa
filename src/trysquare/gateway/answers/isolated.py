"""Isolated work: patterns and queries over large values run in a process of their own, which has an end.

A pattern can take for ever and a query can fill the memory, and neither can be interrupted from within. The process
gets the value's open file, a limit of time and one of memory, and is ended when it goes beyond them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.gateway.answers.isolated_work import Refused, document_of, one_or_all, page
from trysquare.gateway.answers.kept_bytes import KeptBytes
from trysquare.gateway.answers.simple_path import Step, follow, is_singular, simple_path

SMALL = 2 * 1024 * 1024
"""Bytes up to which a value is read in this process, where its path is simple."""
SECONDS = 10
MEMORY = 2 * 1024 * 1024 * 1024
_SCRIPT = Path(__file__).with_name("isolated_work.py")


async def run_isolated(job: JsonObject, data: KeptBytes) -> JsonObject:
    """What the job found in the data, or a `ToolError` that says why it found nothing."""
    steps = simple_path(job["path"]) if "path" in job and data.size <= SMALL else None
    if steps is not None:
        return await run_in_thread(lambda: _follow(steps, job, data))
    return await run_in_thread(lambda: _run(job, data))


def _follow(steps: Sequence[Step], job: JsonObject, data: KeptBytes) -> JsonObject:
    """The same job in this process, for a path that cannot take long."""
    try:
        found = follow(steps, document_of(data.read()))
        if job["kind"] == "query":
            return page(found, job)
        return one_or_all(list(found), job, is_singular=is_singular(steps))
    except Refused as refused:
        raise _refusal(str(refused), refused.instruction) from None


# Each may fill its share of the memory.
_AT_ONCE = threading.BoundedSemaphore(2)


def _run(job: JsonObject, data: KeptBytes) -> JsonObject:
    wanted = {**job, "descriptor": data.descriptor, "size": data.size, "seconds": SECONDS, "memory": MEMORY}
    with _AT_ONCE:
        try:
            ended = subprocess.run(
                [sys.executable, "-I", str(_SCRIPT)],
                input=json.dumps(wanted).encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=(data.descriptor,),
                start_new_session=True,
                timeout=SECONDS + 2,
                env={},
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _took_too_long() from None
    return _answer(ended)


def _answer(ended: subprocess.CompletedProcess[bytes]) -> JsonObject:
    if ended.returncode < 0 or not ended.stdout:
        raise _took_too_long()
    found: Any = json.loads(ended.stdout)
    if "error" in found:
        raise _refusal(found["error"], found.get("instruction"))
    return found


def _refusal(message: str, instruction: str | None) -> ToolError:
    return ToolError(message, code=ErrorCode.VALIDATION_INVALID_PARAM, instruction=instruction)


def _took_too_long() -> ToolError:
    return ToolError(
        f"It took more than {SECONDS} seconds or {MEMORY >> 30} GB of memory, and was ended.",
        code=ErrorCode.TOOL_TIMEOUT,
        instruction="Use a simpler pattern or a more exact path.",
    )
