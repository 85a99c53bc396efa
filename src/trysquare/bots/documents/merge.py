"""Three-way merge of a page's edits into a document of any shape."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from trysquare.bots.documents.edits import Edits, Merged
from trysquare.bots.graph import GraphConflict
from trysquare.bots.rendering.merge import Pairs, as_number, match_items, records, same_order
from trysquare.bots.rendering.mustache import as_line
from trysquare.bots.rendering.template import FLAG, Record
from trysquare.core.json import JsonObject

_KEYS = ("id", "name", "title", "key", "what", "text", "question", "when", ".")
"""By the first of these that it has, an item of a list is known again."""
_TEXTS_ONLY = frozenset({"."})


def merge_records(value: Any, edits: Edits, current: Record) -> Merged:
    """Merge every edit between two readings of a page into a value, unless the value changed at the same place."""
    if not isinstance(value, dict):
        return Merged(value=value, conflicts=("Only a document that is an object takes edits of a page.",))
    made: JsonObject = copy.deepcopy(cast(JsonObject, value))
    merge = _Merge()
    merge.node(made, edits.before, edits.after, current, "the document")
    if len(merge.removed) >= edits.confirm_from and not edits.confirmed:
        raise GraphConflict(
            f"The edited file removes {len(merge.removed)} items: {', '.join(merge.removed[:5])}.",
            instruction="Show the user what is removed, and repeat the call with the deletion confirmed.",
            fields={"removes": merge.removed[:20], "count": len(merge.removed)},
        )
    return Merged(value=made, changes=tuple(merge.changes), conflicts=tuple(merge.conflicts))


@dataclass(kw_only=True, slots=True)
class _Merge:
    changes: list[str] = field(default_factory=list[str])
    conflicts: list[str] = field(default_factory=list[str])
    removed: list[str] = field(default_factory=list[str])

    def node(self, node: JsonObject, before: Record, after: Record, current: Record, where: str) -> None:
        """Merge a record into the object that it shows."""
        for name in dict.fromkeys((*before, *after)):
            if before.get(name) == after.get(name) or after.get(name) == current.get(name):
                continue
            if isinstance(before.get(name, after.get(name)), list):
                self._section(node, name, before, after, current, where)
            elif before.get(name) != current.get(name):
                self.conflicts.append(
                    f"{where}: `{_plain(name)}` is now `{current.get(name, '')}` in the document and "
                    f"`{after.get(name, '')}` in the page."
                )
            else:
                self._value(node, name, before.get(name), after.get(name), where)

    def _value(self, node: JsonObject, name: str, before: Any, after: Any, where: str) -> None:
        *way, last = _plain(name).split(".") if name != "." else ["."]
        holder: Any = node
        for piece in way:
            holder = holder.get(piece) if isinstance(holder, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        old: Any = cast(JsonObject, holder).get(last) if isinstance(holder, dict) else None
        problem = _refusal(holder, last, old, before)
        if problem is not None:
            self.conflicts.append(f"{where}: `{_plain(name)}` {problem}")
            return
        target = cast(JsonObject, holder)
        self.changes.append(f"{where}: {_plain(name)}: `{_shown(before)}` is now `{_shown(after)}`")
        if after is None or (after == "" and old is None):
            target.pop(last, None)
        else:
            target[last] = _typed(after, old)

    def _section(self, node: JsonObject, name: str, before: Record, after: Record, current: Record, where: str) -> None:
        held: Any = node.get(name)
        old, new, now = records(before, name), records(after, name), records(current, name)
        if isinstance(held, list) or held is None:
            items = cast("list[Any]", held or [])
            node[name] = self._items(items, old, new, now, f"{where}: {name}" if where != "the document" else name)
        elif len(old) == len(new) == len(now) == 1:
            # A section of an object shows its values; one of a single value shows those around it.
            inner = cast(JsonObject, held) if isinstance(held, dict) else node
            self.node(inner, old[0], new[0], now[0], name if inner is not node else where)
        else:
            self.conflicts.append(f"{where}: `{name}` was added or removed in the page; change it in the document.")

    def _items(
        self, items: list[Any], old: list[Record], new: list[Record], now: list[Record], where: str
    ) -> list[Any]:
        if len(items) != len(now):
            self.conflicts.append(f"{where}: the page does not show every item, so it cannot be carried back.")
            return items
        edited, present = match_items(old, new, _identity), match_items(old, now, _identity)
        at = {index: place for place, index in enumerate(present.before_of) if index is not None}
        gone = self._gone(edited, at, old, now, where)
        kept: dict[int, Any] = {}
        for record, index in zip(new, edited.before_of, strict=True):
            if index is None:
                continue
            if index not in at:
                if record != old[index]:
                    self.conflicts.append(f"{where}: `{_identity(record)}` is no longer in the document.")
                continue
            place = at[index]
            kept[place] = self._item(items[place], old[index], record, now[place], f"{where}: {_identity(old[index])}")
        rest = [place for place in range(len(items)) if place not in gone and place not in kept]
        return self._ordered(items, new, edited, at, kept, rest, where)

    def _gone(self, edited: Pairs, at: Mapping[int, int], old: list[Record], now: list[Record], where: str) -> set[int]:
        """The places of items that the page no longer has; one that changed meanwhile is kept."""
        gone = set[int]()
        for index in edited.removed:
            place = at.get(index)
            if place is None:
                continue
            if now[place] != old[index]:
                self.conflicts.append(f"{where}: `{_identity(old[index])}` was removed in the page, and changed since.")
                continue
            gone.add(place)
            self.removed.append(_identity(old[index]))
            self.changes.append(f"{where}: `{_identity(old[index])}` is removed")
        return gone

    def _item(self, item: Any, before: Record, after: Record, current: Record, where: str) -> Any:
        if isinstance(item, dict):
            self.node(cast(JsonObject, item), before, after, current, where)
            return item  # pyright: ignore[reportUnknownVariableType]
        if before.get(".") == after.get("."):
            return item
        self.changes.append(f"{where}: is now `{after.get('.', '')}`")
        return _typed(after.get(".", ""), item)

    def _ordered(
        self,
        items: list[Any],
        new: list[Record],
        edited: Pairs,
        at: Mapping[int, int],
        kept: Mapping[int, Any],
        rest: list[int],
        where: str,
    ) -> list[Any]:
        """The items in the order of the page, where it was changed there, and otherwise in that of the document."""
        places = [None if index is None else at.get(index) for index in edited.before_of]
        order = [place for place in places if place is not None and place in kept]
        if same_order(edited):
            order = sorted(order)
        else:
            self.changes.append(f"{where}: the order changed")
        made = {place: kept[place] for place in order} | {place: items[place] for place in rest}
        lined: list[tuple[int | None, Any]] = [(place, made[place]) for place in (*order, *rest)]
        if same_order(edited):
            lined.sort(key=lambda each: each[0] or 0)
        for position, (record, index) in enumerate(zip(new, edited.before_of, strict=True)):
            if index is None:
                self.changes.append(f"{where}: `{_identity(record)}` is new")
                after = [place for place in places[:position] if place is not None]
                spot = next((n for n, (place, _) in enumerate(lined) if after and place == after[-1]), None)
                fresh = [n for n, (place, _) in enumerate(lined) if place is None]
                start = max([-1 if spot is None else spot, *(n for n in fresh if spot is None or n > spot)])
                lined.insert(start + 1 if after or fresh else 0, (None, _made(record, items)))
        return [value for _, value in lined]


def _refusal(holder: Any, last: str, old: Any, before: Any) -> str | None:
    """Why an edited value cannot be written, or None."""
    if not isinstance(holder, dict) or (last not in holder and before):
        return "is not part of this item; change it where it stands in the document."
    if isinstance(old, (list, dict)):
        return "is a list or an object; change it in the document."
    if isinstance(old, str) and "\n" in old:
        return "has several lines, which the page shows as one; change it in the document."
    return None


def _plain(name: str) -> str:
    return name.removeprefix(FLAG)


def _shown(value: Any) -> str:
    return "" if value is None else str(value)


def _typed(text: Any, like: Any) -> Any:
    """A text of a page as the kind of value that was there."""
    if isinstance(text, str) and isinstance(like, bool):
        return text.strip().lower() == "true"
    if isinstance(text, str) and isinstance(like, (int, float)):
        return as_number(text)
    return text


def _identity(record: Record) -> str:
    found = next((str(record[key]) for key in _KEYS if isinstance(record.get(key), str)), None)
    return found or " ".join(as_line(each) for name, each in record.items() if not name.startswith(FLAG))


def _made(record: Record, siblings: list[Any]) -> Any:
    """A new item as its siblings are: an object with their kinds of values, or a single value."""
    if record.keys() <= _TEXTS_ONLY:
        return _typed(record.get(".", ""), siblings[0] if siblings else None)
    objects = [cast(JsonObject, each) for each in siblings if isinstance(each, dict)]

    def like(name: str) -> Any:
        return next((each[name] for each in objects if each.get(name) is not None), None)

    made: JsonObject = {}
    for name, value in record.items():
        if isinstance(value, list):
            inner = like(name)
            known = cast("list[Any]", inner) if isinstance(inner, list) else []
            made[name] = [_made(each, known) for each in cast("list[Record]", value)]
        elif "." not in name:
            made[_plain(name)] = _typed(value, like(_plain(name)))
    return made
