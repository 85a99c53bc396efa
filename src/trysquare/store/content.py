"""Documents, flags and projects that the guide stores."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.store.database import Transactions


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredDocument:
    """Text and metadata of a document."""

    category: str
    name: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    written_by: str = field(default="", compare=False)
    """Principal and time (UTC) of the last write; empty before it is stored."""
    written_at: str = field(default="", compare=False)
    accepted_by: str | None = field(default=None, compare=False)
    """The human who accepted exactly this version, if any."""

    @property
    def digest(self) -> str:
        """SHA-256 of everything that a reader sees."""
        whole = json.dumps([self.category, self.name, self.text, dict(self.metadata)], sort_keys=True)
        return hashlib.sha256(whole.encode()).hexdigest()


DocumentChange: TypeAlias = Callable[[StoredDocument | None], StoredDocument]
"""From the current document, or None, to the new one."""


class StoredDocuments:
    """Documents of one project."""

    def __init__(self, database: Transactions, project: str) -> None:
        self._database = database
        self._project = project

    def changes(self) -> int:
        """Counter of changes: the same number means the same documents."""
        with self._database.read() as connection:
            query = "SELECT count FROM document_changes WHERE project = ?"
            found = connection.execute(query, (self._project,)).fetchone()
        return 0 if found is None else int(found[0])

    def all(self) -> list[StoredDocument]:
        """All documents, by category and name."""
        query = f"SELECT {_COLUMNS} FROM documents WHERE project = ? ORDER BY category, name"
        with self._database.read() as connection:
            return [_document(row) for row in connection.execute(query, (self._project,))]

    def put(self, document: StoredDocument, *, by: str) -> None:
        """Store a document, replacing one of the same name."""
        with self._database.write() as connection:
            self._insert(connection, document, by)
            self._count(connection)

    def change(self, category: str, name: str, change: DocumentChange, *, by: str) -> StoredDocument:
        """Change or create a document in one transaction; the result may have another name."""
        with self._database.write() as connection:
            before = self._find(connection, category, name)
            after = change(before)
            if before is not None:
                self._delete(connection, category, name)
            if self._find(connection, after.category, after.name) is not None:
                raise ToolError(
                    f"A stored document `{after.category}/{after.name}` already exists.",
                    code=ErrorCode.STATE_CONFLICT,
                    instruction="Choose another name, or remove that document first.",
                )
            self._insert(connection, after, by)
            self._count(connection)
        return after

    def accept(self, category: str, name: str, *, digest: str, by: str) -> StoredDocument:
        """Record that a human accepted the version with this digest."""
        with self._database.write() as connection:
            found = self._find(connection, category, name)
            if found is None:
                raise _not_found(category, name)
            if found.digest != digest:
                raise ToolError(
                    f"`{category}/{name}` has changed since it was shown; it was not accepted.",
                    code=ErrorCode.STATE_CONFLICT,
                    instruction="Read it again.",
                )
            connection.execute(
                "UPDATE documents SET accepted_by = ?, accepted_at = ?, accepted_digest = ?"
                " WHERE project = ? AND category = ? AND name = ?",
                (by, _now(), digest, self._project, category, name),
            )
            self._count(connection)
        return replace(found, accepted_by=by)

    def remove(self, category: str, name: str) -> None:
        with self._database.write() as connection:
            self._delete(connection, category, name)
            self._count(connection)

    def _find(self, connection: sqlite3.Connection, category: str, name: str) -> StoredDocument | None:
        query = f"SELECT {_COLUMNS} FROM documents WHERE project = ? AND category = ? AND name = ?"
        found = connection.execute(query, (self._project, category, name)).fetchone()
        return None if found is None else _document(found)

    def _insert(self, connection: sqlite3.Connection, document: StoredDocument, by: str) -> None:
        connection.execute(
            "INSERT OR REPLACE INTO documents (project, category, name, text, metadata, updated, by)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (self._project, document.category, document.name, document.text, json.dumps(dict(document.metadata)),
             _now(), by),
        )  # fmt: skip

    def _delete(self, connection: sqlite3.Connection, category: str, name: str) -> None:
        found = connection.execute(
            "DELETE FROM documents WHERE project = ? AND category = ? AND name = ?", (self._project, category, name)
        )
        if found.rowcount == 0:
            raise _not_found(category, name)

    def _count(self, connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO document_changes (project, count) VALUES (?, 1)"
            " ON CONFLICT (project) DO UPDATE SET count = count + 1",
            (self._project,),
        )


_COLUMNS = "category, name, text, metadata, by, updated, accepted_by, accepted_digest"


def _document(row: Sequence[Any]) -> StoredDocument:
    category, name, text, metadata, by, updated, accepted_by, accepted_digest = row
    found = StoredDocument(
        category=category, name=name, text=text, metadata=json.loads(metadata), written_by=by, written_at=updated
    )
    # An acceptance of another version does not count.
    return replace(found, accepted_by=accepted_by) if accepted_digest == found.digest else found


def _not_found(category: str, name: str) -> NotFound:
    return NotFound(f"Unknown stored document `{category}/{name}`.", code=ErrorCode.RESOURCE_NOT_FOUND)


def _now() -> str:
    return datetime.now(UTC).isoformat()


FlagValue: TypeAlias = bool | int | float | str | list[str]


class StoredFlags:
    """Flags of one scope."""

    def __init__(self, database: Transactions, scope: str) -> None:
        self._database = database
        self._scope = scope

    def all(self) -> Mapping[str, FlagValue]:
        with self._database.read() as connection:
            rows = connection.execute("SELECT name, value FROM flags WHERE scope = ? ORDER BY name", (self._scope,))
            return {str(name): json.loads(value) for name, value in rows}

    def set(self, name: str, value: FlagValue | None, *, by: str) -> FlagValue | None:
        """Set a flag, or remove it with None; return its previous value."""
        with self._database.write() as connection:
            query = "SELECT value FROM flags WHERE scope = ? AND name = ?"
            found = connection.execute(query, (self._scope, name)).fetchone()
            if value is None:
                connection.execute("DELETE FROM flags WHERE scope = ? AND name = ?", (self._scope, name))
            else:
                connection.execute(
                    "INSERT OR REPLACE INTO flags (scope, name, value, updated, by) VALUES (?, ?, ?, ?, ?)",
                    (self._scope, name, json.dumps(value), _now(), by),
                )
        return None if found is None else json.loads(found[0])


@dataclass(frozen=True, kw_only=True, slots=True)
class RegisteredProject:
    """Root and content directories of a project."""

    name: str
    root: Path
    folders: tuple[Path, ...]


class StoredProjects:
    """Register of projects in the user's state file."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def all(self) -> list[RegisteredProject]:
        """All projects, by name."""
        with self._database.read() as connection:
            rows = connection.execute("SELECT name, root, folders FROM projects ORDER BY name").fetchall()
        return [
            RegisteredProject(name=name, root=Path(root), folders=tuple(Path(each) for each in json.loads(folders)))
            for name, root, folders in rows
        ]

    def put(self, project: RegisteredProject) -> None:
        """Register a project, replacing one of the same name."""
        folders = json.dumps([str(folder) for folder in project.folders])
        with self._database.write() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO projects (name, root, folders, updated) VALUES (?, ?, ?, ?)",
                (project.name, str(project.root), folders, _now()),
            )

    def remove(self, name: str) -> None:
        """Remove a project from the register. Its files stay."""
        with self._database.write() as connection:
            if connection.execute("DELETE FROM projects WHERE name = ?", (name,)).rowcount == 0:
                raise NotFound(f"Unknown project `{name}`.", code=ErrorCode.RESOURCE_NOT_FOUND)
