"""Three-way merge of records into graph nodes, and matching of list items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, TypeVar, cast

from trysquare.bots.rendering.reader import Record
from trysquare.bots.rendering.template import as_line
from trysquare.core.json import JsonObject

ALIKE = 0.6
"""From this ratio on, a name counts as reworded."""

_Item = TypeVar("_Item")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairs:
    """Old index of each new item, None for an added one."""

    before_of: tuple[int | None, ...]
    removed: tuple[int, ...]


def match_items(before: Sequence[_Item], after: Sequence[_Item], name: Callable[[_Item], str]) -> Pairs:
    """Match items by equal names, then by similar names, then by position where nothing was added or removed.

    A completely reworded item keeps its contents as long as it stays in its position.
    """
    found: dict[int, int] = {}
    free = list(range(len(before)))

    def pair(new: int, old: int) -> None:
        found[new] = old
        free.remove(old)

    for new, item in enumerate(after):
        same = next((old for old in free if name(before[old]) == name(item)), None)
        if same is not None:
            pair(new, same)
    for new in [each for each in range(len(after)) if each not in found]:
        alike = max(free, key=lambda old: likeness(name(before[old]), name(after[new])), default=None)
        if alike is not None and likeness(name(before[alike]), name(after[new])) >= ALIKE:
            pair(new, alike)
    if len(before) == len(after):
        for new in [each for each in range(len(after)) if each not in found and each in free]:
            pair(new, new)
    return Pairs(before_of=tuple(found.get(new) for new in range(len(after))), removed=tuple(free))


def likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one.casefold(), other.casefold(), autojunk=False).ratio()


def same_order(pairs: Pairs) -> bool:
    """Whether the remaining items are in the same order."""
    remaining = [each for each in pairs.before_of if each is not None]
    return remaining == sorted(remaining)


SHOWN_ONLY = frozenset({"heading", "number", "depth", "path", "epic", "."})
"""Values of the view that are not part of the graph."""
_NUMBERS = frozenset({"priority", "sequential_order"})
KEYS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "acceptance_criteria": ("when", ("when", "then")),
    "scenarios": ("name", ("name",)),
}
"""Lists of records within a story: the key of an item, and its required fields."""
_BELOW = frozenset({"stories", "outline", "increments", "epics", "sub_epics"})


@dataclass(kw_only=True)
class NodeMerge:
    """Merges edits into nodes, and collects changes and conflicts."""

    changes: list[str] = field(default_factory=list[str])
    conflicts: list[str] = field(default_factory=list[str])

    def merge(self, node: JsonObject, before: Record, after: Record, where: str) -> None:
        """Merge every edited value of a record, and its lists."""
        for name in dict.fromkeys((*before, *after)):
            if name in SHOWN_ONLY or name in _BELOW:
                continue
            if name in KEYS:
                self._merge_records(node, name, records(before, name), records(after, name), where)
            elif isinstance(before.get(name, after.get(name)), list):
                self.merge_texts(node, name, texts(before, name), texts(after, name), where)
            else:
                self._merge_value(node, name, str(before.get(name, "")), str(after.get(name, "")), where)

    def _merge_value(self, node: JsonObject, name: str, before: str, after: str, where: str) -> None:
        current = as_line(node.get(name))
        if before == after or current == after:
            return
        if current != before:
            self.conflicts.append(f"{where}: `{name}` is now `{current}` in the graph and `{after}` in the file.")
            return
        self.changes.append(f"{where}: {name}: `{before}` is now `{after}`")
        if after:
            node[name] = as_number(after) if name in _NUMBERS else after
        else:
            node.pop(name, None)

    def merge_texts(self, node: JsonObject, name: str, before: list[str], after: list[str], where: str) -> None:
        current = [as_line(each) for each in cast("list[Any]", node.get(name) or [])]
        if after in (before, current):
            return
        if current != before:
            self.conflicts.append(f"{where}: `{name}` was changed in the graph and in the file.")
            return
        self.changes.append(f"{where}: {name}: now {', '.join(f'`{each}`' for each in after) or 'empty'}")
        node[name] = after

    def _merge_records(
        self, node: JsonObject, name: str, before: list[Record], after: list[Record], where: str
    ) -> None:
        if before == after:
            return
        key, needed = KEYS[name]
        nodes: list[JsonObject] = list(node.get(name) or ())
        node[name] = self.merge_list(nodes, before, after, key=key, needed=needed, where=where)

    def merge_list(
        self,
        nodes: list[JsonObject],
        before: list[Record],
        after: list[Record],
        *,
        key: str,
        needed: tuple[str, ...],
        where: str,
    ) -> list[JsonObject]:
        """Merge a list of records: reworded, added, removed and reordered items."""
        pairs = match_items(before, after, lambda each: str(each.get(key, "")))
        known = {as_line(each.get(key)): each for each in nodes}
        merged: list[JsonObject] = []
        for record, old in zip(after, pairs.before_of, strict=True):
            made = self._item(known, before[old] if old is not None else None, record, key, needed, where)
            if made is not None:
                merged.append(made)
        for old in pairs.removed:
            name = str(before[old].get(key, ""))
            if name in known:
                self.changes.append(f"{where}: removed `{name}`")
        if not same_order(pairs):
            self.changes.append(f"{where}: another order")
        shown = {str(each.get(key, "")) for each in before}
        return _with_unshown(nodes, merged, lambda each: as_line(each.get(key)) in shown)

    def _item(
        self,
        known: Mapping[str, JsonObject],
        before: Record | None,
        after: Record,
        key: str,
        needed: tuple[str, ...],
        where: str,
    ) -> JsonObject | None:
        name = str(after.get(key, ""))
        if before is None:
            lacking = [each for each in needed if not after.get(each)]
            if lacking:
                self.conflicts.append(f"{where}: `{name}` is new and lacks {' and '.join(lacking)}.")
                return None
            made: JsonObject = {}
            self.changes.append(f"{where}: added `{name}`")
            NodeMerge().merge(made, {}, after, name)
            return made
        node = known.get(str(before.get(key, "")))
        if node is None:
            if before != after:
                self.conflicts.append(f"{where}: `{name}` was edited in the file, but is no longer in the graph.")
            return None
        self.merge(node, before, after, f"{where} > {before.get(key, '')}")
        return node


def _with_unshown(
    nodes: list[JsonObject], merged: list[JsonObject], was_shown: Callable[[JsonObject], bool]
) -> list[JsonObject]:
    """The nodes in their new order, with nodes that the file never showed after their old neighbours."""
    made = list(merged)
    for index, node in enumerate(nodes):
        if was_shown(node) or any(each is node for each in made):
            continue
        above = next((i for i, each in enumerate(made) if index and each is nodes[index - 1]), None)
        made.insert(0 if not index else len(made) if above is None else above + 1, node)
    return made


def records(record: Record, name: str) -> list[Record]:
    return list(record.get(name) or ())


def name_of(record: Record) -> str:
    return str(record.get("name", ""))


def texts(record: Record, name: str) -> list[str]:
    return [str(each.get(".", "")) for each in records(record, name)]


def as_number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value
