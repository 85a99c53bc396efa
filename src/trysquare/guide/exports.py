"""Exports: content written into files that other programs read, and whether those files still say the same.

A file that people also write in keeps their text: only the part between two marks belongs to the export. The first mark
carries the digest of that part, so that a change of the content and an edit of the file can be told apart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trysquare.core.errors import InvalidArguments, NotFound
from trysquare.files.sealed_folder import SealedFolder
from trysquare.guide.config import ExportEntry
from trysquare.guide.delivery import Piece
from trysquare.guide.fetch import Request, fetch
from trysquare.guide.instructions import instruction_for
from trysquare.guide.project import Project
from trysquare.guide.skills import skill_name

Format: TypeAlias = Literal["agents", "claude", "cursor"]
State: TypeAlias = Literal["same", "missing", "content changed", "edited by hand"]

DEFAULT_PATHS: dict[Format, str] = {"agents": "AGENTS.md", "claude": "CLAUDE.md", "cursor": ".cursor/rules"}
_BEGIN = re.compile(r"<!-- trysquare guide begin: (?P<expression>[^\n]*?) sha256:(?P<digest>[0-9a-f]{64}) -->\n")
_END = "<!-- trysquare guide end -->\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportedFile:
    """One file of an export: where it lies, what it should hold, and how the one on disk compares."""

    path: str
    text: str
    """The whole file as it should be, with the text that people wrote around our part."""
    state: State


def planned(project: Project, root: SealedFolder, entry: ExportEntry) -> list[ExportedFile]:
    """What an export would write, and how that compares to what lies there now."""
    pieces = fetch(project, Request(expression=entry.expression)).delivery.sent
    if entry.format == "cursor":
        parts = {f"{entry.path}/{_cursor_name(piece)}": _cursor_rule(piece) for piece in pieces}
    elif entry.format in ("agents", "claude"):
        parts = {entry.path: _sections(pieces)}
    else:
        raise InvalidArguments(f"`{entry.format}` is no format: agents, claude and cursor are.")
    return [_compared(root, path, body, entry) for path, body in parts.items()]


def write(root: SealedFolder, files: list[ExportedFile]) -> list[str]:
    """Write the files that differ, each whole. Returns their paths."""
    written = [file for file in files if file.state != "same"]
    for file in written:
        root.write_bytes(file.path, file.text.encode("utf-8", "replace"))
    return [file.path for file in written]


def _compared(root: SealedFolder, path: str, body: str, entry: ExportEntry) -> ExportedFile:
    head, rest = _head(body) if entry.format == "cursor" else ("", body)
    block = _block(rest, entry.expression)
    try:
        existing = root.read_text(path).replace("\r\n", "\n")
    except NotFound:
        return ExportedFile(path=path, text=head + block, state="missing")
    return ExportedFile(path=path, text=_placed(existing, head, block), state=_state(existing, rest))


def _block(body: str, expression: str) -> str:
    shown = expression.replace("\n", " ").replace("-->", "")
    return f"<!-- trysquare guide begin: {shown} sha256:{_digest(body)} -->\n{body}{_END}"


def _placed(existing: str, head: str, block: str) -> str:
    """The existing file with our part in it: in the place of the old one, or at its end."""
    found = _part(existing)
    if found is not None:
        return existing[: found[0]] + block + existing[found[1] :]
    if not existing.strip():
        return head + block
    return existing.rstrip("\n") + "\n\n" + block


def _state(existing: str, body: str) -> State:
    found = _part(existing)
    if found is None:
        return "missing"
    begin = _BEGIN.match(existing, found[0])
    assert begin is not None
    lies_there = existing[begin.end() : found[1]].removesuffix(_END)
    if lies_there == body:
        return "same"
    return "content changed" if _digest(lies_there) == begin["digest"] else "edited by hand"


def _part(existing: str) -> tuple[int, int] | None:
    begin = _BEGIN.search(existing)
    if begin is None:
        return None
    end = existing.find(_END, begin.end())
    return None if end < 0 else (begin.start(), end + len(_END))


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()


def _sections(pieces: tuple[Piece, ...]) -> str:
    return "".join(f"{_section(piece)}\n" for piece in pieces)


def _section(piece: Piece) -> str:
    title = "" if piece.text.lstrip().startswith("#") else f"## {piece.document.title or piece.document.id.name}\n\n"
    return f"{title}{piece.text.strip()}\n\n_{instruction_for(piece)}_\n"


def _cursor_name(piece: Piece) -> str:
    return f"{skill_name(str(piece.document.id))}.mdc"


def _cursor_rule(piece: Piece) -> str:
    about: Mapping[str, str] = {
        "description": piece.document.description or piece.document.title or str(piece.document.id),
        "alwaysApply": "true" if piece.document.type == "agent/requirements" else "false",
    }
    lines = "".join(f"{key}: {value}\n" for key, value in about.items())
    return f"---\n{lines}---\n{piece.text.strip()}\n"


def _head(body: str) -> tuple[str, str]:
    """Part a rule into its front matter, which has to come first in its file, and the rest."""
    end = body.index("---\n", 4) + 4
    return body[:end], body[end:]
