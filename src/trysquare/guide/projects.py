"""Projects: every project that this server can answer for, each opened when it is first named."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from trysquare.core.errors import ErrorCode, NotFound
from trysquare.core.healing import nearest
from trysquare.guide.config import GuideConfig
from trysquare.guide.project import Project
from trysquare.store.database import Database
from trysquare.store.documents import StoredDocuments
from trysquare.store.flags import StoredFlags
from trysquare.store.projects import RegisteredProject, StoredProjects

FEATURES = "feature"


class Projects:
    """The default project, and those that the user has registered. A project is named in each call, or the default."""

    def __init__(
        self,
        default: GuideConfig,
        *,
        project_state: Callable[[Path], Database],
        user_state: Callable[[], Database],
    ) -> None:
        self._default = default
        self._project_state = project_state
        self._user_state = user_state
        self._open: dict[str, Project] = {}
        self._lock = threading.RLock()
        self._listeners: list[Callable[[Project], None]] = []

    @property
    def _register(self) -> StoredProjects:
        return StoredProjects(self._user_state())

    @property
    def default_name(self) -> str:
        """The project of a call that names none."""
        return self._default.project

    @property
    def features(self) -> StoredFlags:
        """The flags of the user, for all projects."""
        return StoredFlags(self._user_state(), FEATURES)

    def on_open(self, listener: Callable[[Project], None]) -> None:
        """Tell of every project that is opened, so that its folders can be watched."""
        with self._lock:
            self._listeners.append(listener)
            for project in self._open.values():
                listener(project)

    def get(self, name: str | None = None) -> Project:
        """The project of that name, or the default one."""
        known = self.known()
        wanted = name or self.default_name
        found = next((each for each in known if each.lower() == wanted.lower()), None)
        if found is None:
            close = nearest(wanted, known, count=3) or list(known)[:5]
            raise NotFound(
                f"There is no project `{wanted[:80]}`. There are {', '.join(f'`{each}`' for each in close)}.",
                code=ErrorCode.RESOURCE_NOT_FOUND,
                instruction="Use one of these names, or leave `project` out for the default.",
            )
        with self._lock:
            if found not in self._open:
                self._open[found] = self._opened(known[found])
            return self._open[found]

    def known(self) -> Mapping[str, RegisteredProject]:
        """Every project by name: the default one first."""
        default = RegisteredProject(name=self._default.project, root=self._default.root, folders=self._default.folders)
        others = {each.name: each for each in self._register.all() if each.name.lower() != default.name.lower()}
        return {default.name: default, **others}

    def register(self, project: RegisteredProject) -> None:
        """Add a project to the user's register."""
        self._register.put(project)
        self._forget(project.name)

    def unregister(self, name: str) -> None:
        """Take a project out of the register; its files stay."""
        self._register.remove(name)
        self._forget(name)

    def close(self) -> None:
        """Let go of all projects."""
        with self._lock:
            for project in self._open.values():
                project.close()
            self._open.clear()

    def _forget(self, name: str) -> None:
        with self._lock:
            opened = self._open.pop(name, None)
            if opened is not None:
                opened.close()

    def _opened(self, known: RegisteredProject) -> Project:
        state = self._project_state(known.root)
        project = Project(
            name=known.name,
            root=known.root,
            folders=known.folders,
            stored=StoredDocuments(state, known.name),
            flags=StoredFlags(state, f"project:{known.name}"),
            features=self.features,
            limits=self._default.limits,
        )
        for listener in self._listeners:
            listener(project)
        return project
