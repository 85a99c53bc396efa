"""Projects that this user has registered, each with its folders of content."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from trysquare.core.errors import ErrorCode, NotFound
from trysquare.store.lazy import Transactions


@dataclass(frozen=True, kw_only=True, slots=True)
class RegisteredProject:
    """A project by name: where it lies, and its folders of content."""

    name: str
    root: Path
    folders: tuple[Path, ...]


class StoredProjects:
    """The register of projects in the user's state file."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def all(self) -> list[RegisteredProject]:
        """Every project, in order of name."""
        with self._database.read() as connection:
            rows = connection.execute("SELECT name, root, folders FROM projects ORDER BY name").fetchall()
        return [
            RegisteredProject(name=name, root=Path(root), folders=tuple(Path(each) for each in json.loads(folders)))
            for name, root, folders in rows
        ]

    def put(self, project: RegisteredProject) -> None:
        """Register a project, in place of one of the same name."""
        folders = json.dumps([str(folder) for folder in project.folders])
        now = datetime.now(UTC).isoformat()
        with self._database.write() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO projects (name, root, folders, updated) VALUES (?, ?, ?, ?)",
                (project.name, str(project.root), folders, now),
            )

    def remove(self, name: str) -> None:
        """Take a project out of the register. Its files stay."""
        with self._database.write() as connection:
            if connection.execute("DELETE FROM projects WHERE name = ?", (name,)).rowcount == 0:
                raise NotFound(f"There is no project `{name}`.", code=ErrorCode.RESOURCE_NOT_FOUND)
