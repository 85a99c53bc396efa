"""Results: what a server answered, labelled with its origin, cleaned where there is something to clean, and bounded.

A small answer passes on as the bytes that came. It is looked through for hidden characters, and rewritten only where
some are found. A large one is kept aside, and the model gets its beginning and a handle.
"""

from __future__ import annotations

import functools
from typing import Any

from trysquare.core.context import CallContext
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.gateway.answers.answer import Answer
from trysquare.gateway.answers.large import LargeResults, ReadOn
from trysquare.gateway.answers.origin import Origin
from trysquare.gateway.answers.passing_on import passed_on

LONG = 256 * 1024
"""Bytes from which on an answer is looked through in a thread."""


def is_short(answer: Answer, limit: int) -> bool:
    """Whether an answer passes on as it is, and at once. A limit of 0 is none."""
    size = len(answer.body)
    return size <= LONG and (limit <= 0 or size <= limit)


async def present(
    answer: Answer, origin: Origin, *, limit: int, context: CallContext, results: LargeResults, read_call: ReadOn
) -> Result[Any]:
    """A server's answer as the result of our tool."""
    if is_short(answer, limit):
        return passed_on(answer, origin)
    if 0 < limit < len(answer.body):
        from trysquare.gateway.answers.setting_aside import set_aside

        principal = context.principal.subject
        work = functools.partial(
            set_aside, answer, origin, limit=limit, results=results, principal=principal, read_call=read_call
        )
        return await run_in_thread(work)
    return await run_in_thread(functools.partial(passed_on, answer, origin))
