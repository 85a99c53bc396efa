"""Pages of a JSON document: partial documents of the same shape, which together are the whole.

A page has the next entries of an object, the next items of a list, the next characters of a string. `continues` is the
path of what the previous page left unfinished: a string there is continued, a list there gets more items, and the first
item of a list on that path is the last item of the previous page. So pages join in order without loss.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from trysquare.core.json import JsonObject

Path: TypeAlias = tuple[str | int, ...]


@dataclass(kw_only=True, slots=True)
class Page:
    """A part of a document. `continues` is None for the first page."""

    part: JsonObject = field(default_factory=dict[str, Any])
    continues: Path | None = None


def paginate(document: JsonObject, *, head: int, page: int) -> list[Page]:
    """Cut a document into a first page of about `head` characters and further ones of about `page`."""
    packer = _Packer(head=head, page=page)
    packer.add_parts((), document)
    return packer.pages


def pointer(path: Path) -> str:
    """A path as a JSON pointer: `/value/3/text`."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


class _Packer:
    """Fills one page after the other."""

    def __init__(self, *, head: int, page: int) -> None:
        self._page_budget = page
        self._sizes: dict[int, int] = {}
        self._kinds: dict[Path, type[Any]] = {(): dict}
        self._begun: set[Path] = set()
        self.pages: list[Page] = []
        self._start(head)

    def _start(self, budget: int) -> None:
        page = Page()
        self.pages.append(page)
        self._budget = self._left = budget
        self._nodes: dict[Path, Any] = {(): page.part}
        self._empty = True

    def _turn(self) -> None:
        self._begun.update(self._nodes)
        self._start(self._page_budget)

    def _add(self, path: Path, value: Any) -> None:
        size = self._measure(value)
        if size > self._left and size <= self._budget and not self._empty:
            self._turn()
        if size <= self._left:
            self._place(path, value, size)
        elif isinstance(value, str) and value:
            self._add_text(path, value)
        elif isinstance(value, (dict, list)) and value:
            self._kinds[path] = type(cast(Any, value))
            self.add_parts(path, value)
        else:
            self._place(path, value, size)

    def add_parts(self, path: Path, container: Any) -> None:
        """Add a list's items in order; an object's entries with the large ones last, so that one hides no others."""
        parts, budget = _parts(container), self._budget
        if isinstance(container, dict):
            parts = sorted(parts, key=lambda entry: self._measure(entry[1]) * 4 > budget)
        for key, part in parts:
            self._add((*path, key), part)

    def _add_text(self, path: Path, text: str) -> None:
        start = 0
        while start < len(text):
            if self._left < min(80, self._budget // 2) and not self._empty:
                self._turn()
            end = _break_in(text, start, start + max(1, self._left))
            self._place(path, text[start:end], end - start)
            self._begun.add(path)
            start = end
            if start < len(text):
                self._turn()

    def _place(self, path: Path, value: Any, size: int) -> None:
        if self._empty and len(self.pages) > 1:
            self.pages[-1].continues = self._unfinished(path)
        _put(self._node(path[:-1]), path[-1], value)
        self._empty = False
        self._left -= size + len(str(path[-1])) + 4

    def _unfinished(self, path: Path) -> Path:
        """The longest prefix of a path that is on an earlier page."""
        while path and path not in self._begun:
            path = path[:-1]
        return path

    def _node(self, path: Path) -> Any:
        """The container at a path of this page, created with its parents where it is missing."""
        if path in self._nodes:
            return self._nodes[path]
        node = self._kinds[path]()
        _put(self._node(path[:-1]), path[-1], node)
        self._nodes[path] = node
        return node

    def _measure(self, value: Any) -> int:
        """About the length of a value as JSON text; each container is measured once."""
        if isinstance(value, str):
            return len(value) + 2
        if not isinstance(value, (dict, list)):
            return len(str(value))
        known = self._sizes.get(id(cast(Any, value)))
        if known is None:
            known = 2 + sum(len(str(key)) + 4 + self._measure(part) for key, part in _parts(value))
            self._sizes[id(cast(Any, value))] = known
        return known


def _put(parent: Any, key: str | int, value: Any) -> None:
    if isinstance(parent, list):
        cast(list[Any], parent).append(value)
    else:
        parent[key] = value


def _parts(container: Any) -> Iterable[tuple[str | int, Any]]:
    return cast(JsonObject, container).items() if isinstance(container, dict) else enumerate(cast(list[Any], container))


def _break_in(text: str, start: int, end: int) -> int:
    """Where to cut a text: after a line, if one ends in the second half of what fits."""
    if end >= len(text):
        return len(text)
    newline = text.rfind("\n", start + (end - start) // 2, end)
    return end if newline < 0 else newline + 1
