"""Project: the content and the flags of one project, whatever folders and stores they come from."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trysquare.core.errors import ConfigurationError, ToolError
from trysquare.guide.config import GuideFile, Limits, PresetEntry
from trysquare.guide.content import Category, Collection
from trysquare.guide.document import Document, DocumentId, folded
from trysquare.guide.flags import FlagValue, Resolved, resolve
from trysquare.guide.library import Library
from trysquare.guide.reading import read_document
from trysquare.guide.search import ContentSearch
from trysquare.guide.shelf import Problem
from trysquare.guide.suggestions import as_suggestion
from trysquare.store.documents import StoredDocuments
from trysquare.store.flags import StoredFlags
from trysquare.store.projects import RegisteredProject


class Project:
    """One project as `Content`: its folders' files, and documents stored beside them."""

    def __init__(
        self,
        entry: RegisteredProject,
        *,
        stored: StoredDocuments,
        flags: StoredFlags,
        features: StoredFlags,
        limits: Limits | None = None,
    ) -> None:
        self.entry = entry
        self.name = entry.name
        self.root = entry.root
        self.stored = stored
        self.flags = flags
        self.features = features
        self.libraries = tuple(Library(folder, limits=limits) for folder in entry.folders)
        self.search = ContentSearch(self)
        self._shelf = _StoredShelf(stored)
        self._refuse_collisions()

    def close(self) -> None:
        """Let go of the folders and of what was made of their content."""
        self.search.close()
        for library in self.libraries:
            library.close()

    def require_readable(self) -> None:
        """A call begins: each `guide.json` is read again if it changed, or a `ConfigurationError` raised."""
        for library in self.libraries:
            library.look_again()
            library.categories()

    def category(self, name: str) -> Category | None:
        return next((found for each in self.libraries if (found := each.category(name))), None) or self._shelf.category(
            name
        )

    def collection(self, name: str) -> Collection | None:
        return next((found for each in self.libraries if (found := each.collection(name))), None)

    def categories(self) -> Sequence[Category]:
        found = {each.name: each for library in self.libraries for each in library.categories()}
        return (*found.values(), *(each for each in self._shelf.categories() if each.name not in found))

    def collections(self) -> Sequence[Collection]:
        return tuple(each for library in self.libraries for each in library.collections())

    def documents(self, category: str) -> Sequence[Document]:
        # A category lies in one folder only; its documents are handed on as they are, with the index of their names.
        files = next((found for each in self.libraries if (found := each.documents(category))), ())
        stored = self._shelf.documents(category)
        if not stored:
            return files
        # A stored document takes the place of a file of the same name: somebody put it there later, and on purpose.
        taken = {folded(each.id.name) for each in stored}
        return [*(each for each in files if folded(each.id.name) not in taken), *stored]

    def tagged(self, tag: str) -> Sequence[Document]:
        files = [each for library in self.libraries for each in library.tagged(tag)]
        stored = [each for each in self._shelf.all() if tag in each.tags]
        taken = {(each.id.category, folded(each.id.name)) for each in self._shelf.all()}
        return [*(each for each in files if (each.id.category, folded(each.id.name)) not in taken), *stored]

    def is_current(self, documents: Sequence[Document]) -> bool:
        """Whether these documents are as they lie on disk now."""
        # Each library is asked, also after one said no: asking is what makes it read again.
        answers = [library.is_current(documents) for library in self.libraries]
        return all(answers)

    def version(self) -> tuple[int, ...]:
        """Numbers that differ after every change of the content."""
        return (*(library.version for library in self.libraries), self.stored.changes())

    def shown_version(self) -> tuple[Any, ...]:
        """A value that differs after every change of what is shown: the content, or a flag that hides some of it."""
        return (*self.version(), tuple(sorted((name, str(value)) for name, value in self.flag_values().items())))

    def presets(self) -> Mapping[str, PresetEntry]:
        """The presets that the folders name."""
        return {name: preset for library in self.libraries for name, preset in library.file.presets.items()}

    def problems(self) -> Sequence[Problem]:
        """What could not be read."""
        return [*(each for library in self.libraries for each in library.problems()), *self._shelf.problems]

    def flag(self, name: str) -> Resolved:
        """A flag's value as it holds in this project."""
        return resolve(name, project=self.flags.all(), feature=self.features.all(), preset=self._preset_flags())

    def flag_values(self) -> dict[str, FlagValue]:
        """Every flag that is set, as it holds in this project."""
        return {**self._preset_flags(), **self.features.all(), **self.flags.all()}

    def _preset_flags(self) -> Mapping[str, FlagValue]:
        chosen = self.flags.get("preset")
        preset = self.presets().get(chosen) if isinstance(chosen, str) else None
        return preset.flags if preset is not None else {}

    def guide_file(self) -> tuple[Library, GuideFile]:
        """The file that changes of categories, collections and presets go to: the first folder's."""
        if not self.libraries:
            raise ConfigurationError(f"project `{self.name}` has no folder of content.")
        return self.libraries[0], self.libraries[0].file

    def _refuse_collisions(self) -> None:
        seen: dict[str, Path] = {}
        for library in self.libraries:
            for name in [each.name for each in (*library.categories(), *library.collections())]:
                other = seen.setdefault(name, library.folder.root)
                if other != library.folder.root:
                    raise ConfigurationError(
                        f"`{name}` is in two folders of content, {other} and {library.folder.root}.",
                        hint="Rename one of them.",
                    )


@dataclass
class _Snapshot:
    changes: int
    documents: tuple[Document, ...]
    problems: tuple[Problem, ...]


class _StoredShelf:
    """The stored documents, read again only when their count of changes says so."""

    def __init__(self, stored: StoredDocuments) -> None:
        self._stored = stored
        self._lock = threading.Lock()
        self._snapshot: _Snapshot | None = None

    def all(self) -> tuple[Document, ...]:
        return self._current().documents

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self._current().problems

    def documents(self, category: str) -> list[Document]:
        return [each for each in self.all() if each.id.category == category]

    def category(self, name: str) -> Category | None:
        return next((each for each in self.categories() if each.name == name), None)

    def categories(self) -> list[Category]:
        return [Category(name=name, folder=name) for name in dict.fromkeys(each.id.category for each in self.all())]

    def _current(self) -> _Snapshot:
        with self._lock:
            changes = self._stored.changes()
            if self._snapshot is None or self._snapshot.changes != changes:
                self._snapshot = self._read(changes)
            return self._snapshot

    def _read(self, changes: int) -> _Snapshot:
        documents: list[Document] = []
        problems: list[Problem] = []
        for each in self._stored.all():
            identity = DocumentId(category=each.category, name=each.name)
            try:
                read = read_document(identity, each.text, source="stored", extra=each.metadata)
                documents.append(read if each.accepted_by else as_suggestion(read, each))
            except ToolError as error:
                problems.append(Problem(path=str(identity), reason=error.message))
        return _Snapshot(changes=changes, documents=tuple(documents), problems=tuple(problems))
