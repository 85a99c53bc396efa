"""Answers: what every tool of the workbench returns: `output` to read, and the files that it changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trysquare.core.errors import ErrorCode
from trysquare.core.result import Result
from trysquare.core.types import JsonObject


def answered(
    output: str,
    *,
    modified_files: Sequence[str] = (),
    data: JsonObject | None = None,
    message: str | None = None,
    instruction: str | None = None,
    warnings: Sequence[str] = (),
    next: JsonObject | None = None,
) -> Result[Any]:
    """The work was done."""
    return Result.ok(
        message=message,
        instruction=instruction,
        warnings=tuple(warnings),
        next=next,
        fields=_fields(output, modified_files, data),
    )


def failed(
    error: str,
    *,
    code: ErrorCode,
    output: str,
    modified_files: Sequence[str] = (),
    data: JsonObject | None = None,
    instruction: str | None = None,
) -> Result[Any]:
    """The work was tried, and did not come out right: there is something to read all the same."""
    return Result.failure(error, code=code, instruction=instruction, fields=_fields(output, modified_files, data))


def _fields(output: str, modified_files: Sequence[str], data: JsonObject | None) -> JsonObject:
    fields: JsonObject = {"output": output, "modified_files": list(modified_files)}
    return fields if data is None else {**fields, "data": data}
