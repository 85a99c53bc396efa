"""OrderedDocuments: the documents of a category in order, with an index of their names that is made once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from trysquare.guide.document import Document


class OrderedDocuments(tuple[Document, ...]):
    """Documents that do not change: a category that is read again has others."""

    @cached_property
    def by_name(self) -> Mapping[str, list[Document]]:
        """The documents by their names and by the last pieces of their names, in lower case."""
        found: dict[str, list[Document]] = {}
        for document, name in zip(self, self.lower_names, strict=True):
            last = name.rpartition("/")[2]
            found.setdefault(name, []).append(document)
            if last != name:
                found.setdefault(last, []).append(document)
        return found

    @cached_property
    def lower_names(self) -> tuple[str, ...]:
        """Each document's name in lower case, in the same order."""
        return tuple(document.id.name.lower() for document in self)
