"""Content: what an expression chooses from. Categories hold documents; collections name expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from trysquare.guide.document import Document


@dataclass(frozen=True, kw_only=True, slots=True)
class Category:
    """A folder of documents."""

    name: str
    folder: str
    patterns: tuple[str, ...] = ("*.md",)
    description: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Collection:
    """Several expressions under one name."""

    name: str
    expressions: tuple[str, ...]
    description: str | None = None


class Content(Protocol):
    """The content of one project."""

    def category(self, name: str) -> Category | None: ...

    def collection(self, name: str) -> Collection | None: ...

    def categories(self) -> Sequence[Category]: ...

    def collections(self) -> Sequence[Collection]: ...

    def documents(self, category: str) -> Sequence[Document]:
        """All documents of a category, in a fixed order, stored ones included."""
        ...

    def tagged(self, tag: str) -> Sequence[Document]:
        """All documents with a tag, in a fixed order."""
        ...
