"""Shelf: the documents of one category as they were last read, and whether the disk still says the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from trysquare.core.errors import ToolError
from trysquare.files.entries import Entry, FolderStates, is_listed, is_recent
from trysquare.files.sealed_folder import SealedFolder
from trysquare.guide.config import Limits
from trysquare.guide.content import Category
from trysquare.guide.document import Document, DocumentId
from trysquare.guide.ordered import OrderedDocuments
from trysquare.guide.reading import read_document
from trysquare.guide.selection import matches

ENDING = ".md"
MAX_FILES_SEEN = 200_000
"""Files of any kind below one category's folder; beyond that somebody pointed it at the wrong place."""
MAX_FOLDERS_COMPARED = 200
"""Folders whose state is looked at in a call; in larger trees the watcher alone tells of new files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Something in the folder that could not be used, and why."""

    path: str
    reason: str


@dataclass(kw_only=True)
class Shelf:
    """One category as it was last read."""

    category: Category
    documents: dict[str, Document] = field(default_factory=dict[str, Document])
    """By path."""
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    folders: FolderStates = field(default_factory=dict[str, tuple[int, ...]])
    problems: dict[str, Problem] = field(default_factory=dict[str, Problem])
    ordered: OrderedDocuments = field(default_factory=OrderedDocuments)


def read_shelf(folder: SealedFolder, category: Category, limits: Limits, known: Shelf | None) -> Shelf:
    """Read a category; documents whose files have not changed since they were known are kept."""
    shelf = Shelf(category=category)
    before: Mapping[str, Entry] = {} if known is None or known.category != category else known.entries
    for entry in _entries(folder, category, limits, shelf):
        if known is not None and before.get(entry.path) == entry and entry.path in known.documents:
            shelf.documents[entry.path] = known.documents[entry.path]
        else:
            _read_entry(folder, entry, limits, shelf)
        # A file that changed just now could change once more without its times telling: it is read again next time.
        shelf.entries[entry.path] = replace(entry, version=()) if is_recent(entry.version[-1]) else entry
    shelf.ordered = OrderedDocuments(shelf.documents[path] for path in sorted(shelf.documents))
    return shelf


def has_other_folders(folder: SealedFolder, shelf: Shelf) -> bool:
    """Whether files came or went since the shelf was read."""
    return any(
        not state or _folder_state(folder, path) != state
        for path, state in islice(shelf.folders.items(), MAX_FOLDERS_COMPARED)
    )


def has_changed(folder: SealedFolder, shelf: Shelf, path: str) -> bool:
    """Whether a file is another one than was read."""
    known = shelf.entries.get(path)
    if known is None:
        return False
    try:
        return folder.stat(path) != known
    except ToolError:
        return True


def _folder_state(folder: SealedFolder, path: str) -> tuple[int, ...]:
    try:
        return folder.folder_state(path)
    except ToolError:
        return ()


def _entries(folder: SealedFolder, category: Category, limits: Limits, shelf: Shelf) -> list[Entry]:
    try:
        _refuse_hidden(category)
        walked = folder.walk(category.folder, max_depth=limits.depth, visited=shelf.folders)
        seen = list(islice(walked, MAX_FILES_SEEN + 1))
    except ToolError as error:
        _report(shelf, category.folder, error.message)
        return []
    if len(seen) > MAX_FILES_SEEN:
        _report(shelf, category.folder, f"more than {MAX_FILES_SEEN:,} files; the rest is not looked at")
    fitting = [entry for entry in seen[:MAX_FILES_SEEN] if _fits(entry.path, category)]
    if len(fitting) > limits.documents:
        _report(shelf, category.folder, f"{len(fitting):,} documents; only the first {limits.documents:,} are read")
    return fitting[: limits.documents]


def _refuse_hidden(category: Category) -> None:
    if not all(is_listed(piece) for piece in category.folder.split("/") if piece != "." and piece):
        raise ToolError("a folder that is hidden, begins with `_` or lies outside is not read")


def _read_entry(folder: SealedFolder, entry: Entry, limits: Limits, shelf: Shelf) -> None:
    category = shelf.category
    identity = DocumentId(category=category.name, name=_name(entry.path, category))
    try:
        text = folder.read_text(entry.path, limit=limits.document_bytes)
        shelf.documents[entry.path] = read_document(identity, text, path=entry.path)
    except ToolError as error:
        _report(shelf, entry.path, error.message)


def _report(shelf: Shelf, path: str, reason: str) -> None:
    shelf.problems[path] = Problem(path=path, reason=reason)


def _name(path: str, category: Category) -> str:
    below = path if category.folder == "." else path.removeprefix(category.folder + "/")
    return below.removesuffix(ENDING)


def _fits(path: str, category: Category) -> bool:
    return path.endswith(ENDING) and any(matches(_name(path, category), pattern) for pattern in category.patterns)
