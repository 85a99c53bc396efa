"""Results: what a server answered, labelled with its origin, cleaned where there is something to clean, and bounded.

A small answer passes on as the bytes that came. It is looked through for hidden characters, and rewritten only where
some are found. A large one is kept aside, and the model gets its beginning and a handle.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from trysquare.core.context import CallContext
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.gateway.answers.answer import Answer
from trysquare.gateway.answers.large import LargeResults, ReadOn
from trysquare.gateway.answers.origin import Origin
from trysquare.gateway.answers.passing_on import passed_on
from trysquare.gateway.server import ServerConfig

LONG = 256 * 1024
"""Bytes from which on an answer is looked through in a thread."""


async def present(
    answer: Answer,
    *,
    server: ServerConfig,
    tool: str,
    context: CallContext,
    results: LargeResults,
    read_call: ReadOn,
    notes: Sequence[str] = (),
    outcome: str = "done",
    replayed: bool = False,
) -> Result[Any]:
    """A server's answer as the result of our tool."""
    origin = Origin(server=server.name, tool=tool, outcome=outcome, notes=tuple(notes), replayed=replayed)
    size = len(answer.body)
    if 0 < server.result_bytes < size:
        from trysquare.gateway.answers.setting_aside import set_aside

        principal = context.principal.subject
        work = functools.partial(
            set_aside, answer, origin, limit=server.result_bytes, results=results, principal=principal,
            read_call=read_call,
        )  # fmt: skip
        return await run_in_thread(work)
    if size > LONG:
        return await run_in_thread(functools.partial(passed_on, answer, origin))
    return passed_on(answer, origin)
