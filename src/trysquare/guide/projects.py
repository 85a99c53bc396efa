"""Projects: every project that this server can answer for, each opened when it is first named."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from trysquare.core.errors import ConfigurationError, ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.core.nearest import nearest
from trysquare.guide.config import GuideConfig
from trysquare.guide.document import DocumentId
from trysquare.guide.project import Project
from trysquare.store.documents import StoredDocuments
from trysquare.store.flags import StoredFlags
from trysquare.store.lazy import Transactions
from trysquare.store.projects import RegisteredProject, StoredProjects

FEATURES = "feature"


@contextmanager
def _told_to_the_call() -> Generator[None]:
    """What is wrong with a project's files is an error of the call that needs them, and not a crash."""
    try:
        yield
    except ConfigurationError as error:
        raise ToolError(
            f"The content cannot be read: {error}",
            code=ErrorCode.CONFIG_INVALID,
            instruction="Tell the person; once the file is mended, the same call can be sent again.",
        ) from None


class ProjectListener:
    """Who wants to know of projects: that one was opened, left, or shows something else than before."""

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
        self,
        default: GuideConfig,
        *,
        project_state: Callable[[Path], Transactions],
        user_state: Transactions,
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
        """Tell this listener of everything from now on, and of the projects that are open already."""
        with self._lock:
            self._listeners.append(listener)
            for project in self._open.values():
                listener.opened(project)

    def get(self, name: str | None = None) -> Project:
        """The project of that name, or the default one, for a call: what is wrong with its files is told to it."""
        with _told_to_the_call():
            project = self._named(name) if name and name != self.default_name else self.open_default()
            project.require_readable()
        return project

    def open_default(self) -> Project:
        """The default project, for whoever starts with it: its errors are those of a configuration."""
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
        with _told_to_the_call():
            project = self._made(entry)
        self._register.put(entry)
        self._leave(entry.name)
        with self._lock:
            return self._kept(project)

    def unregister(self, name: str) -> None:
        """Take a project out of the register; its files stay."""
        self._register.remove(name)
        self._leave(name)

    def changed(self, project: Project, *documents: DocumentId) -> None:
        """Tell the listeners that a project shows something else than before."""
        for listener in list(self._listeners):
            listener.changed(project, documents)

    def features_changed(self) -> None:
        """Tell the listeners that all open projects may show something else than before."""
        for project in list(self._open.values()):
            self.changed(project)

    def close(self) -> None:
        """Let go of all projects."""
        for name in list(self._open):
            self._leave(name)

    def _default_entry(self) -> RegisteredProject:
        return RegisteredProject(name=self._default.project, root=self._default.root, folders=self._default.folders)

    def _is_default(self, name: str) -> bool:
        return name.lower() == self.default_name.lower()

    def _named(self, wanted: str) -> Project:
        with self._lock:
            return self._opened_once(self._found(wanted))

    def _found(self, wanted: str) -> RegisteredProject:
        known = self.known()
        found = known.get(wanted) or next((known[each] for each in known if each.lower() == wanted.lower()), None)
        if found is None:
            close = nearest(wanted, known, count=3) or list(known)[:5]
            raise NotFound(
                f"There is no project `{wanted[:80]}`. There are {', '.join(f'`{each}`' for each in close)}.",
                code=ErrorCode.RESOURCE_NOT_FOUND,
                instruction="Use one of these names, or leave `project` out for the default.",
            )
        return found

    def _opened_once(self, entry: RegisteredProject) -> Project:
        known = self._open.get(entry.name)
        if known is not None and known.entry == entry:
            return known
        # Another process may have registered another folder under the same name.
        self._leave(entry.name)
        return self._kept(self._made(entry))

    def _kept(self, project: Project) -> Project:
        self._open[project.name] = project
        for listener in self._listeners:
            listener.opened(project)
        return project

    def _leave(self, name: str) -> None:
        with self._lock:
            project = self._open.pop(name, None)
        if project is not None:
            for listener in list(self._listeners):
                listener.left(project)
            project.close()

    def _made(self, entry: RegisteredProject) -> Project:
        state = self._project_state(entry.root)
        return Project(
            entry,
            stored=StoredDocuments(state, entry.name),
            flags=StoredFlags(state, f"project:{entry.name}"),
            features=self.features,
            limits=self._default.limits,
        )
