"""Library: the content of one folder, indexed once and kept true to the disk."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from trysquare.core.errors import ConfigurationError, NotFound, ToolError
from trysquare.files.entries import is_recent
from trysquare.files.sealed_folder import SealedFolder
from trysquare.guide.config import FILE, NAME, GuideFile, Limits, parse_guide_file
from trysquare.guide.content import Category, Collection
from trysquare.guide.document import Document
from trysquare.guide.shelf import ENDING, Problem, Shelf, has_changed, has_other_folders, read_shelf

COMMAND_DEPTH = 4


class Library:
    """The files of one guide folder as `Content`. Reads what has changed, and only that."""

    def __init__(self, folder: Path, *, limits: Limits | None = None) -> None:
        if not folder.is_dir():
            raise ConfigurationError("there is no such folder.", where=str(folder), hint="Make it, or name another.")
        self._sealed = SealedFolder(folder)
        self._limits = limits or Limits()
        self._lock = threading.RLock()
        self._changes = 0
        self._file = GuideFile()
        self._collections: dict[str, Collection] = {}
        self._categories: dict[str, Category] | None = None
        """None means that the list of categories may have changed."""
        self._root_state: tuple[object, ...] = ()
        self._shelves: dict[str, Shelf] = {}
        self._stale: set[str] = set()
        """Categories whose files may have changed."""
        self._unlooked: set[str] | None = None
        """Categories whose folders have not been looked at for the call at hand; None means the root neither."""
        self._by_tag: dict[str, tuple[Document, ...]] | None = None
        self._unread: dict[str, Problem] = {}

    @property
    def version(self) -> int:
        """A number that is larger after every change that was noticed."""
        with self._lock:
            for name in self._current().keys() & self._shelves.keys():
                self._look_at(name)
            return self._changes

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
        with self._lock:
            self._current()
            return self._file

    def look_again(self) -> None:
        """A new call begins: what it asks for is compared with the disk once.

        The watcher tells of changes a moment after they happen. Looking closes the gap for new and removed files.
        """
        with self._lock:
            self._unlooked = None

    def changed(self, path: str | None = None) -> None:
        """Something changed on disk: a relative path, or anything at all."""
        with self._lock:
            if path is None or path == ".":
                self._forget_categories()
                self._stale.update(self._shelves)
            elif not path.startswith((".", "_")):
                self._changed_at(path)

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
            return () if found is None else self._shelf(found).ordered

    def tagged(self, tag: str) -> Sequence[Document]:
        with self._lock:
            shelves = [self._shelf(category) for category in self._current().values()]
            if self._by_tag is None:
                self._by_tag = _tag_index(shelves)
            return self._by_tag.get(tag, ())

    def problems(self) -> Sequence[Problem]:
        """What could not be read, by path."""
        with self._lock:
            shelves = [self._shelf(category) for category in self._current().values()]
            return [*(problem for shelf in shelves for problem in shelf.problems.values()), *self._unread.values()]

    def texts_below(self, folder: str) -> list[tuple[str, str]]:
        """The Markdown files below a folder that is no category, as they are now: paths and texts."""
        try:
            found = [each.path for each in self._sealed.walk(folder, max_depth=COMMAND_DEPTH)]
        except NotFound:
            return []
        texts: list[tuple[str, str]] = []
        unread: dict[str, Problem] = {}
        for path in (each for each in found if each.endswith(ENDING)):
            try:
                texts.append((path, self._sealed.read_text(path, limit=self._limits.document_bytes)))
            except ToolError as error:
                unread[path] = Problem(path=path, reason=error.message)
        with self._lock:
            self._unread = unread
        return texts

    def is_current(self, documents: Iterable[Document]) -> bool:
        """Whether these documents are as they lie on disk now; what is not is read again at the next question."""
        with self._lock:
            known = [
                (shelf, path)
                for each in documents
                if (path := each.path) is not None and (shelf := self._shelves.get(each.id.category)) is not None
            ]
            sealed = self._sealed
        changed = [(shelf, path) for shelf, path in known if has_changed(sealed, shelf, path)]
        with self._lock:
            self._mark(shelf.category.name for shelf, _ in changed)
        return not changed

    def _current(self) -> dict[str, Category]:
        """The categories by name, read again if they may have changed."""
        if self._unlooked is None:
            self._look_at_root()
        if self._categories is None:
            self._categories = self._read_categories()
        if self._unlooked is None:
            self._unlooked = set(self._categories)
        return self._categories

    def _look_at_root(self) -> None:
        if not self._sealed.is_at_its_path() and self._sealed.root.is_dir():
            # The folder was removed and made anew, as a change of branch does: what was held is not it any more.
            self._sealed = SealedFolder(self._sealed.root)
            self._shelves.clear()
            self._forget_categories()
        elif self._categories is not None and (not self._root_state or self._state_of_root() != self._root_state):
            self._forget_categories()

    def _state_of_root(self) -> tuple[object, ...]:
        """What tells one list of categories from another; nothing where it changed just now."""
        state = self._sealed.folder_state()
        try:
            entry = self._sealed.stat(FILE)
        except ToolError:
            return (state,) if state else ()
        return () if not state or is_recent(entry.version[-1]) else (state, entry)

    def _read_categories(self) -> dict[str, Category]:
        state = self._state_of_root()
        file = self._read_file()
        found = {name: Category(name=name, folder=name) for name in self._sealed.folders() if NAME.fullmatch(name)}
        named = {name: replace(each, folder=_tidy(each.folder)) for name, each in file.category_values().items()}
        categories = {**found, **named}
        self._shelves = {name: shelf for name, shelf in self._shelves.items() if categories.get(name) == shelf.category}
        self._file, self._collections, self._root_state = file, file.collection_values(), state
        self._by_tag = None
        return categories

    def _read_file(self) -> GuideFile:
        where = str(self._sealed.root / FILE)
        try:
            return parse_guide_file(self._sealed.read_text(FILE), where=where)
        except NotFound:
            return GuideFile()
        except ToolError as error:
            raise ConfigurationError(error.message, where=where) from None
        except RecursionError:
            raise ConfigurationError("it is nested too deeply.", where=where) from None

    def _changed_at(self, path: str) -> None:
        touched = [each.name for each in (self._categories or {}).values() if _concerns(path, each.folder)]
        if "/" not in path or not touched:
            self._forget_categories()
        self._mark(touched)

    def _forget_categories(self) -> None:
        self._categories = None
        self._changes += 1

    def _mark(self, names: Iterable[str]) -> None:
        fresh = set(names) - self._stale
        self._stale |= fresh
        self._changes += len(fresh)

    def _look_at(self, name: str) -> None:
        if self._unlooked is None or name not in self._unlooked:
            return
        self._unlooked.discard(name)
        shelf = self._shelves.get(name)
        if shelf is not None and has_other_folders(self._sealed, shelf):
            self._mark([name])

    def _shelf(self, category: Category) -> Shelf:
        self._look_at(category.name)
        shelf = self._shelves.get(category.name)
        if shelf is None or category.name in self._stale:
            # Taken off first: what changes while it is being read makes it stale again.
            self._stale.discard(category.name)
            shelf = read_shelf(self._sealed, category, self._limits, shelf)
            self._shelves[category.name] = shelf
            self._by_tag = None
        return shelf


def _tidy(folder: str) -> str:
    """A folder without empty and `.` pieces. One that is absolute stays so, and is refused when it is read."""
    pieces = [piece for piece in folder.split("/") if piece not in ("", ".")]
    return ("/" if folder.startswith("/") else "") + ("/".join(pieces) or ".")


def _concerns(path: str, folder: str) -> bool:
    """Whether a change at a path can change what lies in a folder."""
    return folder == "." or path == folder or path.startswith(folder + "/") or folder.startswith(path + "/")


def _tag_index(shelves: Iterable[Shelf]) -> dict[str, tuple[Document, ...]]:
    found: dict[str, list[Document]] = {}
    for shelf in shelves:
        for document in shelf.ordered:
            for tag in document.tags:
                found.setdefault(tag, []).append(document)
    return {tag: tuple(documents) for tag, documents in found.items()}
