"""What every tool of the guide answers with: the project is always named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from pydantic import Field, field_validator

from trysquare.core.arguments import ToolArguments
from trysquare.core.result import Result
from trysquare.core.types import JsonObject
from trysquare.guide.project import Project


class Shared(TypedDict):
    """What many tools have in common."""

    room: str
    read_only: bool
    destructive: bool
    idempotent: bool
    result_limit: None


READING: Shared = {
    "room": "guide",
    "read_only": True,
    "destructive": False,
    "idempotent": True,
    "result_limit": None,
}
"""A tool that only tells something, in a short answer."""
CHANGING: Shared = {**READING, "read_only": False}
"""A tool that sets something; what was there before can be set again."""
REMOVING: Shared = {**CHANGING, "destructive": True}
ONLY_FULL = frozenset({"full"})
LEVELS = frozenset({"full", "levels"})


class ProjectArguments(ToolArguments):
    """Arguments of a tool that works on one project."""

    project: Annotated[str | None, Field(description="By default the server's own")] = None

    @field_validator("*")
    @classmethod
    def _is_text(cls, value: Any) -> Any:
        # Half a character, which JSON can name, can be stored in no file and no table.
        written = json.dumps(value, ensure_ascii=False, default=str)
        if not written.isascii() and any("\ud800" <= letter <= "\udfff" for letter in written):
            raise ValueError("it holds half of a character (an unpaired surrogate)")
        return value


def answer(
    project: Project,
    value: Any = None,
    *,
    message: str | None = None,
    instruction: str | None = None,
    warnings: tuple[str, ...] = (),
    next: JsonObject | None = None,
    fields: Mapping[str, Any] | None = None,
) -> Result[Any]:
    """A result that names the project that it is of."""
    return Result[Any].ok(
        value,
        message=message,
        instruction=instruction,
        warnings=warnings,
        next=next,
        fields={"project": project.name, **(fields or {})},
    )
