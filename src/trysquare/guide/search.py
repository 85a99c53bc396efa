"""Search: which documents speak of some words. An index in memory, made anew when the content changes."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from trysquare.guide.content import Content
from trysquare.guide.document import Document

_WORD = re.compile(r"\w+", re.UNICODE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A document that fits, with the stretch of its text that does."""

    document: Document
    excerpt: str
    score: float


class Searched(Content, Protocol):
    """Content that tells when it has changed."""

    def version(self) -> tuple[int, ...]: ...


class ContentSearch:
    """Full-text search over one project's documents."""

    def __init__(self, content: Searched) -> None:
        self._content = content
        self._lock = threading.Lock()
        self._version: tuple[int, ...] | None = None
        self._documents: list[Document] = []
        self._index: sqlite3.Connection | None = None

    def find(self, query: str, *, limit: int = 10) -> list[Hit]:
        """The best documents for some words; all of the words first, then any of them."""
        words = [word.lower() for word in _WORD.findall(query)][:32]
        if not words:
            return []
        with self._lock:
            index = self._current()
            found = self._matching(index, words, " AND ", limit) or self._matching(index, words, " OR ", limit)
        return found

    def close(self) -> None:
        """Let go of the index; a later search makes it anew."""
        with self._lock:
            if self._index is not None:
                self._index.close()
            self._index, self._documents = None, []

    def _matching(self, index: sqlite3.Connection, words: Sequence[str], joint: str, limit: int) -> list[Hit]:
        asked = joint.join(f'"{word}"*' for word in words)
        rows = index.execute(
            "SELECT rowid, snippet(content, 3, '', '', ' … ', 24), bm25(content, 8.0, 4.0, 4.0, 1.0) AS score"
            " FROM content WHERE content MATCH ? ORDER BY score, rowid LIMIT ?",
            (asked, limit),
        ).fetchall()
        return [
            Hit(document=self._documents[int(rowid)], excerpt=" ".join(str(excerpt).split()), score=round(-score, 3))
            for rowid, excerpt, score in rows
        ]

    def _current(self) -> sqlite3.Connection:
        version = self._content.version()
        if self._index is None or version != self._version:
            if self._index is not None:
                self._index.close()
            self._index = self._built()
            # Asked again after reading: reading itself may have noticed changes.
            self._version = self._content.version()
        return self._index

    def _built(self) -> sqlite3.Connection:
        self._documents = [
            each for category in self._content.categories() for each in self._content.documents(category.name)
        ]
        index = sqlite3.connect(":memory:", check_same_thread=False)
        index.execute(
            "CREATE VIRTUAL TABLE content USING fts5 (name, title, tags, text, tokenize = 'porter unicode61')"
        )
        index.executemany(
            "INSERT INTO content (rowid, name, title, tags, text) VALUES (?, ?, ?, ?, ?)",
            [
                (number, f"{each.id.category} {each.id.name}", f"{each.title or ''} {each.description or ''}",
                 " ".join(sorted(each.tags)), each.text)
                for number, each in enumerate(self._documents)
            ],
        )  # fmt: skip
        return index
