"""Merging: a graph that somebody wrote anew or in part goes into the one that is there, node by node."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trysquare.bots.graph.edits import checked, refuse_large
from trysquare.bots.graph.nodes import Graph, Node, walk
from trysquare.core.types import JsonObject

_NAMED = {
    "epics": "name",
    "sub_epics": "name",
    "stories": "name",
    "increments": "name",
    "scenarios": "name",
    "acceptance_criteria": "when",
}
"""Lists whose items are matched by a key; any other list is taken whole."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Merged:
    """What came of a merge."""

    graph: Graph
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def merge(graph: Graph, incoming: Graph, *, replace: bool = False, confirm: bool = False) -> Merged:
    """Bring the nodes of `incoming` in, matched by their names from the top.

    What `incoming` does not mention stays, unless `replace` is set: then it is the whole graph, and what it lacks goes.
    """
    made = checked(_whole(graph, incoming) if replace else _joined(graph, incoming))
    before, after = _by_address(graph), _by_address(made)
    lost = [node for key, node in before.items() if key not in after]
    if not confirm:
        refuse_large("the merge", lost)
    return Merged(
        graph=made,
        added=tuple(_told(after[key]) for key in after if key not in before),
        changed=tuple(_told(after[key]) for key in after if key in before and _own(before[key]) != _own(after[key])),
        removed=tuple(_told(node) for node in lost),
    )


def _joined(old: Mapping[str, Any], new: Mapping[str, Any]) -> JsonObject:
    made: JsonObject = copy.deepcopy(dict(old))
    for key, value in new.items():
        if key in _NAMED and _items_are_objects(made.get(key)) and _items_are_objects(value):
            made[key] = _joined_lists(made[key], value, _NAMED[key])
        else:
            made[key] = copy.deepcopy(value)
    return made


def _joined_lists(old: list[Any], new: list[Any], key: str) -> list[Any]:
    offered = {each.get(key): each for each in new}
    kept = [_joined(each, offered[each.get(key)]) if each.get(key) in offered else each for each in old]
    known = {each.get(key) for each in old}
    return [*kept, *(copy.deepcopy(each) for each in new if each.get(key) not in known)]


def _whole(old: Mapping[str, Any], new: Mapping[str, Any]) -> JsonObject:
    """`new` as it stands, with the details of nodes that it names and says nothing about."""
    made: JsonObject = copy.deepcopy(dict(new))
    for key, value in old.items():
        if key not in made and key not in _NAMED:
            made[key] = copy.deepcopy(value)
        elif key in _NAMED and _items_are_objects(value) and _items_are_objects(made.get(key)):
            known = {each.get(_NAMED[key]): each for each in value}
            made[key] = [_whole(known.get(each.get(_NAMED[key]), {}), each) for each in made[key]]
    return made


def _items_are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)  # pyright: ignore[reportUnknownVariableType]


def _by_address(graph: Graph) -> dict[tuple[str, ...], Node]:
    return {(node.kind, *node.address): node for node in walk(graph) if node.kind not in ("step", "graph")}


def _own(node: Node) -> JsonObject:
    return {key: value for key, value in node.value.items() if key not in _NAMED or not _items_are_objects(value)}


def _told(node: Node) -> str:
    return f"{node.kind.replace('_', '-')} {' > '.join(node.address)}"
