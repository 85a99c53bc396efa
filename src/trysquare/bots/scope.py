"""Scope: the part of the work that a call is about. It filters what is said and what is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from trysquare.bots.graph.nodes import Graph, Node, walk
from trysquare.bots.rules import Rule
from trysquare.core.errors import InvalidArguments
from trysquare.core.types import JsonObject

KINDS = ("epic", "story", "increment", "files")
_NOT_IN = {
    "story": frozenset({"epic", "sub_epic", "increment"}),
    "epic": frozenset({"increment"}),
    "increment": frozenset[str](),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """Names of epics, stories or increments, or patterns of files. All of them empty: everything."""

    epic: tuple[str, ...] = ()
    story: tuple[str, ...] = ()
    increment: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.epic or self.story or self.increment or self.files)

    @property
    def names_nodes(self) -> bool:
        """Whether it names parts of the story graph."""
        return bool(self.epic or self.story or self.increment)

    def to_json(self) -> JsonObject:
        """The scope as a call gives it."""
        return {kind: list(names) for kind in KINDS if (names := getattr(self, kind))}

    def holds(self, rule: Rule) -> bool:
        """Whether a rule can find anything in this scope."""
        if not self or rule.scanner is None:
            return True
        kind = rule.scanner.target.kind
        if self.files and not (self.epic or self.story or self.increment):
            return kind == "file"
        named = [each for each in ("epic", "story", "increment") if getattr(self, each)]
        return any(kind not in _NOT_IN[each] for each in named)


@dataclass(frozen=True, kw_only=True, slots=True)
class Selected:
    """What of a story graph a scope means."""

    places: tuple[str, ...]
    """The names of epics, stories and increments from the top of the graph, joined as findings join them."""
    files: tuple[str, ...]
    """The files that belong to the stories."""
    unknown: tuple[str, ...]
    """What the scope names and the graph has not."""

    def holds(self, where: str) -> bool:
        """Whether a node stands in one of the places."""
        return any(where == place or where.startswith(f"{place}{_BELOW}") for place in self.places)


def select(scope: Scope, graph: Graph) -> Selected:
    """The nodes that a scope names, and the stories of its increments."""
    nodes = list(walk(graph))
    planned = {
        str(name)
        for node in nodes
        if node.kind == "increment" and node.name in scope.increment
        for name in node.value.get("stories", ())
    }
    meant = [node for node in nodes if _is_meant(scope, node) or (node.kind == "story" and node.name in planned)]
    stories = [node for node in nodes if node.kind == "story" and _stands_below(node, meant)]
    named = {(_SCOPE_KIND.get(node.kind, ""), node.name) for node in meant}
    return Selected(
        places=tuple(_BELOW.join(node.address) for node in meant),
        files=tuple(dict.fromkeys(file for story in stories for file in _files_of(story))),
        unknown=tuple(
            f"{kind} `{name}`"
            for kind in ("epic", "story", "increment")
            for name in getattr(scope, kind)
            if (kind, name) not in named
        ),
    )


_BELOW = " > "
_SCOPE_KIND = {"epic": "epic", "sub_epic": "epic", "story": "story", "increment": "increment"}


def _is_meant(scope: Scope, node: Node) -> bool:
    kind = _SCOPE_KIND.get(node.kind)
    return kind is not None and node.name in getattr(scope, kind)


def _stands_below(story: Node, meant: list[Node]) -> bool:
    return any(story.address[: len(node.address)] == node.address for node in meant if node.kind != "increment")


def _files_of(story: Node) -> list[str]:
    files = [story.value.get("test_file"), *(story.value.get("code_files") or ())]
    return [file for file in files if isinstance(file, str) and file]


def read_scope(raw: Any) -> Scope:
    """The scope of a call: `{"story": ["Book a table"]}`, or the word `all`."""
    if raw is None or raw in ("", "all"):
        return Scope()
    if not isinstance(raw, Mapping):
        raise _wrong("`scope` is an object")
    given = cast(Mapping[str, Any], raw)
    unknown = sorted(str(name) for name in given if name not in KINDS)
    if unknown:
        raise _wrong(f"`scope` has no `{unknown[0][:40]}`")
    return Scope(**{kind: _names(kind, given.get(kind)) for kind in KINDS})


def _names(kind: str, raw: Any) -> tuple[str, ...]:
    if raw is None:
        return ()
    names = cast(list[Any], raw) if isinstance(raw, list) else [raw]
    if not all(isinstance(name, str) for name in names):
        raise _wrong(f"`scope.{kind}` is a list of names")
    return tuple(names)


def _wrong(what: str) -> InvalidArguments:
    return InvalidArguments(
        f"{what}.",
        instruction='Write it as {"scope": {"story": ["Name of a story"]}}; the keys are ' + ", ".join(KINDS) + ".",
    )
