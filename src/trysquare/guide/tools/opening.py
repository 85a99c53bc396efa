"""set_project and remove_project: which folders the guide may read at all. See docs/templates/tools/README.md."""

from __future__ import annotations

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
from trysquare.store.projects import RegisteredProject

_FULL = frozenset({"full"})


class SetProject(ToolArguments):
    """Arguments of set_project."""

    name: Annotated[str, Field(description="Name of the project, by which later calls choose it")]
    root: Annotated[str, Field(description="Absolute path of its folder")]
    content: Annotated[tuple[str, ...], Field(description="Folders of content below it")] = ("docs/guide",)


class RemoveProject(ToolArguments):
    """Arguments of remove_project."""

    name: Annotated[str, Field(description="Name of the project")]


def project_tools(projects: Projects) -> list[Tool]:
    """The tools that register projects. Both need consent: they decide what may be read."""

    def set_project(args: SetProject) -> Result[Any]:
        """Register a project, so that calls can name it."""
        opened = projects.register(_registered(args))
        return Result[Any].ok(
            {"name": opened.name, "categories": [each.name for each in opened.categories()]},
            fields={"project": opened.name},
            instruction=f"Pass project={opened.name!r} to the calls that are meant for it.",
        )

    def remove_project(args: RemoveProject) -> Result[Any]:
        """Take a project out of the register; its files stay."""
        projects.unregister(args.name)
        return Result[Any].ok({"removed": args.name})

    return [
        tool(set_project, room="guide", category="projects", idempotent=True, read_only=False, destructive=False,
             profiles=_FULL, consent=Consent(question="Let the guide read {content} of {root} as project {name}?"),
             use_when="the person wants the content of another project at hand"),
        tool(remove_project, room="guide", category="projects", idempotent=True, read_only=False, destructive=True,
             profiles=_FULL, consent=Consent(question="Take the project {name} out of the guide's register?"),
             use_when="the person no longer wants a project at hand"),
    ]  # fmt: skip


def _registered(args: SetProject) -> RegisteredProject:
    root = Path(args.root)
    if not NAME.fullmatch(args.name):
        raise InvalidArguments(f"`{args.name[:80]}` is no project name: up to 50 letters, digits, `-`, `_`, `.` are.")
    if not root.is_absolute() or not root.is_dir():
        raise InvalidArguments(f"`{args.root[:200]}` is not the absolute path of a folder.")
    resolved = root.resolve()
    folders = tuple((resolved / each).resolve() for each in args.content)
    for given, folder in zip(args.content, folders, strict=True):
        if not folder.is_relative_to(resolved) or not folder.is_dir():
            raise InvalidArguments(f"`{given[:200]}` is not a folder inside {resolved}.")
    return RegisteredProject(name=args.name, root=resolved, folders=folders)
