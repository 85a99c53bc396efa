"""Passing on: a whole answer, as the bytes that came unless something in them had to be cleaned or told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_core import to_json

from trysquare.core.result import Result
from trysquare.core.untrusted import cleaned_json
from trysquare.gateway.answers.answer import Answer
from trysquare.gateway.answers.json_tokens import as_utf8
from trysquare.gateway.answers.origin import Origin
from trysquare.gateway.answers.parts import split, with_content
from trysquare.gateway.answers.result_shape import LONG, require_readable


def passed_on(answer: Answer, origin: Origin) -> Result[Any]:
    """The whole answer with our label. Raises `MalformedResult` for one that clients could not read."""
    if len(answer.body) > LONG:
        require_readable(answer.body)
    body, cleaned = cleaned_json(answer.body)
    body = as_utf8(body)
    if origin.notes:
        body = _with_notes(body, origin.notes)
    return Result.relay(body, is_error=answer.is_error, meta=origin.label(cleaned=cleaned))


def _with_notes(body: bytes, notes: Sequence[str]) -> bytes:
    """The answer with one more text, since few clients show a model what stands in a label."""
    parts = split(body)
    if parts.whole is not None:
        return body
    note = to_json({"type": "text", "text": " ".join(("Note:", *notes))})
    return with_content(body, [*(part.raw for part in parts.blocks), note])
