"""Content made in a line, for the tests of what chooses from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trysquare.guide.documents import Category, Collection, Document, DocumentId
from trysquare.guide.retrieval import ContentPart
from trysquare.guide.selection import Chosen


def document(id: str, text: str = "text", **more: Any) -> Document:
    """A document with an id such as `lang/python`."""
    category, _, name = id.partition("/")
    return Document(id=DocumentId(category=category, name=name), text=text, digest=f"digest of {id}", **more)


def piece(id: str, *, tokens: int = 1, digest: str | None = None, text: str = "text", **more: Any) -> ContentPart:
    """A document that is ready to be sent."""
    made = document(id, text, **more)
    return ContentPart(
        chosen=Chosen(document=made, because=id), text=text, digest=digest or f"{id}-digest", tokens=tokens
    )


@dataclass
class FixedContent:
    """Content that is what it was made of."""

    held: Sequence[Document]
    named: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    def category(self, name: str) -> Category | None:
        return next((each for each in self.categories() if each.name == name), None)

    def collection(self, name: str) -> Collection | None:
        return Collection(name=name, expressions=tuple(self.named[name])) if name in self.named else None

    def categories(self) -> Sequence[Category]:
        return [Category(name=name, folder=name) for name in dict.fromkeys(each.id.category for each in self.held)]

    def collections(self) -> Sequence[Collection]:
        return [Collection(name=name, expressions=tuple(texts)) for name, texts in self.named.items()]

    def documents(self, category: str) -> Sequence[Document]:
        return [each for each in self.held if each.id.category == category]

    def tagged(self, tag: str) -> Sequence[Document]:
        return [each for each in self.held if tag in each.tags]
