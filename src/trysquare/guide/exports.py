"""Exports: content written into files that other programs read, and whether those files still say the same.

A file that people also write in keeps their text: only the part between two marks belongs to the export. The first mark
carries the digest of that part, so that a change of the content and an edit of the file can be told apart.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trysquare.core.errors import NotFound
from trysquare.files.sealed_folder import SealedFolder
from trysquare.guide.config import ExportEntry
from trysquare.guide.delivery import Piece
from trysquare.guide.fetch import Request, fetch
from trysquare.guide.instructions import instruction_for
from trysquare.guide.project import Project
from trysquare.guide.skills import skill_name

State: TypeAlias = Literal["same", "missing", "content changed", "edited by hand", "left over"]
"""How a file on disk compares: `left over` is a part whose document is no longer exported."""

_BEGIN = re.compile(r"<!-- trysquare guide begin: (?P<expression>[^\n]*?) sha256:(?P<digest>[0-9a-f]{64}) -->\n")
_END = "<!-- trysquare guide end -->\n"
_RULE = ".mdc"


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportedFile:
    """One file of an export: where it lies, what it should hold, and how the one on disk compares."""

    path: str
    text: str | None
    """The whole file as it should be, with the text that people wrote around our part; None where it should go."""
    state: State


def planned(project: Project, root: SealedFolder, entry: ExportEntry) -> list[ExportedFile]:
    """What an export would write, and how that compares to what lies there now."""
    pieces = fetch(project, Request(expression=entry.expression)).delivery.sent
    if entry.format != "cursor":
        return [_compared(root, entry.path, "", _sections(pieces), entry.expression)]
    rules = {f"{entry.path}/{name}": piece for name, piece in _rule_names(pieces)}
    files = [
        _compared(root, path, _rule_head(piece), _text(piece) + "\n", entry.expression)
        for path, piece in rules.items()
    ]
    return [*files, *_left_over(root, entry.path, known=set(rules))]


def write_files(root: SealedFolder, files: Sequence[ExportedFile]) -> list[str]:
    """Write the files that differ, each whole. Returns their paths."""
    written = [file for file in files if file.state != "same"]
    for file in written:
        if file.text is None:
            root.remove(file.path)
        else:
            root.write_bytes(file.path, file.text.encode("utf-8", "replace"))
    return [file.path for file in written]


def _compared(root: SealedFolder, path: str, head: str, body: str, expression: str) -> ExportedFile:
    block = _block(body, expression)
    try:
        existing = root.read_text(path).replace("\r\n", "\n")
    except NotFound:
        return ExportedFile(path=path, text=head + block, state="missing")
    return ExportedFile(path=path, text=_placed(existing, head, block), state=_state(existing, body))


def _left_over(root: SealedFolder, folder: str, *, known: set[str]) -> Iterator[ExportedFile]:
    """Rules that an earlier export wrote and that this one does not."""
    try:
        found = [entry.path for entry in root.walk(folder, max_depth=1)]
    except NotFound:
        return
    for path in found:
        if path in known or not path.endswith(_RULE):
            continue
        existing = root.read_text(path).replace("\r\n", "\n")
        if (place := _part(existing)) is None:
            continue
        if _is_edited(existing, place):
            yield ExportedFile(path=path, text=None, state="edited by hand")
        else:
            yield ExportedFile(path=path, text=None, state="left over")


def _block(body: str, expression: str) -> str:
    shown = " ".join(expression.replace("-->", "").split())
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
    place = _part(existing)
    if place is None:
        return "missing"
    if _body(existing, place) == body:
        return "same"
    return "edited by hand" if _is_edited(existing, place) else "content changed"


def _part(existing: str) -> tuple[int, int] | None:
    begin = _BEGIN.search(existing)
    if begin is None:
        return None
    end = existing.find(_END, begin.end())
    return None if end < 0 else (begin.start(), end + len(_END))


def _body(existing: str, place: tuple[int, int]) -> str:
    begin = _BEGIN.match(existing, place[0])
    assert begin is not None
    return existing[begin.end() : place[1]].removesuffix(_END)


def _is_edited(existing: str, place: tuple[int, int]) -> bool:
    begin = _BEGIN.match(existing, place[0])
    assert begin is not None
    return _digest(_body(existing, place)) != begin["digest"]


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()


def _sections(pieces: Sequence[Piece]) -> str:
    return "".join(f"{_section(piece)}\n" for piece in pieces)


def _text(piece: Piece) -> str:
    # A document that quoted our own mark would end the part before its end.
    return piece.text.replace("\r\n", "\n").replace(_END.strip(), "").strip()


def _section(piece: Piece) -> str:
    text = _text(piece)
    title = "" if text.startswith("#") else f"## {piece.document.title or piece.document.id.name}\n\n"
    return f"{title}{text}\n\n_{instruction_for(piece)}_\n"


def _rule_names(pieces: Sequence[Piece]) -> Iterator[tuple[str, Piece]]:
    """A file name for each rule; two documents whose names become the same are told apart by a number."""
    taken: set[str] = set()
    for piece in pieces:
        name = base = skill_name(str(piece.document.id))
        number = 2
        while name in taken:
            name, number = f"{base}-{number}", number + 1
        taken.add(name)
        yield f"{name}{_RULE}", piece


def _rule_head(piece: Piece) -> str:
    """The front matter of a new rule. Once it is there it belongs to the people, who may add globs to it."""
    about = piece.document.description or piece.document.title or str(piece.document.id)
    always = "true" if piece.document.type == "agent/requirements" else "false"
    return f"---\ndescription: {json.dumps(about, ensure_ascii=False)}\nalwaysApply: {always}\n---\n"
