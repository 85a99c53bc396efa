"""Exports of content to AGENTS.md and rule files of clients, and detection of edits in them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, TypeAlias

from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.files.root import DirectoryRoot
from trysquare.guide.config import ExportEntry, ExportFormat, GuideFile
from trysquare.guide.expression import parse_expression
from trysquare.guide.library import change_guide_file
from trysquare.guide.projects import Project
from trysquare.guide.resources import unique_names
from trysquare.guide.retrieval import ContentPart, Request, fetch, instruction_for

# A file that people also write in keeps their text: only the part between two marks belongs to the export. The first
# mark carries the digest of that part, which tells a change of the content from an edit of the file.


State: TypeAlias = Literal["same", "missing", "content changed", "edited by hand", "left over"]
"""How a file on disk compares: `left over` is a part whose document is no longer exported."""

_BEGIN = re.compile(r"<!-- trysquare guide begin: (?P<expression>[^\n]*?) sha256:(?P<digest>[0-9a-f]{64}) -->\n")
_END = "<!-- trysquare guide end -->\n"
_RULE = ".mdc"


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportedFile:
    """One file of an export: path, expected content, and its state on disk."""

    path: str
    text: str | None
    """The expected file with the text around the generated block; None if the file should be removed."""
    state: State


def planned(project: Project, root: DirectoryRoot, entry: ExportEntry) -> list[ExportedFile]:
    """What an export would write, compared with the files on disk."""
    pieces = fetch(project, Request(expression=entry.expression)).delivery.sent
    if entry.format != "cursor":
        body = "".join(f"{_section(piece)}\n" for piece in pieces)
        return [_compared(root, entry.path, "", body, entry.expression)]
    names = unique_names(str(piece.document.id) for piece in pieces)
    rules = {f"{entry.path}/{name}{_RULE}": piece for name, piece in zip(names, pieces, strict=True)}
    files = [
        _compared(root, path, _rule_head(piece), _text(piece) + "\n", entry.expression) for path, piece in rules.items()
    ]
    return [*files, *_stale_rules(root, entry.path, known=set(rules))]


def _compared(root: DirectoryRoot, path: str, head: str, body: str, expression: str) -> ExportedFile:
    shown = " ".join(expression.replace("-->", "").split())
    block = f"<!-- trysquare guide begin: {shown} sha256:{_digest(body)} -->\n{body}{_END}"
    try:
        existing = root.read_text(path).replace("\r\n", "\n")
    except NotFound:
        existing = ""
    if (place := _part(existing)) is None:
        # People's own text stays, with the block after it.
        before = existing.rstrip("\n") + "\n\n" if existing.strip() else head
        return ExportedFile(path=path, text=before + block, state="missing")
    text = existing[: place.start] + block + existing[place.end :]
    state = "same" if text == existing else "edited by hand" if place.is_edited else "content changed"
    return ExportedFile(path=path, text=text, state=state)


def _stale_rules(root: DirectoryRoot, folder: str, *, known: set[str]) -> Iterator[ExportedFile]:
    """Rules that an earlier export wrote and that this one does not."""
    try:
        found = [entry.path for entry in root.walk(folder, max_depth=1)]
    except NotFound:
        return
    for path in found:
        if path not in known and path.endswith(_RULE):
            place = _part(root.read_text(path).replace("\r\n", "\n"))
            if place is not None:
                yield ExportedFile(path=path, text=None, state="edited by hand" if place.is_edited else "left over")


class _Part(NamedTuple):
    start: int
    end: int
    body: str
    is_edited: bool


def _part(existing: str) -> _Part | None:
    begin = _BEGIN.search(existing)
    if begin is None:
        return None
    if (end := existing.find(_END, begin.end())) < 0:
        return _part_without_end(existing, begin)
    body = existing[begin.end() : end]
    return _Part(begin.start(), end + len(_END), body, _digest(body) != begin["digest"])


def _part_without_end(existing: str, begin: re.Match[str]) -> _Part:
    """The part whose end mark was removed: up to the line where its digest is met, else nothing but the first mark.

    What follows may be somebody's own text, so it is never replaced.
    """
    found, start = hashlib.sha256(), begin.end()
    for line in existing[start:].splitlines(keepends=True):
        found.update(line.encode("utf-8", "replace"))
        start += len(line)
        if found.hexdigest() == begin["digest"]:
            return _Part(begin.start(), start, existing[begin.end() : start], is_edited=True)
    return _Part(begin.start(), begin.end(), "", is_edited=True)


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()


def _text(piece: ContentPart) -> str:
    # A document that quoted our own mark would end the part before its end.
    return piece.text.replace("\r\n", "\n").replace(_END.strip(), "").strip()


def _section(piece: ContentPart) -> str:
    text = _text(piece)
    title = "" if text.startswith("#") else f"## {piece.document.title or piece.document.id.name}\n\n"
    return f"{title}{text}\n\n_{instruction_for(piece)}_\n"


def _rule_head(piece: ContentPart) -> str:
    """The front matter of a new rule. Later edits of it are preserved."""
    about = piece.document.description or piece.document.title or str(piece.document.id)
    always = "true" if piece.document.type == "agent/requirements" else "false"
    return f"---\ndescription: {json.dumps(about, ensure_ascii=False)}\nalwaysApply: {always}\n---\n"


STANDARD_PATHS: dict[ExportFormat, str] = {"agents": "AGENTS.md", "claude": "CLAUDE.md", "cursor": ".cursor/rules"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Exported:
    """Outcome of an export: the state of every file, and the files written."""

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
    return [entry for library in project.libraries for entry in library.file.exports]


def compare(project: Project, entries: Sequence[ExportEntry]) -> Exported:
    """How the files of exports compare with the content. Writes nothing."""
    with DirectoryRoot(project.root) as root:
        return Exported(files=tuple(file for entry in entries for file in planned(project, root, entry)))


def export(project: Project, entries: Sequence[ExportEntry], *, overwrite_edits: bool = False) -> Exported:
    """Write all files of exports that differ, or none: a part that was edited by hand is refused first."""
    with DirectoryRoot(project.root) as root:
        files = [file for entry in entries for file in planned(project, root, entry)]
        edited = [file.path for file in files if file.state == "edited by hand"]
        if edited and not overwrite_edits:
            raise ToolError(
                f"Edited by hand since it was exported: {', '.join(edited)}. Nothing was written.",
                code=ErrorCode.STATE_CONFLICT,
                instruction="Move the edits into the content first, or have them overwritten.",
            )
        written = [file for file in files if file.state != "same"]
        for file in written:
            if file.text is None:
                root.remove(file.path)
            else:
                root.write_bytes(file.path, file.text.encode("utf-8", "replace"))
    return Exported(files=tuple(files), written=tuple(file.path for file in written))


def remember(project: Project, entry: ExportEntry) -> None:
    """Store an export in `guide.json`, replacing one with the same path."""
    if entry in remembered(project):
        return

    def change(file: GuideFile) -> GuideFile:
        others = [each for each in file.exports if each.path != entry.path]
        return file.model_copy(update={"exports": [*others, entry]})

    change_guide_file(project.guide_file()[0], change)


def writable_paths(project: Project) -> list[str]:
    """Paths that a tool may export to: defaults, `write_paths`, and existing exports."""
    named = [path for library in project.libraries for path in library.file.write_paths]
    kept = [entry.path for entry in remembered(project)]
    return list(dict.fromkeys((*STANDARD_PATHS.values(), *named, *kept)))


def require_writable(project: Project, path: str) -> None:
    allowed = writable_paths(project)
    if not any(path == each or path.startswith(each.rstrip("/") + "/") for each in allowed):
        raise ToolError(
            f"`{path[:80]}` may not be written. Allowed are {', '.join(f'`{each}`' for each in allowed)}.",
            code=ErrorCode.VALIDATION_INVALID_PARAM,
            instruction="Use one of these places, or ask the user to allow the path.",
        )


def set_writable(project: Project, path: str, *, allowed: bool) -> list[str]:
    """Allow or disallow exports to a path. Returns all allowed paths."""
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
