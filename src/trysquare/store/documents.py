"""Documents kept in the state file, beside those that lie in folders."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.store.lazy import Transactions


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredDocument:
    """A document's text with its metadata, as it is kept."""

    category: str
    name: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    written_by: str = field(default="", compare=False)
    """Who had an agent write it last, and when (UTC); empty before it is stored."""
    written_at: str = field(default="", compare=False)
    accepted_by: str | None = field(default=None, compare=False)
    """The human who accepted exactly this; None as long as none has."""

    @property
    def digest(self) -> str:
        """SHA-256 of all that a reader is shown of it."""
        whole = json.dumps([self.category, self.name, self.text, dict(self.metadata)], sort_keys=True)
        return hashlib.sha256(whole.encode()).hexdigest()


DocumentChange: TypeAlias = Callable[[StoredDocument | None], StoredDocument]
"""From a document as it is now, or None where there is none, to what it shall be."""


class StoredDocuments:
    """The stored documents of one project."""

    def __init__(self, database: Transactions, project: str) -> None:
        self._database = database
        self._project = project

    def changes(self) -> int:
        """How often anything was changed so far: the same number means the same documents."""
        with self._database.read() as connection:
            query = "SELECT count FROM document_changes WHERE project = ?"
            found = connection.execute(query, (self._project,)).fetchone()
        return 0 if found is None else int(found[0])

    def all(self) -> list[StoredDocument]:
        """Every document, in order of category and name."""
        query = f"SELECT {_COLUMNS} FROM documents WHERE project = ? ORDER BY category, name"
        with self._database.read() as connection:
            return [_document(*row) for row in connection.execute(query, (self._project,))]

    def put(self, document: StoredDocument, *, by: str) -> None:
        """Keep a document, in place of one of the same name."""
        with self._database.write() as connection:
            self._insert(connection, document, by)
            self._count(connection)

    def change(self, category: str, name: str, change: DocumentChange, *, by: str) -> StoredDocument:
        """Change a document as it is now, or make it. What the change returns may have another name.

        Reading and writing are one transaction, so that of two changes at the same time neither undoes the other.
        """
        with self._database.write() as connection:
            before = self._find(connection, category, name)
            after = change(before)
            if before is not None:
                self._delete(connection, category, name)
            if self._find(connection, after.category, after.name) is not None:
                raise ToolError(
                    f"There is a stored document `{after.category}/{after.name}` already.",
                    code=ErrorCode.STATE_CONFLICT,
                    instruction="Choose another name, or remove that document first.",
                )
            self._insert(connection, after, by)
            self._count(connection)
        return after

    def accept(self, category: str, name: str, *, digest: str, by: str) -> StoredDocument:
        """Note that a human accepted a document as they saw it; one that has changed since is not accepted."""
        with self._database.write() as connection:
            found = self._find(connection, category, name)
            if found is None:
                raise NotFound(f"There is no stored document `{category}/{name}`.", code=ErrorCode.RESOURCE_NOT_FOUND)
            if found.digest != digest:
                raise ToolError(
                    f"`{category}/{name}` was changed since it was shown; it was not accepted.",
                    code=ErrorCode.STATE_CONFLICT,
                    instruction="Look at it again.",
                )
            connection.execute(
                "UPDATE documents SET accepted_by = ?, accepted_at = ?, accepted_digest = ?"
                " WHERE project = ? AND category = ? AND name = ?",
                (by, datetime.now(UTC).isoformat(), digest, self._project, category, name),
            )
            self._count(connection)
        return replace(found, accepted_by=by)

    def remove(self, category: str, name: str) -> None:
        """Forget a document."""
        with self._database.write() as connection:
            self._delete(connection, category, name)
            self._count(connection)

    def _find(self, connection: sqlite3.Connection, category: str, name: str) -> StoredDocument | None:
        query = f"SELECT {_COLUMNS} FROM documents WHERE project = ? AND category = ? AND name = ?"
        found = connection.execute(query, (self._project, category, name)).fetchone()
        return None if found is None else _document(*found)

    def _insert(self, connection: sqlite3.Connection, document: StoredDocument, by: str) -> None:
        connection.execute(
            "INSERT OR REPLACE INTO documents (project, category, name, text, metadata, updated, by)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                self._project,
                document.category,
                document.name,
                document.text,
                json.dumps(dict(document.metadata)),
                datetime.now(UTC).isoformat(),
                by,
            ),
        )

    def _delete(self, connection: sqlite3.Connection, category: str, name: str) -> None:
        found = connection.execute(
            "DELETE FROM documents WHERE project = ? AND category = ? AND name = ?", (self._project, category, name)
        )
        if found.rowcount == 0:
            raise NotFound(f"There is no stored document `{category}/{name}`.", code=ErrorCode.RESOURCE_NOT_FOUND)

    def _count(self, connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO document_changes (project, count) VALUES (?, 1)"
            " ON CONFLICT (project) DO UPDATE SET count = count + 1",
            (self._project,),
        )


_COLUMNS = "category, name, text, metadata, by, updated, accepted_by, accepted_digest"


def _document(
    category: str,
    name: str,
    text: str,
    metadata: str,
    by: str,
    updated: str,
    accepted_by: str | None,
    accepted_digest: str | None,
) -> StoredDocument:
    found = StoredDocument(
        category=category, name=name, text=text, metadata=json.loads(metadata), written_by=by, written_at=updated
    )
    # Whoever accepted something else has not accepted this.
    return replace(found, accepted_by=accepted_by) if accepted_digest == found.digest else found
