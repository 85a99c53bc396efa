"""Isolated work: patterns and queries over large values run in a process of their own, which has an end.

A pattern can take for ever and a query can fill the memory, and neither can be interrupted from within. The process
gets the value's open file, a limit of time and one of memory, and is ended when it goes beyond them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.gateway.large import KeptBytes

SECONDS = 10
MEMORY = 2 * 1024 * 1024 * 1024
_SCRIPT = Path(__file__).with_name("isolated_work.py")


async def run_isolated(job: JsonObject, data: KeptBytes) -> JsonObject:
    """What the job found in the data, or a `ToolError` that says why it found nothing."""
    return await run_in_thread(lambda: _run(job, data))


def _run(job: JsonObject, data: KeptBytes) -> JsonObject:
    wanted = {**job, "descriptor": data.descriptor, "size": data.size, "seconds": SECONDS, "memory": MEMORY}
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
        raise ToolError(found["error"], code=ErrorCode.VALIDATION_INVALID_PARAM, instruction=found.get("instruction"))
    return found


def _took_too_long() -> ToolError:
    return ToolError(
        f"It took more than {SECONDS} seconds or {MEMORY >> 30} GB of memory, and was ended.",
        code=ErrorCode.TOOL_TIMEOUT,
        instruction="Use a simpler pattern or a more exact path.",
    )
