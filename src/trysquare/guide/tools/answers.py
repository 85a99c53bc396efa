"""What every tool of the guide answers with: the project is always named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.result import Result
from trysquare.core.types import JsonObject
from trysquare.guide.project import Project


class ProjectArguments(ToolArguments):
    """Arguments of a tool that works on one project."""

    project: Annotated[str | None, Field(description="Project to use; the server's own where left out")] = None


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
