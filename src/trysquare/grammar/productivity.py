"""Productivity: names that lead only to themselves, and those that no finite value fits."""

from __future__ import annotations

from collections.abc import Mapping

from trysquare.grammar.intersection import array_of, object_of
from trysquare.grammar.shapes import (
    NOTHING,
    Arrays,
    Named,
    Objects,
    Property,
    Shape,
    ShapeTree,
    Union,
    any_of,
    options_of,
)


def circles(named: Mapping[str, Shape]) -> str | None:
    """A name that leads back to itself through unions and references alone."""
    for start in named:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            inner = _next_names(named[waiting.pop()])
            if start in inner:
                return start
            waiting += inner - seen
            seen |= inner
    return None


def _next_names(shape: Shape) -> set[str]:
    found: set[str] = set()
    for option in options_of(shape):
        if isinstance(option, Named):
            found.add(option.name)
    return found


def pruned(tree: ShapeTree) -> ShapeTree:
    """The tree without what no finite value fits."""
    fitting: set[str] = set()
    while True:
        more = {name for name, shape in tree.named.items() if name not in fitting and _fits_some(shape, fitting)}
        if not more:
            break
        fitting |= more
    if len(fitting) == len(tree.named):
        return ShapeTree(root=_pruned(tree.root, None), named={n: _pruned(s, None) for n, s in tree.named.items()})
    kept = {name: _pruned(shape, fitting) for name, shape in tree.named.items() if name in fitting}
    return ShapeTree(root=_pruned(tree.root, fitting), named=kept)


def _fits_some(shape: Shape, fitting: set[str]) -> bool:
    """Whether some value fits, given the names that some value is known to fit."""
    match shape:
        case Named(name=name):
            return name in fitting
        case Union(options=options):
            return any(_fits_some(option, fitting) for option in options)
        case Arrays(first=first, rest=rest, fewest=fewest):
            enough = fewest <= len(first) or _fits_some(rest, fitting)
            return enough and all(_fits_some(inner, fitting) for inner in first[:fewest])
        case Objects(properties=properties):
            return all(_fits_some(entry.shape, fitting) for entry in properties if entry.required)
        case _:
            return True


def _pruned(shape: Shape, fitting: set[str] | None) -> Shape:
    match shape:
        case Named(name=name):
            return shape if fitting is None or name in fitting else NOTHING
        case Union(options=options):
            return any_of(inner for option in options if (inner := _pruned(option, fitting)) != NOTHING)
        case Arrays():
            return _pruned_array(shape, fitting)
        case Objects():
            entries = [
                Property(name=entry.name, shape=_pruned(entry.shape, fitting), required=entry.required)
                for entry in shape.properties
            ]
            return object_of(entries, _pruned(shape.others, fitting), shape.names, shape.fewest, shape.most)
        case _:
            return shape


def _pruned_array(shape: Arrays, fitting: set[str] | None) -> Shape:
    first = [_pruned(inner, fitting) for inner in shape.first]
    dead = next((index for index, inner in enumerate(first) if inner == NOTHING), None)
    rest = NOTHING if dead is not None else _pruned(shape.rest, fitting)
    return array_of(first[:dead], rest, shape.fewest, shape.most)
