"""Synchronizing: what people edited in a rendered file goes back into the story graph it was made of.

Three things are compared: what was rendered, what the file says now, and what the graph says now. An edit of the file
is carried unless the graph was changed in the same place; then it is a conflict, and the graph stays.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

from trysquare.bots.graph.edits import LARGE, refuse_large
from trysquare.bots.graph.nodes import Graph, all_stories, walk
from trysquare.bots.graph.schema import problems_of
from trysquare.bots.rendering.carrying import Carrier, as_number, records, texts
from trysquare.bots.rendering.outlines import carry_outline
from trysquare.bots.rendering.pairing import pair, same_order
from trysquare.bots.rendering.reading import Record, read_back
from trysquare.bots.rendering.template import as_line, render_template
from trysquare.bots.rendering.views import view_of
from trysquare.core.types import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class Synchronization:
    """What came of carrying edits back."""

    graph: Graph
    changes: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


def synchronize(
    graph: Graph,
    template: str,
    edited: str,
    *,
    rendered: str | None = None,
    confirm_deletion: bool = False,
    confirm_from: int = LARGE,
) -> Synchronization:
    """The graph with the edits of a rendered text. Without `rendered`, the graph counts as unchanged since then."""
    basis = rendered if rendered is not None else render_template(template, view_of(graph))
    if edited == basis:
        return Synchronization(graph=graph)
    before, after = read_back(template, basis), read_back(template, edited)
    made: JsonObject = copy.deepcopy(dict(graph))
    nodes = {id(node.value): node for node in walk(made) if node.kind not in ("step", "graph")}
    carrier = Carrier()
    known = {text for _, text in before.unread}
    carrier.conflicts += [f"line {at}: `{text}` was not understood." for at, text in after.unread if text not in known]
    _carry_all(made, before.record, after.record, carrier)
    problems = problems_of(made)
    if problems:
        told = tuple(f"The edits cannot be carried: {each.message}" for each in problems)
        return Synchronization(graph=graph, conflicts=(*carrier.conflicts, *told))
    kept = {id(node.value) for node in walk(made)}
    if not confirm_deletion:
        lost = [node for key, node in nodes.items() if key not in kept]
        refuse_large("the edited file", lost, from_count=confirm_from)
    return Synchronization(graph=made, changes=tuple(carrier.changes), conflicts=tuple(carrier.conflicts))


def _carry_all(graph: JsonObject, before: Record, after: Record, carrier: Carrier) -> None:
    carrier.carry(graph, before, after, "the product")
    renamed: dict[str, str] = {}
    if "outline" in before or "outline" in after:
        renamed |= carry_outline(graph, records(before, "outline"), records(after, "outline"), carrier)
    elif "stories" in before or "stories" in after:
        renamed |= _carry_stories(graph, records(before, "stories"), records(after, "stories"), carrier)
    _follow_names(graph, renamed)
    if "increments" in before or "increments" in after:
        _carry_increments(graph, records(before, "increments"), records(after, "increments"), carrier)


def _carry_stories(graph: JsonObject, before: list[Record], after: list[Record], carrier: Carrier) -> dict[str, str]:
    """Edits within stories. A flat list has no place for new ones, and leaving one out of it says nothing."""
    nodes = {as_line(node.name): node.value for node in all_stories(graph)}
    pairs = pair(before, after, lambda each: str(each.get("name", "")))
    renamed: dict[str, str] = {}
    for record, index in zip(after, pairs.before_of, strict=True):
        name = str(record.get("name", ""))
        if index is None:
            carrier.conflicts.append(f"`{name}` is new; add it to the story map, where it has a place.")
            continue
        old = str(before[index].get("name", ""))
        if old not in nodes:
            if record != before[index]:
                carrier.conflicts.append(f"`{name}` is no longer in the graph.")
            continue
        full = str(nodes[old]["name"])
        carrier.carry(nodes[old], before[index], record, old)
        if nodes[old]["name"] != full:
            renamed[full] = name
    for index in pairs.removed:
        carrier.conflicts.append(f"`{before[index].get('name', '')}` is not removed; remove it in the story map.")
    return renamed


def _follow_names(graph: JsonObject, renamed: dict[str, str]) -> None:
    left = {node.name for node in all_stories(graph)}
    for increment in graph.get("increments") or ():
        if "stories" in increment:
            names = [renamed.get(name, name) for name in increment["stories"]]
            increment["stories"] = [name for name in names if name in left]


def _carry_increments(graph: JsonObject, before: list[Record], after: list[Record], carrier: Carrier) -> None:
    pairs = pair(before, after, lambda each: str(each.get("name", "")))
    nodes: list[JsonObject] = list(graph.get("increments") or ())
    known = {each["name"]: each for each in nodes}
    made = carrier.carry_list(nodes, before, after, key="name", needed=("name",), where="increments")
    # Rendered names have single spaces only.
    stories = {as_line(node.name): node.name for node in all_stories(graph)}
    now = {as_line(each["name"]): each for each in made}
    for record, index in zip(after, pairs.before_of, strict=True):
        node = now.get(str(record.get("name", "")))
        if node is None:
            continue
        old = before[index] if index is not None else {}
        wanted = texts(record, "stories")
        unknown = [name for name in wanted if name not in stories and name not in texts(old, "stories")]
        carrier.conflicts += [f"{node['name']}: there is no story `{name}` in the map." for name in unknown]
        found = [name for name in wanted if name in stories]
        shown = [name for name in texts(old, "stories") if name in stories]
        carrier.carry_texts(node, "stories", shown, found, str(node["name"]))
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
