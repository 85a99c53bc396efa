"""Content folders, indexed by category and re-read when files change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from trysquare.core.errors import ConfigurationError, NotFound, ToolError
from trysquare.files.edit import exclusive_lock
from trysquare.files.root import DirectoryRoot
from trysquare.files.watch import Entry, FolderStates, is_listed, is_recent
from trysquare.guide.config import FILE, NAME, GuideFile, Limits, dump_guide_file, parse_guide_file
from trysquare.guide.documents import Category, Collection, Document, DocumentId, OrderedDocuments, read_document
from trysquare.guide.selection import matches

ENDING = ".md"
MAX_FILES_SEEN = 200_000
"""Files of any kind below one category's folder; beyond that somebody pointed it at the wrong place."""
MAX_FOLDERS_COMPARED = 200
"""Folders checked in a call; in larger trees only the watcher reports new files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Something in the folder that could not be used, and why."""

    path: str
    reason: str


@dataclass(kw_only=True)
class CategoryIndex:
    """One category as it was last read."""

    category: Category
    documents: dict[str, Document] = field(default_factory=dict[str, Document])
    """By path."""
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    folders: FolderStates = field(default_factory=dict[str, tuple[int, ...]])
    problems: dict[str, Problem] = field(default_factory=dict[str, Problem])
    ordered: OrderedDocuments = field(default_factory=OrderedDocuments)


def index_category(
    folder: DirectoryRoot, category: Category, limits: Limits, known: CategoryIndex | None
) -> CategoryIndex:
    """Read a category, reusing documents whose files have not changed."""
    index = CategoryIndex(category=category)
    before: Mapping[str, Entry] = {} if known is None or known.category != category else known.entries
    for entry in _entries(folder, category, limits, index):
        if known is not None and before.get(entry.path) == entry and entry.path in known.documents:
            index.documents[entry.path] = known.documents[entry.path]
        else:
            _read_entry(folder, entry, limits, index)
        # A file that changed just now could change once more without its times telling: it is read again next time.
        index.entries[entry.path] = replace(entry, version=()) if is_recent(entry.version[-1]) else entry
    index.ordered = OrderedDocuments(index.documents[path] for path in sorted(index.documents))
    return index


def has_other_folders(folder: DirectoryRoot, index: CategoryIndex) -> bool:
    """Whether files were added or removed since the index was built."""
    try:
        return any(
            not state or folder.folder_state(path) != state
            for path, state in islice(index.folders.items(), MAX_FOLDERS_COMPARED)
        )
    except ToolError:
        return True


def has_changed(folder: DirectoryRoot, index: CategoryIndex, path: str) -> bool:
    """Whether a file changed since it was read."""
    known = index.entries.get(path)
    if known is None:
        return False
    try:
        return folder.stat(path) != known
    except ToolError:
        return True


def _entries(folder: DirectoryRoot, category: Category, limits: Limits, index: CategoryIndex) -> list[Entry]:
    try:
        if not all(is_listed(piece) for piece in category.folder.split("/") if piece != "." and piece):
            raise ToolError("a folder that is hidden, begins with `_` or outside the guide is not read")
        skipped: dict[str, str] = {}
        walked = folder.walk(category.folder, max_depth=limits.depth, visited=index.folders, skipped=skipped)
        seen = list(islice(walked, MAX_FILES_SEEN + 1))
    except ToolError as error:
        _report(index, category.folder, error.message)
        return []
    if len(seen) > MAX_FILES_SEEN:
        _report(index, category.folder, f"more than {MAX_FILES_SEEN:,} files; the rest is not looked at")
    for path, reason in skipped.items():
        _report(index, path, reason)
    fitting = [entry for entry in seen[:MAX_FILES_SEEN] if _fits(entry.path, category)]
    if len(fitting) > limits.documents:
        _report(index, category.folder, f"{len(fitting):,} documents; only the first {limits.documents:,} are read")
    return fitting[: limits.documents]


def _read_entry(folder: DirectoryRoot, entry: Entry, limits: Limits, index: CategoryIndex) -> None:
    category = index.category
    identity = DocumentId(category=category.name, name=_name(entry.path, category))
    try:
        text = folder.read_text(entry.path, limit=limits.document_bytes)
        index.documents[entry.path] = read_document(identity, text, path=entry.path)
    except ToolError as error:
        _report(index, entry.path, error.message)


def _report(index: CategoryIndex, path: str, reason: str) -> None:
    index.problems[path] = Problem(path=path, reason=reason)


def _name(path: str, category: Category) -> str:
    below = path if category.folder == "." else path.removeprefix(category.folder + "/")
    return below[: -len(ENDING)] if _is_document(below) else below


def _is_document(path: str) -> bool:
    return path.lower().endswith(ENDING)


def _fits(path: str, category: Category) -> bool:
    return _is_document(path) and any(matches(_name(path, category), pattern) for pattern in category.patterns)


COMMAND_DEPTH = 4


class Library:
    """The files of one guide folder as `Content`. Reads what has changed, and only that."""

    def __init__(self, folder: Path, *, limits: Limits | None = None) -> None:
        if not folder.is_dir():
            raise ConfigurationError("directory not found.", where=str(folder), hint="Create it, or name another.")
        self._root = DirectoryRoot(folder)
        self._limits = limits or Limits()
        self._lock = threading.RLock()
        self._changes = 0
        self._file = GuideFile()
        self._collections: dict[str, Collection] = {}
        self._categories: dict[str, Category] | None = None
        """None means that the list of categories may have changed."""
        self._root_state: tuple[object, ...] = ()
        self._indexes: dict[str, CategoryIndex] = {}
        self._stale: set[str] = set()
        """Categories whose files may have changed."""
        self._unverified: set[str] | None = None
        """Categories not yet revalidated in this call; None means the root neither."""
        self._by_tag: dict[str, list[Document]] | None = None
        self._unread: dict[str, Problem] = {}

    @property
    def version(self) -> int:
        """A number that is larger after every change that was noticed."""
        with self._lock:
            for name in self._current().keys() & self._indexes.keys():
                self._revalidate(name)
            return self._changes

    @property
    def folder(self) -> DirectoryRoot:
        return self._root

    def close(self) -> None:
        self._root.close()

    @property
    def file(self) -> GuideFile:
        with self._lock:
            self._current()
            return self._file

    def revalidate(self) -> None:
        """Compare with the disk once more, at the start of a call: the watcher reports changes with a delay."""
        with self._lock:
            self._unverified = None

    def changed(self, path: str | None = None) -> None:
        """Invalidate what a change on disk affects; None means everything."""
        with self._lock:
            if path is None or path == ".":
                self._forget_categories()
                self._stale.update(self._indexes)
            elif not path.startswith((".", "_")):
                touched = [each.name for each in (self._categories or {}).values() if _concerns(path, each.folder)]
                if "/" not in path or not touched:
                    self._forget_categories()
                self._mark(touched)

    def category(self, name: str) -> Category | None:
        with self._lock:
            return self._current().get(name)

    def collection(self, name: str) -> Collection | None:
        with self._lock:
            self._current()
            return self._collections.get(name)

    def categories(self) -> Sequence[Category]:
        with self._lock:
            return tuple(self._current().values())

    def collections(self) -> Sequence[Collection]:
        with self._lock:
            self._current()
            return tuple(self._collections.values())

    def documents(self, category: str) -> Sequence[Document]:
        with self._lock:
            found = self._current().get(category)
            return () if found is None else self._index_of(found).ordered

    def tagged(self, tag: str) -> Sequence[Document]:
        with self._lock:
            indexes = [self._index_of(category) for category in self._current().values()]
            if self._by_tag is None:
                self._by_tag = {}
                for document in (each for index in indexes for each in index.ordered):
                    for each in document.tags:
                        self._by_tag.setdefault(each, []).append(document)
            return tuple(self._by_tag.get(tag, ()))

    def problems(self) -> Sequence[Problem]:
        """What could not be read, by path."""
        with self._lock:
            indexes = [self._index_of(category) for category in self._current().values()]
            return [*(problem for index in indexes for problem in index.problems.values()), *self._unread.values()]

    def texts_below(self, folder: str) -> list[tuple[str, str]]:
        """Paths and texts of the Markdown files below a folder that is not a category."""
        try:
            found = [each.path for each in self._root.walk(folder, max_depth=COMMAND_DEPTH)]
        except NotFound:
            return []
        texts: list[tuple[str, str]] = []
        unread: dict[str, Problem] = {}
        for path in (each for each in found if each.endswith(ENDING)):
            try:
                texts.append((path, self._root.read_text(path, limit=self._limits.document_bytes)))
            except ToolError as error:
                unread[path] = Problem(path=path, reason=error.message)
        with self._lock:
            self._unread = unread
        return texts

    def is_current(self, documents: Iterable[Document]) -> bool:
        """Whether these documents match the disk; changed ones are re-read at the next use."""
        with self._lock:
            known = [
                (index, path)
                for each in documents
                if (path := each.path) is not None and (index := self._indexes.get(each.id.category)) is not None
            ]
            root = self._root
        changed = [(index, path) for index, path in known if has_changed(root, index, path)]
        with self._lock:
            self._mark(index.category.name for index, _ in changed)
        return not changed

    def _current(self) -> dict[str, Category]:
        """The categories by name, read again if they may have changed."""
        if self._unverified is None:
            self._revalidate_root()
        if self._categories is None:
            self._categories = self._read_categories()
        if self._unverified is None:
            self._unverified = set(self._categories)
        return self._categories

    def _revalidate_root(self) -> None:
        if not self._root.is_at_its_path() and self._root.root.is_dir():
            # The folder was removed and made anew, as a change of branch does: what was held is not it any more.
            self._root = DirectoryRoot(self._root.root)
            self._indexes.clear()
            self._forget_categories()
        elif self._categories is not None and (not self._root_state or self._state_of_root() != self._root_state):
            self._forget_categories()

    def _state_of_root(self) -> tuple[object, ...]:
        """A fingerprint of the list of categories; empty if it changed just now."""
        state = self._root.folder_state()
        try:
            entry = self._root.stat(FILE)
        except ToolError:
            return (state,) if state else ()
        return () if not state or is_recent(entry.version[-1]) else (state, entry)

    def _read_categories(self) -> dict[str, Category]:
        state = self._state_of_root()
        file = self.read_file()
        found = {name: Category(name=name, folder=name) for name in self._root.folders() if NAME.fullmatch(name)}
        named = {name: replace(each, folder=_tidy(each.folder)) for name, each in file.category_values().items()}
        categories = {**found, **named}
        self._indexes = {name: index for name, index in self._indexes.items() if categories.get(name) == index.category}
        self._file, self._collections, self._root_state = file, file.collection_values(), state
        self._by_tag = None
        return categories

    def read_file(self) -> GuideFile:
        """`guide.json` as it is on disk now."""
        where = str(self._root.root / FILE)
        try:
            return parse_guide_file(self._root.read_text(FILE), where=where)
        except NotFound:
            return GuideFile()
        except ToolError as error:
            raise ConfigurationError(error.message, where=where) from None
        except RecursionError:
            raise ConfigurationError("nested too deeply.", where=where) from None

    def _forget_categories(self) -> None:
        self._categories = None
        self._changes += 1

    def _mark(self, names: Iterable[str]) -> None:
        fresh = set(names) - self._stale
        self._stale |= fresh
        self._changes += len(fresh)

    def _revalidate(self, name: str) -> None:
        if self._unverified is None or name not in self._unverified:
            return
        self._unverified.discard(name)
        index = self._indexes.get(name)
        if index is not None and has_other_folders(self._root, index):
            self._mark([name])

    def _index_of(self, category: Category) -> CategoryIndex:
        self._revalidate(category.name)
        index = self._indexes.get(category.name)
        if index is None or category.name in self._stale:
            # Taken off first: what changes while it is being read makes it stale again.
            self._stale.discard(category.name)
            index = index_category(self._root, category, self._limits, index)
            self._indexes[category.name] = index
            self._by_tag = None
        return index


def _tidy(folder: str) -> str:
    """A folder without empty and `.` pieces. One that is absolute stays so, and is refused when it is read."""
    pieces = [piece for piece in folder.split("/") if piece not in ("", ".")]
    return ("/" if folder.startswith("/") else "") + ("/".join(pieces) or ".")


def _concerns(path: str, folder: str) -> bool:
    """Whether a change at a path affects a folder."""
    return folder == "." or path == folder or path.startswith(folder + "/") or folder.startswith(path + "/")


Change = Callable[[GuideFile], GuideFile]


def change_guide_file(library: Library, change: Change) -> GuideFile:
    """Apply a change to the file as it is now, not as it was last read, and write the outcome."""
    with exclusive_lock(library.folder.root, directory=True):
        changed = change(library.read_file())
        text = dump_guide_file(changed)
        # What was written must be readable again: a change that breaks the file is refused before it is one.
        parse_guide_file(text, where=str(library.folder.root / FILE))
        library.folder.write_bytes(FILE, text.encode("utf-8"))
    library.changed()
    return changed
