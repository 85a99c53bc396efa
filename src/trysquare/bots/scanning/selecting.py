"""Selecting: what a rule's target means in the artifacts of a project."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

from trysquare.bots.graph.file import GraphFile, nearest_line
from trysquare.bots.graph.nodes import Node, walk
from trysquare.bots.rules import Target
from trysquare.bots.scanning.findings import Selected


def select(target: Target, file: GraphFile) -> list[Selected]:
    """Every node of the target's kind, or the values of its field there."""
    return [each for node in walk(file.graph) if node.kind == target.kind for each in _of_node(target, file, node)]


def _of_node(target: Target, file: GraphFile, node: Node) -> Iterator[Selected]:
    where = " > ".join(node.address)
    if target.field is None:
        yield Selected(value=node.value, file=file.path, line=nearest_line(file, node.pointer), where=where)
        return
    value: Any = None if node.kind == "step" else node.value.get(target.field)
    pointer = (*node.pointer, target.field)
    if value is None:
        return
    if not isinstance(value, list):
        yield Selected(value=value, file=file.path, line=nearest_line(file, pointer), where=where)
        return
    for index, item in enumerate(cast("list[Any]", value)):
        yield Selected(value=item, file=file.path, line=nearest_line(file, (*pointer, index)), where=where)


def matches(path: str, globs: tuple[str, ...]) -> bool:
    """Whether a path fits one of the globs, of which `**` crosses folders and one without `/` fits in any folder."""
    return not globs or any(_glob(each).fullmatch(path if "/" in each else path.rpartition("/")[2]) for each in globs)


@lru_cache(maxsize=256)
def _glob(pattern: str) -> re.Pattern[str]:
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    meaning = {"**/": r"(?:[^/]+/)*", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}
    return re.compile("".join(meaning.get(piece, re.escape(piece)) for piece in pieces))
