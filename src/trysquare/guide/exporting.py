"""Exporting: which exports a project has, where they may be written, and bringing them up to date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.files.sealed_folder import SealedFolder
from trysquare.guide.config import ExportEntry, ExportFormat, GuideFile
from trysquare.guide.exports import ExportedFile, planned, write_files
from trysquare.guide.expression import parse_expression
from trysquare.guide.guide_json import change_guide_file
from trysquare.guide.project import Project

STANDARD_PATHS: dict[ExportFormat, str] = {"agents": "AGENTS.md", "claude": "CLAUDE.md", "cursor": ".cursor/rules"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Exported:
    """What became of exports: every file with how it lay there, and those that were written."""

    files: tuple[ExportedFile, ...]
    written: tuple[str, ...] = ()

    @property
    def drifted(self) -> tuple[ExportedFile, ...]:
        return tuple(file for file in self.files if file.state != "same")


def new_entry(expression: str, format: ExportFormat, path: str | None = None) -> ExportEntry:
    """An export by what it holds and where it goes; each format has its usual place."""
    parse_expression(expression)
    return ExportEntry(path=inner_path(path or STANDARD_PATHS[format]), expression=expression, format=format)


def remembered(project: Project) -> list[ExportEntry]:
    """The exports that `guide.json` names."""
    return [entry for library in project.libraries for entry in library.file.exports]


def compare(project: Project, entries: Sequence[ExportEntry]) -> Exported:
    """How the files of exports compare with the content. Writes nothing."""
    with SealedFolder(project.root) as root:
        return Exported(files=tuple(file for entry in entries for file in planned(project, root, entry)))


def export(project: Project, entries: Sequence[ExportEntry], *, overwrite_edits: bool = False) -> Exported:
    """Write all files of exports that differ, or none: a part that was edited by hand is refused first."""
    with SealedFolder(project.root) as root:
        files = [file for entry in entries for file in planned(project, root, entry)]
        edited = [file.path for file in files if file.state == "edited by hand"]
        if edited and not overwrite_edits:
            raise ToolError(
                f"Edited by hand since it was exported: {', '.join(edited)}. Nothing was written.",
                code=ErrorCode.STATE_CONFLICT,
                instruction="Move the edits into the content first, or have them overwritten.",
            )
        written = write_files(root, files)
    return Exported(files=tuple(files), written=tuple(written))


def remember(project: Project, entry: ExportEntry) -> None:
    """Keep an export in `guide.json`, in place of one that goes to the same path."""
    if entry in remembered(project):
        return

    def change(file: GuideFile) -> GuideFile:
        others = [each for each in file.exports if each.path != entry.path]
        return file.model_copy(update={"exports": [*others, entry]})

    change_guide_file(project.guide_file()[0], change)


def writable_paths(project: Project) -> list[str]:
    """Where a tool may write exports: the usual places, what `write_paths` names, and exports that are there."""
    named = [path for library in project.libraries for path in library.file.write_paths]
    kept = [entry.path for entry in remembered(project)]
    return list(dict.fromkeys((*STANDARD_PATHS.values(), *named, *kept)))


def require_writable(project: Project, path: str) -> None:
    """Refuse a path that nobody allowed to be written."""
    allowed = writable_paths(project)
    if not any(path == each or path.startswith(each.rstrip("/") + "/") for each in allowed):
        raise ToolError(
            f"`{path[:80]}` may not be written. Allowed are {', '.join(f'`{each}`' for each in allowed)}.",
            code=ErrorCode.VALIDATION_INVALID_PARAM,
            instruction="Use one of these places, or ask the person to allow the path.",
        )


def set_writable(project: Project, path: str, *, allowed: bool) -> list[str]:
    """Let exports be written to a path, or no longer. Returns all places where they may be."""
    inner = inner_path(path)

    def change(file: GuideFile) -> GuideFile:
        if not allowed and inner not in file.write_paths:
            raise NotFound(f"`{inner[:80]}` is not among the allowed paths.", code=ErrorCode.RESOURCE_NOT_FOUND)
        others = [each for each in file.write_paths if each != inner]
        return file.model_copy(update={"write_paths": [*others, inner] if allowed else others})

    change_guide_file(project.guide_file()[0], change)
    return writable_paths(project)


def inner_path(text: str) -> str:
    """A path below the project's folder, in its plain form."""
    path = PurePosixPath(text)
    if not text.strip() or path.is_absolute() or ".." in path.parts or "\0" in text or str(path) == ".":
        raise InvalidArguments(
            f"`{text[:80]}` does not name a file inside the project.",
            instruction="Use a path relative to the project's folder, without `..`.",
        )
    return str(path)
