"""Results: what a server answered, labelled with its origin, cleaned where there is something to clean, and bounded.

A small answer passes on as the bytes that came. It is looked through for hidden characters, and rewritten only where
some are found. A large one is kept aside, and the model gets its beginning and a handle.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from trysquare.core.context import CallContext
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.gateway.answer import Answer
from trysquare.gateway.hidden_text import cleaned_json
from trysquare.gateway.large import LargeResults, ReadOn
from trysquare.gateway.server import ServerConfig

ORIGIN = "trysquare/origin"
"""The name of our label in the `_meta` of a result."""
LONG = 256 * 1024
"""Bytes from which on an answer is looked through in a thread."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where a result comes from, and what was done to it on the way."""

    server: str
    tool: str
    outcome: str = "done"
    notes: tuple[str, ...] = ()
    replayed: bool = False

    def label(self, *, cleaned: int = 0, handle: str | None = None) -> JsonObject:
        """The label for `_meta`."""
        about: JsonObject = {"server": self.server, "tool": self.tool, "outcome": self.outcome}
        if self.notes:
            about["notes"] = list(self.notes)
        if self.replayed:
            about["replayed"] = True
        if cleaned:
            about["hidden_characters_removed"] = cleaned
        if handle is not None:
            about["handle"] = handle
        return {ORIGIN: about}


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
        from trysquare.gateway.setting_aside import set_aside

        principal = context.principal.subject
        work = functools.partial(
            set_aside, answer, origin, limit=server.result_bytes, results=results, principal=principal,
            read_call=read_call,
        )  # fmt: skip
        return await run_in_thread(work)
    if size > LONG:
        return await run_in_thread(functools.partial(passed_on, answer, origin))
    return passed_on(answer, origin)


def passed_on(answer: Answer, origin: Origin) -> Result[Any]:
    """The whole answer with our label; the bytes that came, unless something in them had to be cleaned."""
    body, cleaned = cleaned_json(answer.body)
    body = _valid(body)
    if origin.notes:
        body = _with_notes(body, origin.notes)
    return Result.relay(body, is_error=answer.is_error, meta=origin.label(cleaned=cleaned))


def _with_notes(body: bytes, notes: Sequence[str]) -> bytes:
    """The answer with one more text, since few clients show a model what stands in a label."""
    from trysquare.gateway.parts import split, with_content

    parts = split(body)
    if parts.whole is not None:
        return body
    note = to_json({"type": "text", "text": " ".join(("Note:", *notes))})
    return with_content(body, [*(part.raw for part in parts.blocks), note])


def _valid(body: bytes) -> bytes:
    """The same bytes where they are UTF-8, which is not known of those that nobody has read."""
    if body.isascii():
        return body
    try:
        body.decode()
    except UnicodeDecodeError:
        return body.decode(errors="replace").encode()
    return body
