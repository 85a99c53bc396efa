"""Carrying: what was edited in one record goes into its node, unless the node was changed meanwhile as well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from trysquare.bots.rendering.pairing import pair, same_order
from trysquare.bots.rendering.reading import Record
from trysquare.bots.rendering.template import as_line
from trysquare.core.types import JsonObject

SHOWN_ONLY = frozenset({"heading", "number", "depth", "path", "epic", "."})
"""Values that the view makes; they are no part of the graph."""
_NUMBERS = frozenset({"priority", "sequential_order"})
KEYS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "acceptance_criteria": ("when", ("when", "then")),
    "scenarios": ("name", ("name",)),
}
"""Lists of records within a story: what names an item, and what it cannot be without."""
_BELOW = frozenset({"stories", "outline", "increments", "epics", "sub_epics"})


@dataclass(kw_only=True)
class Carrier:
    """Collects what was carried and what could not be."""

    changes: list[str] = field(default_factory=list[str])
    conflicts: list[str] = field(default_factory=list[str])

    def carry(self, node: JsonObject, before: Record, after: Record, where: str) -> None:
        """Every value of a record that was edited, and the lists within it."""
        for name in dict.fromkeys((*before, *after)):
            if name in SHOWN_ONLY or name in _BELOW:
                continue
            if name in KEYS:
                self._carry_records(node, name, records(before, name), records(after, name), where)
            elif isinstance(before.get(name, after.get(name)), list):
                self.carry_texts(node, name, texts(before, name), texts(after, name), where)
            else:
                self._carry_value(node, name, str(before.get(name, "")), str(after.get(name, "")), where)

    def _carry_value(self, node: JsonObject, name: str, before: str, after: str, where: str) -> None:
        current = as_line(node.get(name))
        if before == after or current == after:
            return
        if current != before:
            self.conflicts.append(f"{where}: `{name}` is `{current}` in the graph by now, and `{after}` in the file.")
            return
        self.changes.append(f"{where}: {name}: `{before}` is now `{after}`")
        if after:
            node[name] = as_number(after) if name in _NUMBERS else after
        else:
            node.pop(name, None)

    def carry_texts(self, node: JsonObject, name: str, before: list[str], after: list[str], where: str) -> None:
        """A list of texts, as a whole."""
        current = [as_line(each) for each in cast("list[Any]", node.get(name) or [])]
        if after in (before, current):
            return
        if current != before:
            self.conflicts.append(f"{where}: `{name}` was changed in the graph and in the file.")
            return
        self.changes.append(f"{where}: {name}: now {', '.join(f'`{each}`' for each in after) or 'empty'}")
        node[name] = after

    def _carry_records(
        self, node: JsonObject, name: str, before: list[Record], after: list[Record], where: str
    ) -> None:
        if before == after:
            return
        key, needed = KEYS[name]
        nodes: list[JsonObject] = list(node.get(name) or ())
        node[name] = self.carry_list(nodes, before, after, key=key, needed=needed, where=where)

    def carry_list(
        self,
        nodes: list[JsonObject],
        before: list[Record],
        after: list[Record],
        *,
        key: str,
        needed: tuple[str, ...],
        where: str,
    ) -> list[JsonObject]:
        """A list of nodes after the edits of its records: reworded, added, removed and in another order."""
        pairs = pair(before, after, lambda each: str(each.get(key, "")))
        known = {as_line(each.get(key)): each for each in nodes}
        kept: list[JsonObject] = []
        for record, old in zip(after, pairs.before_of, strict=True):
            made = self._item(known, before[old] if old is not None else None, record, key, needed, where)
            if made is not None:
                kept.append(made)
        for old in pairs.removed:
            name = str(before[old].get(key, ""))
            if name in known:
                self.changes.append(f"{where}: removed `{name}`")
        if not same_order(pairs):
            self.changes.append(f"{where}: another order")
        shown = {str(each.get(key, "")) for each in before}
        return with_unshown(nodes, kept, lambda each: as_line(each.get(key)) in shown)

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
                self.conflicts.append(f"{where}: `{name}` is new and has no {' and no '.join(lacking)}.")
                return None
            made: JsonObject = {}
            self.changes.append(f"{where}: added `{name}`")
            Carrier().carry(made, {}, after, name)
            return made
        node = known.get(str(before.get(key, "")))
        if node is None:
            if before != after:
                self.conflicts.append(f"{where}: `{name}` was edited in the file, but the graph has it no longer.")
            return None
        self.carry(node, before, after, f"{where} > {before.get(key, '')}")
        return node


def with_unshown(
    nodes: list[JsonObject], kept: list[JsonObject], was_shown: Callable[[JsonObject], bool]
) -> list[JsonObject]:
    """The kept nodes in their new order, with nodes that the file never showed after the one they stood after."""
    made = list(kept)
    for place, node in enumerate(nodes):
        if was_shown(node) or any(each is node for each in made):
            continue
        above = next((i for i, each in enumerate(made) if place and each is nodes[place - 1]), None)
        made.insert(0 if not place else len(made) if above is None else above + 1, node)
    return made


def records(record: Record, name: str) -> list[Record]:
    """The records of a list within a record."""
    return list(record.get(name) or ())


def texts(record: Record, name: str) -> list[str]:
    """The texts of a list within a record."""
    return [str(each.get(".", "")) for each in records(record, name)]


def as_number(text: str) -> int | float:
    """A number as the graph holds it."""
    value = float(text)
    return int(value) if value.is_integer() else value
