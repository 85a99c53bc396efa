"""Pattern examples: for each pattern of a tool's arguments a short text that fits it, to get out of a string soon."""

from __future__ import annotations

from collections.abc import Iterator

from trysquare.grammar.expressions import Chars, Choice, Expression, Repeat, Sequence, Text
from trysquare.grammar.json_text import json_text
from trysquare.grammar.shapes import Arrays, Objects, Shape, ShapeTree, Strings, Union


def pattern_examples(tree: ShapeTree) -> tuple[str, ...]:
    """The examples as they stand between the quotes in JSON, each once."""
    shapes = [shape for root in (tree.root, *tree.named.values()) for shape in _inside(root)]
    patterns = [shape.pattern for shape in shapes if isinstance(shape, Strings) and shape.pattern is not None]
    return tuple(dict.fromkeys(json_text(example(pattern))[1:-1] for pattern in patterns))


def _inside(shape: Shape) -> Iterator[Shape]:
    """A shape and all that it is made of, without what it names."""
    yield shape
    match shape:
        case Union(options=inner):
            pass
        case Arrays(first=first, rest=rest):
            inner = (*first, rest)
        case Objects(properties=properties, others=others):
            inner = (*(each.shape for each in properties), others)
        case _:
            return
    for each in inner:
        yield from _inside(each)


def example(said: Expression) -> str:
    """A short text that an expression allows."""
    match said:
        case Text(text):
            return text
        case Chars(ranges):
            return chr(_plainest(ranges))
        case Sequence(parts):
            return "".join(map(example, parts))
        case Choice(options):
            return min(map(example, options), key=len)
        case Repeat(part, fewest, _):
            return example(part) * fewest
        case _:
            raise ValueError("what a string says has no rules")


def _plainest(ranges: tuple[tuple[int, int], ...]) -> int:
    """A letter or a digit, where there is one."""
    plain = [code for code in (*range(97, 123), *range(65, 91), *range(48, 58)) if _lies_in(code, ranges)]
    return plain[0] if plain else ranges[0][0]


def _lies_in(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= code <= high for low, high in ranges)
