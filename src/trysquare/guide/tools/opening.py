"""set_project: which folders the guide may read at all. See docs/templates/tools/README.md."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import InvalidArguments
from trysquare.core.metadata import Consent
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.guide.config import NAME
from trysquare.guide.projects import Projects
from trysquare.guide.tools.answers import CHANGING, ONLY_FULL
from trysquare.store.projects import RegisteredProject


class SetProject(ToolArguments):
    """Arguments of set_project."""

    name: Annotated[str, Field(description="By which calls choose it")]
    root: Annotated[str, Field(description="Absolute path of its folder")]
    content: Annotated[tuple[str, ...], Field(description="Folders of content below it")] = ("docs/guide",)


def project_tools(projects: Projects) -> list[Tool]:
    """The tool that registers projects. It needs consent: it decides what may be read."""

    def set_project(args: SetProject) -> Result[Any]:
        """Register a project, so that calls can name it."""
        opened = projects.register(_registered(args))
        return Result[Any].ok(
            {"name": opened.name, "categories": [each.name for each in opened.categories()]},
            fields={"project": opened.name},
            instruction=f"Pass project={opened.name!r} to the calls that are meant for it.",
        )

    return [
        tool(set_project, **CHANGING, category="projects",
             profiles=ONLY_FULL, consent=Consent(question="Let the guide read {content} of {root} as project {name}?"),
             use_when="the person wants another project's content too"),
    ]  # fmt: skip


def _registered(args: SetProject) -> RegisteredProject:
    root = Path(args.root)
    if not NAME.fullmatch(args.name):
        raise InvalidArguments(f"`{args.name[:80]}` is no project name: up to 50 letters, digits, `-`, `_`, `.` are.")
    if not root.is_absolute() or not os.path.isdir(root):
        raise InvalidArguments(f"`{args.root[:200]}` is not the absolute path of a folder.")
    resolved = root.resolve()
    folders = tuple(_resolved(resolved, each) for each in args.content)
    for given, folder in zip(args.content, folders, strict=True):
        if not folder.is_relative_to(resolved) or not os.path.isdir(folder):
            raise InvalidArguments(f"`{given[:200]}` is not a folder inside {resolved}.")
    return RegisteredProject(name=args.name, root=resolved, folders=folders)


def _resolved(root: Path, given: str) -> Path:
    try:
        return (root / given).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        # A link that leads to itself, a name that is too long, or a letter that no name can hold.
        raise InvalidArguments(f"`{given[:80]!r}` is not a folder inside {root}: {error}.") from None
