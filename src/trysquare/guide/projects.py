"""Projects: content, flags and full-text search, opened on demand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from trysquare.core.errors import ConfigurationError, ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.core.text import closest_names
from trysquare.guide.config import GuideConfig, GuideFile, Limits, PresetEntry
from trysquare.guide.documents import Category, Collection, Document, DocumentId, as_suggestion, folded, read_document
from trysquare.guide.flags import FlagValue, Resolved, resolve
from trysquare.guide.library import Library, Problem
from trysquare.search.fulltext import excerpt
from trysquare.search.index import SearchIndex, lead
from trysquare.search.tokenize import split_words
from trysquare.search.vectors import default_vectors
from trysquare.store.content import RegisteredProject, StoredDocuments, StoredFlags, StoredProjects
from trysquare.store.database import Transactions

_NAME, _TITLE, _TAGS, _TEXT = 8.0, 4.0, 4.0, 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A document that fits, with the passage that does."""

    document: Document
    excerpt: str
    likely: bool
    """Whether it probably is about the subject; else it is only the nearest there is."""


class ContentSearch:
    """Full-text search over one project's documents."""

    def __init__(self, content: Project) -> None:
        self._content = content
        self._lock = threading.Lock()
        self._version: tuple[int, ...] | None = None
        self._documents: dict[str, Document] = {}
        self._index = SearchIndex(default_vectors())

    def find(self, query: str, *, limit: int = 10) -> list[Hit]:
        """Return the nearest documents, best first: by words, and by meaning where an encoder is installed.

        There are as many as asked for while there are so many: those with nothing in common come last, by name.
        """
        with self._lock:
            self._update()
            best = [(self._documents[id], likely) for id, likely in islice(self._nearest(query), limit)]
        return [Hit(document=each, excerpt=excerpt(each.text, query), likely=likely) for each, likely in best]

    def _nearest(self, query: str) -> Iterator[tuple[str, bool]]:
        seen = set[str]()
        for one in self._index.rank(query):
            seen.add(one.id)
            yield one.id, one.likely
        for id in sorted(self._documents.keys() - seen):
            yield id, False

    def close(self) -> None:
        """Drop the index; a later search builds it again."""
        with self._lock:
            self._version, self._documents, self._index = None, {}, SearchIndex(default_vectors())

    def _update(self) -> None:
        if self._content.version() == self._version:
            return
        categories = self._content.categories()
        present = {str(each.id): each for category in categories for each in self._content.documents(category.name)}
        for id in self._documents.keys() - present.keys():
            self._index.remove(id)
        for id, document in present.items():
            if self._documents.get(id) != document:
                name = " ".join(split_words(f"{document.id.category} {document.id.name} {document.title or ''}"))
                about = f"{document.description or ''} {lead(document.text)}".strip()
                self._index.put_row(id, _fields(document), name=name, text=about, group=document.id.category)
        # The version is read again: reading the content may itself have noticed changes.
        self._documents, self._version = present, self._content.version()


def _fields(document: Document) -> list[tuple[str, float]]:
    return [
        (f"{document.id.category} {document.id.name}", _NAME),
        (f"{document.title or ''} {document.description or ''}", _TITLE),
        (" ".join(sorted(document.tags)), _TAGS),
        (document.text, _TEXT),
    ]


class Project:
    """One project as `Content`: its folders' files, and documents stored beside them."""

    def __init__(
        self, entry: RegisteredProject, state: Transactions, *, features: StoredFlags, limits: Limits | None = None
    ) -> None:
        self.entry = entry
        self.name = entry.name
        self.root = entry.root
        self.stored = StoredDocuments(state, entry.name)
        self.flags = StoredFlags(state, f"project:{entry.name}")
        self.features = features
        self.libraries = tuple(Library(folder, limits=limits) for folder in entry.folders)
        self.search = ContentSearch(self)
        self._index_of = _StoredDocuments(self.stored)
        self._refuse_collisions()

    def close(self) -> None:
        """Close the folders and drop the indexes."""
        self.search.close()
        for library in self.libraries:
            library.close()

    def require_readable(self) -> None:
        """A call begins: each `guide.json` is read again if it changed, or a `ConfigurationError` raised."""
        for library in self.libraries:
            library.revalidate()
            library.categories()

    def category(self, name: str) -> Category | None:
        return next(
            (found for each in self.libraries if (found := each.category(name))), None
        ) or self._index_of.category(name)

    def collection(self, name: str) -> Collection | None:
        return next((found for each in self.libraries if (found := each.collection(name))), None)

    def categories(self) -> Sequence[Category]:
        found = {each.name: each for library in self.libraries for each in library.categories()}
        return (*found.values(), *(each for each in self._index_of.categories() if each.name not in found))

    def collections(self) -> Sequence[Collection]:
        return tuple(each for library in self.libraries for each in library.collections())

    def documents(self, category: str) -> Sequence[Document]:
        # A category is in one folder only; its documents are handed on as they are, with the index of their names.
        files = next((found for each in self.libraries if (found := each.documents(category))), ())
        stored = self._index_of.documents(category)
        if not stored:
            return files
        # A stored document takes the place of a file of the same name: somebody put it there later, and on purpose.
        taken = {folded(each.id.name) for each in stored}
        return [*(each for each in files if folded(each.id.name) not in taken), *stored]

    def tagged(self, tag: str) -> Sequence[Document]:
        files = [each for library in self.libraries for each in library.tagged(tag)]
        stored = [each for each in self._index_of.all() if tag in each.tags]
        taken = {(each.id.category, folded(each.id.name)) for each in self._index_of.all()}
        return [*(each for each in files if (each.id.category, folded(each.id.name)) not in taken), *stored]

    def is_current(self, documents: Sequence[Document]) -> bool:
        """Whether these documents match the files on disk."""
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
        return {name: preset for library in self.libraries for name, preset in library.file.presets.items()}

    def problems(self) -> Sequence[Problem]:
        return [*(each for library in self.libraries for each in library.problems()), *self._index_of.problems]

    def flag(self, name: str) -> Resolved:
        """A flag's value as it holds in this project."""
        return resolve(name, project=self.flags.all(), feature=self.features.all(), preset=self._preset_flags())

    def flag_values(self) -> dict[str, FlagValue]:
        """Every flag that is set, as it holds in this project."""
        return {**self._preset_flags(), **self.features.all(), **self.flags.all()}

    def _preset_flags(self) -> Mapping[str, FlagValue]:
        chosen = self.flags.all().get("preset")
        preset = self.presets().get(chosen) if isinstance(chosen, str) else None
        return preset.flags if preset is not None else {}

    def guide_file(self) -> tuple[Library, GuideFile]:
        """The file that changes of categories, collections and presets go to: the first folder's."""
        if not self.libraries:
            raise ConfigurationError(f"project `{self.name}` has no content directory.")
        return self.libraries[0], self.libraries[0].file

    def _refuse_collisions(self) -> None:
        seen: dict[str, Path] = {}
        for library in self.libraries:
            for name in [each.name for each in (*library.categories(), *library.collections())]:
                other = seen.setdefault(name, library.folder.root)
                if other != library.folder.root:
                    raise ConfigurationError(
                        f"`{name}` is in two content directories, {other} and {library.folder.root}.",
                        hint="Rename one of them.",
                    )


class _StoredDocuments:
    """The stored documents, read again only when their count of changes says so."""

    def __init__(self, stored: StoredDocuments) -> None:
        self._stored = stored
        self._lock = threading.Lock()
        self._changes: int | None = None
        self._documents: tuple[Document, ...] = ()
        self._problems: tuple[Problem, ...] = ()

    def all(self) -> tuple[Document, ...]:
        return self._current()[0]

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self._current()[1]

    def documents(self, category: str) -> list[Document]:
        return [each for each in self.all() if each.id.category == category]

    def category(self, name: str) -> Category | None:
        return next((each for each in self.categories() if each.name == name), None)

    def categories(self) -> list[Category]:
        return [Category(name=name, folder=name) for name in dict.fromkeys(each.id.category for each in self.all())]

    def _current(self) -> tuple[tuple[Document, ...], tuple[Problem, ...]]:
        with self._lock:
            if (changes := self._stored.changes()) != self._changes:
                self._documents, self._problems = self._read()
                self._changes = changes
            return self._documents, self._problems

    def _read(self) -> tuple[tuple[Document, ...], tuple[Problem, ...]]:
        documents: list[Document] = []
        problems: list[Problem] = []
        for each in self._stored.all():
            identity = DocumentId(category=each.category, name=each.name)
            try:
                read = read_document(identity, each.text, source="stored", extra=each.metadata)
                documents.append(read if each.accepted_by else as_suggestion(read, each))
            except ToolError as error:
                problems.append(Problem(path=str(identity), reason=error.message))
        return tuple(documents), tuple(problems)


FEATURES = "feature"


@contextmanager
def _as_call_errors() -> Generator[None]:
    """Turn configuration errors of a project's files into errors of the call."""
    try:
        yield
    except ConfigurationError as error:
        raise ToolError(
            f"The content cannot be read: {error}",
            code=ErrorCode.CONFIG_INVALID,
            instruction="Tell the user; once the file is fixed, the same call can be sent again.",
        ) from None


class ProjectListener:
    """Listener for projects that are opened, closed or changed."""

    def opened(self, project: Project) -> None:
        """A project was opened."""

    def left(self, project: Project) -> None:
        """A project is no longer used."""

    def changed(self, project: Project, documents: Sequence[DocumentId]) -> None:
        """A call changed what a project shows: its flags, its stored documents, or its `guide.json`.

        The documents that it touched are named; flags may change others too.
        """


class Projects:
    """The default project, and those that the user has registered. A project is named in each call, or the default."""

    def __init__(
        self, default: GuideConfig, *, project_state: Callable[[Path], Transactions], user_state: Transactions
    ) -> None:
        self._default = default
        self._project_state = project_state
        self._register = StoredProjects(user_state)
        self.features = StoredFlags(user_state, FEATURES)
        """The flags of the user, for all projects."""
        self._open: dict[str, Project] = {}
        self._lock = threading.RLock()
        self._listeners: list[ProjectListener] = []

    @property
    def default_name(self) -> str:
        """The project of a call that names none."""
        return self._default.project

    def listen(self, listener: ProjectListener) -> None:
        """Add a listener; it is notified of the open projects at once."""
        with self._lock:
            self._listeners.append(listener)
            for project in self._open.values():
                listener.opened(project)

    def get(self, name: str | None = None) -> Project:
        """The named or default project, for a call; problems of its files are errors of the call."""
        with _as_call_errors():
            with self._lock:
                entry = self._found(name) if name and name != self.default_name else self._default_entry()
                project = self._opened_once(entry)
            project.require_readable()
        return project

    def open_default(self) -> Project:
        """The default project; problems of its files are configuration errors."""
        with self._lock:
            return self._opened_once(self._default_entry())

    def known(self) -> Mapping[str, RegisteredProject]:
        """Every project by name: the default one first."""
        default = self._default_entry()
        others = {each.name: each for each in self._register.all() if not self._is_default(each.name)}
        return {default.name: default, **others}

    def register(self, entry: RegisteredProject) -> Project:
        """Add a project to the user's register, once its content has been read without a fault."""
        if self._is_default(entry.name):
            raise InvalidArguments(
                f"`{entry.name}` is the name of the server's own project.", instruction="Choose another name."
            )
        with _as_call_errors():
            project = self._made(entry)
        self._register.put(entry)
        self._close(entry.name)
        with self._lock:
            return self._remember(project)

    def unregister(self, name: str) -> None:
        """Take a project out of the register; its files stay."""
        self._register.remove(name)
        self._close(name)

    def changed(self, project: Project, *documents: DocumentId) -> None:
        for listener in list(self._listeners):
            listener.changed(project, documents)

    def features_changed(self) -> None:
        """Notify the listeners that all open projects may have changed."""
        for project in list(self._open.values()):
            self.changed(project)

    def close(self) -> None:
        for name in list(self._open):
            self._close(name)

    def _default_entry(self) -> RegisteredProject:
        return RegisteredProject(name=self._default.project, root=self._default.root, folders=self._default.folders)

    def _is_default(self, name: str) -> bool:
        return name.lower() == self.default_name.lower()

    def _found(self, wanted: str) -> RegisteredProject:
        known = self.known()
        found = known.get(wanted) or next((known[each] for each in known if each.lower() == wanted.lower()), None)
        if found is None:
            close = closest_names(wanted, known, count=3) or list(known)[:5]
            raise NotFound(
                f"Unknown project `{wanted[:80]}`. Known projects: {', '.join(f'`{each}`' for each in close)}.",
                code=ErrorCode.RESOURCE_NOT_FOUND,
                instruction="Use one of these names, or leave `project` out for the default.",
            )
        return found

    def _opened_once(self, entry: RegisteredProject) -> Project:
        known = self._open.get(entry.name)
        if known is not None and known.entry == entry:
            return known
        # Another process may have registered another folder under the same name.
        self._close(entry.name)
        return self._remember(self._made(entry))

    def _remember(self, project: Project) -> Project:
        self._open[project.name] = project
        for listener in self._listeners:
            listener.opened(project)
        return project

    def _close(self, name: str) -> None:
        with self._lock:
            project = self._open.pop(name, None)
        if project is not None:
            for listener in list(self._listeners):
                listener.left(project)
            project.close()

    def _made(self, entry: RegisteredProject) -> Project:
        state = self._project_state(entry.root)
        return Project(entry, state, features=self.features, limits=self._default.limits)
