"""Edits of a story graph: create, rename, move and delete. Each takes a graph and returns a new one that holds up."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

from trysquare.bots.graph.nodes import Address, Graph, Node, children, increments, walk
from trysquare.bots.graph.schema import problems_of
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.core.types import JsonObject

NewKind: TypeAlias = Literal["epic", "sub_epic", "story", "criterion", "scenario", "increment"]
LARGE = 5
"""From so many stories, or criteria and scenarios within them, a deletion has to be confirmed."""

_LISTS: Mapping[str, str] = {
    "epic": "epics",
    "sub_epic": "sub_epics",
    "story": "stories",
    "criterion": "acceptance_criteria",
    "scenario": "scenarios",
    "increment": "increments",
}
_PARENTS: Mapping[str, tuple[str, ...]] = {
    "epic": ("graph",),
    "increment": ("graph",),
    "sub_epic": ("epic", "sub_epic"),
    "story": ("epic", "sub_epic"),
    "criterion": ("story",),
    "scenario": ("story",),
}


class LargeDeletion(ToolError):
    """A deletion that takes much with it and was not confirmed."""

    default_code = ErrorCode.STATE_CONFLICT


def create(
    graph: Graph, parent: Address, kind: NewKind, value: Mapping[str, Any], *, position: int | None = None
) -> Graph:
    """Add a node below a parent, at a place among its siblings or last."""
    made = copy.deepcopy(dict(graph))
    above = _parent_for(made, parent, kind)
    _insert(above.value, _LISTS[kind], copy.deepcopy(dict(value)), position)
    return checked(made)


def rename(graph: Graph, address: Address, name: str, *, increment: bool = False) -> Graph:
    """Give a node another name; increments follow the new name of a story."""
    made = copy.deepcopy(dict(graph))
    node = find(made, address, increment=increment)
    node.value["when" if node.kind == "criterion" else "name"] = name
    if node.kind == "story":
        _refer(made, node.name, name)
    return checked(made)


def move(graph: Graph, address: Address, parent: Address, *, position: int | None = None) -> Graph:
    """Put an epic, a sub-epic or a story below another parent, with everything below it.

    An epic that moves below another one becomes its sub-epic, a sub-epic that moves to the top becomes an epic.
    """
    if parent[: len(address)] == address:
        raise InvalidArguments(f"`{' > '.join(address)}` cannot be moved below itself.")
    made = copy.deepcopy(dict(graph))
    node = find(made, address)
    kind = _kind_below(node, bool(parent))
    above = _parent_for(made, parent, kind)
    _take(made, node)
    _insert(above.value, _LISTS[kind], node.value, position)
    return checked(made)


def delete(graph: Graph, address: Address, *, increment: bool = False, confirm: bool = False) -> Graph:
    """Remove a node and everything below it; a story leaves its increments too."""
    made = copy.deepcopy(dict(graph))
    node = find(made, address, increment=increment)
    below = [each for each in walk(graph) if each.address[: len(address)] == address] if not increment else []
    if not confirm:
        refuse_large(node.name, [each for each in below if each.kind not in ("step", "graph")])
    _take(made, node)
    _forget(made, {each.name for each in below if each.kind == "story"})
    return checked(made)


def refuse_large(what: str, lost: list[Node], *, from_count: int = LARGE) -> None:
    """Raise where a deletion takes much with it, and say what."""
    if len(lost) < from_count:
        return
    counts = {kind: sum(1 for each in lost if each.kind == kind) for kind in dict.fromkeys(each.kind for each in lost)}
    told = ", ".join(f"{kind.replace('_', '-')}: {count}" for kind, count in counts.items())
    raise LargeDeletion(
        f"This removes {len(lost)} nodes with `{what}` ({told}).",
        instruction="Show a person what goes, and repeat the call with the deletion confirmed.",
        fields={"removes": [" > ".join(each.address) for each in lost[:20]], "count": len(lost)},
    )


def find(graph: Graph, address: Address, *, increment: bool = False) -> Node:
    """The node of an address; the error names what is near."""
    candidates = increments(graph) if increment else list(walk(graph))
    for node in candidates:
        if node.address == address and node.kind != "step":
            return node
    known = [each.name for each in candidates if each.name]
    near = get_close_matches(address[-1] if address else "", known, n=3, cutoff=0.5)
    raise NotFound(
        f"The graph has no node `{' > '.join(address)}`.",
        code=ErrorCode.RESOURCE_NOT_FOUND,
        instruction=f"Did you mean {', '.join(f'`{name}`' for name in near)}?" if near else None,
    )


def checked(graph: Graph) -> Graph:
    """The graph itself, or an error that says what an edit would break."""
    problems = problems_of(graph)
    if problems:
        told = " ".join(str(each) for each in problems[:5])
        raise InvalidArguments(f"The graph would not hold up: {told}", fields={"problems": [str(p) for p in problems]})
    return graph


def _kind_below(node: Node, inside: bool) -> NewKind:
    if node.kind in ("epic", "sub_epic"):
        return "sub_epic" if inside else "epic"
    if node.kind in ("story", "criterion", "scenario"):
        return node.kind
    raise InvalidArguments(f"`{node.name}` cannot be moved; epics, sub-epics, stories, criteria and scenarios can.")


def _parent_for(graph: Graph, address: Address, kind: NewKind) -> Node:
    above = find(graph, address)
    if above.kind not in _PARENTS[kind]:
        raise InvalidArguments(f"A {kind} stands below {' or '.join(_PARENTS[kind])}, not below {above.kind}.")
    return above


def _insert(above: JsonObject, key: str, value: Any, position: int | None) -> None:
    siblings: list[Any] = above.setdefault(key, [])
    siblings.insert(len(siblings) if position is None else max(0, position), value)


def _take(graph: JsonObject, node: Node) -> None:
    holder: Any = graph
    for piece in node.pointer[:-1]:
        holder = holder[piece]
    del holder[node.pointer[-1]]


def _refer(graph: JsonObject, old: str, new: str) -> None:
    for increment in graph.get("increments", ()):
        if "stories" in increment:
            increment["stories"] = [new if name == old else name for name in increment["stories"]]


def _forget(graph: JsonObject, names: set[str]) -> None:
    for increment in graph.get("increments", ()):
        if "stories" in increment:
            increment["stories"] = [name for name in increment["stories"] if name not in names]


def sibling_names(graph: Graph, address: Address) -> list[str]:
    """The names that a new node below an address may not have."""
    return [each.name for each in children(find(graph, address))]
