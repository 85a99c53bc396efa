"""The tools of exports: content as files for other programs. See docs/templates/tools/README.md."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from trysquare.core.errors import InvalidArguments
from trysquare.core.metadata import Consent
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.guide.config import ExportFormat
from trysquare.guide.exporting import (
    Exported,
    compare,
    export,
    new_entry,
    remember,
    remembered,
    require_writable,
    set_writable,
)
from trysquare.guide.projects import Projects
from trysquare.guide.tools.answers import ProjectArguments, answer

_FULL = frozenset({"full"})


class ExportContent(ProjectArguments):
    """Arguments of export_content."""

    expression: Annotated[str | None, Field(description="What to export; left out, all known exports again")] = None
    format: Annotated[ExportFormat, Field(description="AGENTS.md, CLAUDE.md or Cursor rules")] = "agents"
    path: Annotated[str | None, Field(description="Where to, below the project; by default the format's place")] = None
    overwrite_edits: Annotated[bool, Field(description="Replace what was edited by hand")] = False


class AllowPath(ProjectArguments):
    """Arguments of allow_path."""

    path: Annotated[str, Field(description="File or folder below the project")]
    allowed: Annotated[bool, Field(description="false takes the permission back")] = True


def exporting_tools(projects: Projects) -> list[Tool]:
    """The tools that write, check and permit exports."""

    def export_content(args: ExportContent) -> Result[Any]:
        """Write content into AGENTS.md, CLAUDE.md or Cursor rules."""
        project = projects.get(args.project)
        if args.expression is None:
            done = export(project, remembered(project), overwrite_edits=args.overwrite_edits)
            return answer(project, _told(done))
        entry = new_entry(args.expression, args.format, args.path)
        require_writable(project, entry.path)
        done = export(project, [entry], overwrite_edits=args.overwrite_edits)
        remember(project, entry)
        return answer(project, _told(done))

    def check_exports(args: ProjectArguments) -> Result[Any]:
        """Tell which exported files no longer match the content."""
        project = projects.get(args.project)
        entries = remembered(project)
        if not entries:
            raise InvalidArguments("This project has no exports yet.")
        return answer(project, _told(compare(project, entries)))

    def allow_path(args: AllowPath) -> Result[Any]:
        """Permit exports to a path, or take the permission back."""
        project = projects.get(args.project)
        return answer(project, {"write_paths": set_writable(project, args.path, allowed=args.allowed)})

    return [
        tool(export_content, room="guide", category="exports", idempotent=True, read_only=False, destructive=True,
             profiles=_FULL, consent=Consent(question="Write guide content into files of the project?"),
             use_when="the person wants the content in files that other programs read"),
        tool(check_exports, room="guide", category="exports", read_only=True, idempotent=True, profiles=_FULL,
             use_when="you need to know whether exported files are up to date"),
        tool(allow_path, room="guide", category="exports", idempotent=True, read_only=False, destructive=False,
             profiles=_FULL, consent=Consent(question="Change whether the guide may write exports to {path}?"),
             use_when="the person wants an export somewhere else than usual"),
    ]  # fmt: skip


def _told(done: Exported) -> dict[str, Any]:
    return {"files": {file.path: file.state for file in done.files}, "written": list(done.written)}
