"""Value text: the text of a value as a grammar allows it, with the properties in the order of the schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, cast

from trysquare.grammar.schema.shapes import (
    Arrays,
    Constants,
    Named,
    Numbers,
    Objects,
    Shape,
    ShapeTree,
    Union,
    admits,
    same_value,
    whole,
)
from trysquare.grammar.text.expressions import json_text


def value_text(tree: ShapeTree, value: Any) -> str | None:
    """The text of a value that fits the tree; None where it does not fit."""
    return _text(tree.root, value, tree.named) if admits(tree.root, value, tree.named) else None


def _text(shape: Shape, value: Any, named: Mapping[str, Shape]) -> str:
    match shape:
        case Named(name=name):
            return _text(named[name], value, named)
        case Union(options=options):
            return _text(next(option for option in options if admits(option, value, named)), value, named)
        case Constants():
            return next(text for text, known in zip(shape.texts, shape.values, strict=True) if same_value(known, value))
        case Objects():
            return "{" + ",".join(_pairs(shape, value, named)) + "}"
        case Arrays():
            return "[" + ",".join(_items(shape, value, named)) + "]"
        case Numbers():
            return number_of(value)
        case _:
            return _free(value)


def _free(value: Any) -> str:
    """A value of which nothing is known."""
    if isinstance(value, dict):
        pairs = cast(dict[str, Any], value).items()
        return "{" + ",".join(f"{json_text(name)}:{_free(inner)}" for name, inner in pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_free, cast(list[Any], value))) + "]"
    return number_of(value) if isinstance(value, float) else json_text(value)


def number_of(value: float) -> str:
    """A number without an exponent, as bounds are compared by digits."""
    return format(Decimal(str(whole(value))), "f")


def _pairs(shape: Objects, value: dict[str, Any], named: Mapping[str, Shape]) -> Iterator[str]:
    listed = {entry.name: entry.shape for entry in shape.properties}
    for name, inner in listed.items():
        if name in value:
            yield f"{json_text(name)}:{_text(inner, value[name], named)}"
    for name in (name for name in value if name not in listed):
        yield f"{json_text(name)}:{_text(shape.others, value[name], named)}"


def _items(shape: Arrays, value: list[Any], named: Mapping[str, Shape]) -> Iterator[str]:
    for index, item in enumerate(value):
        inner = shape.first[index] if index < len(shape.first) else shape.rest
        yield _text(inner, item, named)
