"""Merge of an edited outline of epics and stories into the graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from trysquare.bots.graph import Graph, children, stories_of, top_node, walk
from trysquare.bots.rendering.merge import NodeMerge, Pairs, match_items, name_of, records
from trysquare.bots.rendering.reader import Record
from trysquare.bots.rendering.template import as_line
from trysquare.core.json import JsonObject

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
