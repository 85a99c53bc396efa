"""Three-way merge of records and outlines into the graph, and matching of list items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, TypeVar, cast

from trysquare.bots.graph import Graph, all_stories, children, stories_of, top_node, walk
from trysquare.bots.rendering.mustache import as_line
from trysquare.bots.rendering.template import FLAG, Record
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
            if name in SHOWN_ONLY or name in _BELOW or name.startswith(FLAG):
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


_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    path: _Path
    record: Record
    section: int
    """Of a story, the index of its section; of a section, its own."""

    @property
    def name(self) -> str:
        return self.path[-1]


@dataclass(frozen=True, slots=True)
class _Outline:
    sections: list[_Part]
    stories: list[_Part]


def merge_outline(graph: JsonObject, before: list[Record], after: list[Record], merge: NodeMerge) -> dict[str, str]:
    """Merge an edited outline; returns the new names of renamed stories by the old ones."""
    old, new = _outline(before), _outline(after)
    tree = _Tree(graph, merge)
    sections = _pair_sections(old.sections, new.sections)
    stories = _pair_stories(old, new, sections)
    nodes = tree.place_sections(old, new, sections)
    renamed = tree.place_stories(old, new, sections, stories, nodes)
    tree.remove(old, sections, stories)
    return renamed


def _outline(found: list[Record]) -> _Outline:
    outline = _Outline([], [])
    path: list[str] = []
    for index, record in enumerate(found):
        depth = max(0, len(str(record.get("heading", "##"))) - 2)
        path = [*path[:depth], name_of(record)]
        outline.sections.append(_Part(tuple(path), record, index))
        outline.stories.extend(_Part((*path, name_of(story)), story, index) for story in records(record, "stories"))
    return outline


def _pair_sections(before: list[_Part], after: list[_Part]) -> Pairs:
    """Match by full path first, so that equal names in different epics stay apart."""
    exact = {part.path: index for index, part in enumerate(before)}
    # Of two with the same path, the first is the original.
    found = {index: exact.pop(part.path) for index, part in enumerate(after) if part.path in exact}
    old = [index for index in range(len(before)) if index not in found.values()]
    new = [index for index in range(len(after)) if index not in found]
    rest = match_items([before[i] for i in old], [after[i] for i in new], lambda part: part.name)
    found |= {new[i]: old[j] for i, j in enumerate(rest.before_of) if j is not None}
    return Pairs(
        before_of=tuple(found.get(index) for index in range(len(after))),
        removed=tuple(index for index in range(len(before)) if index not in found.values()),
    )


def _pair_stories(old: _Outline, new: _Outline, sections: Pairs) -> Pairs:
    """Match by name in the whole outline, then by similarity and position within a section."""
    names = {part.name: index for index, part in enumerate(old.stories)}
    # Of two with the same name, the one in the same section is the original.
    stayed = [
        i
        for i, part in enumerate(new.stories)
        if part.name in names and old.stories[names[part.name]].section == sections.before_of[part.section]
    ]
    order = [*stayed, *(index for index in range(len(new.stories)) if index not in stayed)]
    found = {index: names.pop(new.stories[index].name) for index in order if new.stories[index].name in names}
    taken = set(found.values())
    for place, origin in enumerate(sections.before_of):
        before = [i for i, part in enumerate(old.stories) if part.section == origin and i not in taken]
        after = [i for i, part in enumerate(new.stories) if part.section == place and i not in found]
        within = match_items([old.stories[i] for i in before], [new.stories[i] for i in after], lambda part: part.name)
        found |= {after[i]: before[j] for i, j in enumerate(within.before_of) if j is not None}
        taken = set(found.values())
    return Pairs(
        before_of=tuple(found.get(index) for index in range(len(new.stories))),
        removed=tuple(index for index in range(len(old.stories)) if index not in taken),
    )


class _Tree:
    """The tree of a graph during a merge. Nodes are compared by identity."""

    def __init__(self, graph: JsonObject, merge: NodeMerge) -> None:
        self.graph, self.merge = graph, merge
        self.sections: dict[_Path, JsonObject] = {}
        self.stories: dict[str, JsonObject] = {}
        for node in walk(graph):
            if node.kind in ("epic", "sub_epic"):
                self.sections[tuple(map(as_line, node.address))] = node.value
            elif node.kind == "story":
                self.stories[as_line(node.name)] = node.value

    def place_sections(self, old: _Outline, new: _Outline, pairs: Pairs) -> list[JsonObject | None]:
        """Rename, add, move and reorder epics; returns the node of each section."""
        nodes: list[JsonObject | None] = []
        by_path: dict[_Path, JsonObject | None] = {}
        for part, origin in zip(new.sections, pairs.before_of, strict=True):
            before = None if origin is None else old.sections[origin]
            known, name = before and self.sections.get(before.path), f"epic `{' > '.join(part.path)}`"
            node = self._merged(known, before, part, name, " > ".join((before or part).path))
            nodes.append(node)
            by_path[part.path] = node
            if node is None:
                continue
            above = by_path.get(part.path[:-1]) if len(part.path) > 1 else self.graph
            moved = origin is None or self._was_below(old, pairs, new, part, origin)
            if above is not None and moved:
                self._attach(node, above, "epics" if above is self.graph else "sub_epics", origin is not None, part)
        placed = [node for node in nodes if node is not None]
        ranks = {id(self.sections[part.path]): i for i, part in enumerate(old.sections) if part.path in self.sections}
        for above, key in [(self.graph, "epics"), *((node, "sub_epics") for node in placed)]:
            self._reorder(above, key, placed, ranks)
        return nodes

    def _merged(
        self, node: JsonObject | None, before: _Part | None, after: _Part, name: str, where: str
    ) -> JsonObject | None:
        if before is None:
            made: JsonObject = {}
            NodeMerge().merge(made, {}, after.record, where)
            self.merge.changes.append(f"added the {name}")
            return made
        if node is not None:
            self.merge.merge(node, before.record, after.record, where)
        elif before.record != after.record:
            self.merge.conflicts.append(f"The {name} was edited in the file, but is no longer in the graph.")
        return node

    def _was_below(self, old: _Outline, pairs: Pairs, new: _Outline, part: _Part, origin: int) -> bool:
        parents = {each.path: index for index, each in enumerate(new.sections)}
        above = parents.get(part.path[:-1])
        now = pairs.before_of[above] if above is not None else None
        before = old.sections[origin].path[:-1]
        return before != (old.sections[now].path if now is not None else ()) or (above is not None and now is None)

    def place_stories(
        self, old: _Outline, new: _Outline, sections: Pairs, stories: Pairs, nodes: list[JsonObject | None]
    ) -> dict[str, str]:
        """Rename, add, move and reorder stories; returns the new names by the old ones."""
        renamed: dict[str, str] = {}
        placed: list[JsonObject] = []
        for part, origin in zip(new.stories, stories.before_of, strict=True):
            before = old.stories[origin] if origin is not None else None
            full = str(self.stories.get(before.name, {}).get("name")) if before is not None else part.name
            known = before and self.stories.get(before.name)
            node = self._merged(known, before, part, f"story `{part.name}`", (before or part).name)
            above = nodes[part.section]
            if node is None:
                continue
            placed.append(node)
            if before is not None and node.get("name") != full:
                renamed[full] = part.name
            if before is not None and sections.before_of[part.section] == before.section:
                continue
            if above is None:
                self.merge.conflicts.append(f"`{part.name}` cannot be moved: its epic is no longer in the graph.")
            else:
                self._attach(node, above, "stories", before is not None, part)
        ranks = {id(self.stories[part.name]): i for i, part in enumerate(old.stories) if part.name in self.stories}
        for node in nodes:
            if node is not None:
                self._reorder_stories(node, placed, ranks)
        return renamed

    def _attach(self, node: JsonObject, above: JsonObject, key: str, known: bool, part: _Part) -> None:
        if known:
            self.merge.changes.append(f"moved `{part.name}` to `{' > '.join(part.path[:-1]) or 'the top'}`")
        self._detach(node)
        above.setdefault(key, []).append(node)

    def _detach(self, node: JsonObject) -> None:
        for siblings in _lists(self.graph):
            siblings[:] = [each for each in siblings if each is not node]

    def _reorder(self, above: JsonObject, key: str, wanted: list[JsonObject], ranks: dict[int, int]) -> bool:
        """Reorder the shown children in place, among the others."""
        siblings: list[JsonObject] = above.get(key) or []
        order = {id(node): place for place, node in enumerate(wanted)}
        places = [place for place, each in enumerate(siblings) if id(each) in order]
        shown = sorted((siblings[place] for place in places), key=lambda each: order[id(each)])
        known = [ranks[id(each)] for each in shown if id(each) in ranks]
        # An unchanged order in the file leaves the order of the graph alone.
        if known == sorted(known) and len(known) == len(shown):
            return False
        for place, node in zip(places, shown, strict=True):
            siblings[place] = node
        return True

    def _reorder_stories(self, epic: JsonObject, placed: list[JsonObject], ranks: dict[int, int]) -> None:
        changed = self._reorder(epic, "stories", placed, ranks)
        for group in epic.get("story_groups") or ():
            changed = self._reorder(group, "stories", placed, ranks) or changed
        below = [node.value for node in stories_of(top_node(epic, "epic"))]
        if not changed or not any("sequential_order" in each for each in below):
            return
        order = {id(node): place for place, node in enumerate(placed)}
        for number, node in enumerate(sorted(below, key=lambda each: order.get(id(each), len(order))), start=1):
            node["sequential_order"] = number
        self.merge.changes.append(f"{epic.get('name', '')}: stories in another order")

    def remove(self, old: _Outline, sections: Pairs, stories: Pairs) -> None:
        """Remove what is no longer in the outline; an epic stays while the graph has more in it than was shown."""
        for index in stories.removed:
            node = self.stories.get(old.stories[index].name)
            if node is not None:
                self._detach(node)
                self.merge.changes.append(f"removed the story `{old.stories[index].name}`")
        for index in reversed(sections.removed):
            path = old.sections[index].path
            node = self.sections.get(path)
            if node is None:
                continue
            if children(top_node(node, "epic")):
                self.merge.conflicts.append(f"`{' > '.join(path)}` is not removed: the graph has more in it now.")
                continue
            self._detach(node)
            self.merge.changes.append(f"removed the epic `{' > '.join(path)}`")


def _lists(graph: Graph) -> Iterator[list[Any]]:
    for node in walk(graph):
        for key in ("epics", "sub_epics", "stories"):
            if node.kind in ("graph", "epic", "sub_epic") and isinstance(node.value.get(key), list):
                yield node.value[key]
        if node.kind in ("epic", "sub_epic"):
            for group in cast("list[JsonObject]", node.value.get("story_groups") or []):
                yield group.get("stories", [])


def merge_graph(graph: JsonObject, before: Record, after: Record, merge: NodeMerge) -> None:
    """Merge every edit between two readings of a rendered file into the graph."""
    merge.merge(graph, before, after, "the product")
    renamed: dict[str, str] = {}
    if "outline" in before or "outline" in after:
        renamed |= merge_outline(graph, records(before, "outline"), records(after, "outline"), merge)
    elif "stories" in before or "stories" in after:
        renamed |= _merge_stories(graph, records(before, "stories"), records(after, "stories"), merge)
    _follow_names(graph, renamed)
    if "increments" in before or "increments" in after:
        _merge_increments(graph, records(before, "increments"), records(after, "increments"), merge)


def _merge_stories(graph: JsonObject, before: list[Record], after: list[Record], merge: NodeMerge) -> dict[str, str]:
    """Merge edits within stories. A flat list cannot add or remove stories."""
    nodes = {as_line(node.name): node.value for node in all_stories(graph)}
    pairs = match_items(before, after, name_of)
    renamed: dict[str, str] = {}
    for record, index in zip(after, pairs.before_of, strict=True):
        name = name_of(record)
        if index is None:
            merge.conflicts.append(f"`{name}` is new; add it to the story map instead.")
            continue
        old = name_of(before[index])
        if old not in nodes:
            if record != before[index]:
                merge.conflicts.append(f"`{name}` is no longer in the graph.")
            continue
        full = str(nodes[old]["name"])
        merge.merge(nodes[old], before[index], record, old)
        if nodes[old]["name"] != full:
            renamed[full] = name
    for index in pairs.removed:
        merge.conflicts.append(f"`{name_of(before[index])}` is not removed; remove it in the story map.")
    return renamed


def _follow_names(graph: JsonObject, renamed: dict[str, str]) -> None:
    left = {node.name for node in all_stories(graph)}
    for increment in graph.get("increments") or ():
        if "stories" in increment:
            names = [renamed.get(name, name) for name in increment["stories"]]
            increment["stories"] = [name for name in names if name in left]


def _merge_increments(graph: JsonObject, before: list[Record], after: list[Record], merge: NodeMerge) -> None:
    pairs = match_items(before, after, name_of)
    nodes: list[JsonObject] = list(graph.get("increments") or ())
    known = {each["name"]: each for each in nodes}
    made = merge.merge_list(nodes, before, after, key="name", needed=("name",), where="increments")
    # Rendered names have single spaces.
    stories = {as_line(node.name): node.name for node in all_stories(graph)}
    now = {as_line(each["name"]): each for each in made}
    for record, index in zip(after, pairs.before_of, strict=True):
        node = now.get(name_of(record))
        if node is None:
            continue
        old = before[index] if index is not None else {}
        wanted = texts(record, "stories")
        unknown = [name for name in wanted if name not in stories and name not in texts(old, "stories")]
        merge.conflicts += [f"{node['name']}: unknown story `{name}`." for name in unknown]
        found = [name for name in wanted if name in stories]
        shown = [name for name in texts(old, "stories") if name in stories]
        merge.merge_texts(node, "stories", shown, found, str(node["name"]))
        if found != shown:
            node["stories"] = [stories.get(name, name) for name in node["stories"]]
    numbers_edited = any(
        index is not None and record.get("priority") != before[index].get("priority")
        for record, index in zip(after, pairs.before_of, strict=True)
    )
    if not same_order(pairs) and not numbers_edited and known:
        for number, node in enumerate(made, start=1):
            node["priority"] = as_number(str(number))
    graph["increments"] = made
