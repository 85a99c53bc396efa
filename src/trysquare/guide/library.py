"""Library: the content of one folder, indexed once and kept true to the disk."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from trysquare.core.errors import ConfigurationError, NotFound, ToolError
from trysquare.files.sealed_folder import Entry, SealedFolder
from trysquare.guide.config import FILE, NAME, GuideFile, Limits, parse_guide_file
from trysquare.guide.content import Category, Collection
from trysquare.guide.document import Document, DocumentId
from trysquare.guide.reading import read_document
from trysquare.guide.selection import matches


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Something in the folder that could not be used, and why."""

    path: str
    reason: str


@dataclass(kw_only=True)
class _Shelf:
    """One category as it was last read."""

    category: Category
    documents: dict[str, Document] = field(default_factory=dict[str, Document])
    """By path."""
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    problems: dict[str, Problem] = field(default_factory=dict[str, Problem])
    ordered: tuple[Document, ...] = ()


class Library:
    """The files of one guide folder as `Content`. Reads what has changed, and only that."""

    def __init__(self, folder: Path, *, limits: Limits | None = None) -> None:
        if not folder.is_dir():
            raise ConfigurationError("there is no such folder.", where=str(folder), hint="Make it, or name another.")
        self._sealed = SealedFolder(folder)
        self._limits = limits or Limits()
        self._lock = threading.RLock()
        self._file = GuideFile()
        self._categories: dict[str, Category] = {}
        self._shelves: dict[str, _Shelf] = {}
        self._stale: set[str] | None = None
        """Categories whose files may have changed; None means all, and the list of categories too."""
        self._by_tag: dict[str, tuple[Document, ...]] | None = None
        self._version = 0

    @property
    def version(self) -> int:
        """A number that is larger after every change of what has been read."""
        self._refresh()
        with self._lock:
            # Reading a stale category moves one from the second term to the first, so only changes make it grow.
            return self._version + len(self._stale or ())

    @property
    def folder(self) -> SealedFolder:
        """The folder itself, sealed."""
        return self._sealed

    def close(self) -> None:
        """Let go of the folder."""
        self._sealed.close()

    @property
    def file(self) -> GuideFile:
        """What `guide.json` says."""
        self._refresh()
        return self._file

    def changed(self, path: str | None = None) -> None:
        """Something changed on disk: a relative path, or anything at all."""
        with self._lock:
            if path is None or "/" not in path:
                self._stale = None
            elif self._stale is not None:
                touched = {each.name for each in self._categories.values() if path.startswith(each.folder + "/")}
                self._stale = self._stale | touched if touched else None

    def category(self, name: str) -> Category | None:
        self._refresh()
        return self._categories.get(name)

    def collection(self, name: str) -> Collection | None:
        self._refresh()
        return self._file.collection_values().get(name)

    def categories(self) -> Sequence[Category]:
        self._refresh()
        return tuple(self._categories.values())

    def collections(self) -> Sequence[Collection]:
        self._refresh()
        return tuple(self._file.collection_values().values())

    def documents(self, category: str) -> Sequence[Document]:
        with self._lock:
            self._refresh()
            return self._shelf(category).ordered if category in self._categories else ()

    def tagged(self, tag: str) -> Sequence[Document]:
        with self._lock:
            self._refresh()
            for name in self._categories:
                self._shelf(name)
            if self._by_tag is None:
                self._by_tag = self._tag_index()
            return self._by_tag.get(tag, ())

    def texts_below(self, folder: str) -> list[tuple[str, str]]:
        """The Markdown files below a folder that is no category, as they are now: paths and texts."""
        try:
            entries = [each for each in self._sealed.walk(folder, max_depth=4) if each.path.endswith(".md")]
        except NotFound:
            return []
        return [(each.path, self._sealed.read_text(each.path, limit=self._limits.document_bytes)) for each in entries]

    def is_current(self, documents: Iterable[Document]) -> bool:
        """Whether these documents are as they lie on disk now; what is not is read again at the next question.

        The watcher tells of changes a moment after they happen. This look closes the gap for what is about to be sent.
        """
        changed = [path for each in documents if (path := each.path) is not None and self._differs(each, path)]
        for path in changed:
            self.changed(path)
        return not changed

    def _differs(self, document: Document, path: str) -> bool:
        with self._lock:
            shelf = self._shelves.get(document.id.category)
            known = None if shelf is None else shelf.entries.get(path)
        if known is None:
            return False
        try:
            return self._sealed.stat(path) != known
        except ToolError:
            return True

    def problems(self) -> Sequence[Problem]:
        """What could not be read, by path."""
        with self._lock:
            self._refresh()
            return [problem for name in self._categories for problem in self._shelf(name).problems.values()]

    def _tag_index(self) -> dict[str, tuple[Document, ...]]:
        found: dict[str, list[Document]] = {}
        for shelf in self._shelves.values():
            for document in shelf.ordered:
                for tag in document.tags:
                    found.setdefault(tag, []).append(document)
        return {tag: tuple(documents) for tag, documents in found.items()}

    def _refresh(self) -> None:
        """Read the list of categories again, if it may have changed."""
        with self._lock:
            if self._stale is not None:
                return
            self._file = self._read_file()
            named = self._file.category_values()
            found = {name: Category(name=name, folder=name) for name in self._sealed.folders() if NAME.fullmatch(name)}
            self._categories = {**found, **named}
            self._shelves = {
                name: replace(shelf, category=self._categories[name])
                for name, shelf in self._shelves.items()
                if name in self._categories
            }
            self._stale = set(self._categories)
            self._by_tag = None

    def _read_file(self) -> GuideFile:
        try:
            text = self._sealed.read_text(FILE)
        except NotFound:
            return GuideFile()
        return parse_guide_file(text, where=str(self._sealed.root / FILE))

    def _shelf(self, name: str) -> _Shelf:
        assert self._stale is not None
        shelf = self._shelves.get(name)
        if shelf is None or name in self._stale:
            shelf = self._read_shelf(self._categories[name], shelf)
            self._shelves[name] = shelf
            self._stale.discard(name)
            self._version += 1
            self._by_tag = None
        return shelf

    def _read_shelf(self, category: Category, known: _Shelf | None) -> _Shelf:
        shelf = _Shelf(category=category)
        for entry in self._entries(category, shelf):
            shelf.entries[entry.path] = entry
            if known is not None and known.entries.get(entry.path) == entry and entry.path in known.documents:
                shelf.documents[entry.path] = known.documents[entry.path]
            else:
                self._read_entry(category, entry, shelf)
        shelf.ordered = tuple(shelf.documents[path] for path in sorted(shelf.documents))
        return shelf

    def _entries(self, category: Category, shelf: _Shelf) -> list[Entry]:
        try:
            walked = self._sealed.walk(category.folder, max_depth=self._limits.depth)
            fitting = [entry for entry in walked if _fits(entry.path, category)]
        except ToolError as error:
            shelf.problems[category.folder] = Problem(path=category.folder, reason=error.message)
            return []
        if len(fitting) > self._limits.documents:
            reason = f"{len(fitting):,} documents; only the first {self._limits.documents:,} are read"
            shelf.problems[category.folder] = Problem(path=category.folder, reason=reason)
        return fitting[: self._limits.documents]

    def _read_entry(self, category: Category, entry: Entry, shelf: _Shelf) -> None:
        name = entry.path.removeprefix(category.folder + "/").removesuffix(".md")
        try:
            text = self._sealed.read_text(entry.path, limit=self._limits.document_bytes)
            identity = DocumentId(category=category.name, name=name)
            shelf.documents[entry.path] = read_document(identity, text, path=entry.path)
        except ToolError as error:
            shelf.problems[entry.path] = Problem(path=entry.path, reason=error.message)


def _fits(path: str, category: Category) -> bool:
    below = path.removeprefix(category.folder + "/")
    return below.endswith(".md") and any(matches(below.removesuffix(".md"), pattern) for pattern in category.patterns)
