"""Grammar rules of shapes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import TypeAlias

from trysquare.grammar.schema import shapes
from trysquare.grammar.text import expressions as ex
from trysquare.grammar.text.ranges import bounded_number_text, integer_text, multiples_text, number_text

COMMA = ex.Text(",")
State: TypeAlias = tuple[int, int]
"""The next pair, and how many have been written, as far as that matters."""


@dataclass(kw_only=True)
class ObjectText:
    """Rules of one object, built from its last pair to its first."""

    pairs: Sequence[tuple[shapes.Property, ex.Expression]]
    other: ex.Expression
    """An unlisted pair; NEVER where there are none."""
    shape: shapes.Objects
    add: Callable[[ex.Expression], str]
    """Adds a rule for what several states share."""
    _known: dict[State, ex.Expression] = field(default_factory=dict[State, ex.Expression])

    def text(self) -> ex.Expression:
        return ex.in_sequence(ex.Text("{"), self._from((0, 0)), ex.Text("}"))

    def _from(self, state: State) -> ex.Expression:
        if state not in self._known:
            found = self._end(state) if state[0] == len(self.pairs) else self._pair(state)
            shared = self._is_shared(state) and found != ex.NEVER and not isinstance(found, ex.Text | ex.Rule)
            self._known[state] = ex.Rule(self.add(found)) if shared else found
        return self._known[state]

    def _is_shared(self, state: State) -> bool:
        """Whether the state is reached with and without the pair before it."""
        index, count = state
        if not index or not count or self.pairs[index - 1][0].required:
            return False
        counts = self.shape.fewest > 0 or self.shape.most is not None
        may_be_first = not any(entry.required for entry, _ in self.pairs[: index - 1])
        return counts or may_be_first

    def _pair(self, state: State) -> ex.Expression:
        index, count = state
        entry, pair = self.pairs[index]
        full = self.shape.most is not None and count >= self.shape.most
        written = ex.NEVER if full else ex.in_sequence(COMMA if count else ex.EMPTY, pair)
        highest = self.shape.most if self.shape.most is not None else max(1, self.shape.fewest)
        after = index + 1, min(count + 1, highest)
        if entry.required:
            return ex.in_sequence(written, self._from(after))
        if after[1] == count:
            return ex.in_sequence(ex.optional(written), self._from(after))
        with_it = ex.NEVER if full else ex.in_sequence(written, self._from(after))
        return ex.one_of((with_it, self._from((index + 1, count))))

    def _end(self, state: State) -> ex.Expression:
        """The unlisted pairs."""
        _, count = state
        fewest = max(0, self.shape.fewest - count)
        most = None if self.shape.most is None else self.shape.most - count
        if self.other == ex.NEVER or most == 0:
            return ex.EMPTY if fewest == 0 else ex.NEVER
        if count:
            return ex.repeated(ex.in_sequence(COMMA, self.other), fewest, most)
        return _listed(self.other, fewest, most)


RESERVED = frozenset({"root", "char", "escape"})
"""Rule names that the dialects use themselves."""
JSON_VALUE = shapes.Union(
    options=(
        shapes.Constants(texts=("null", "true", "false")),
        shapes.Numbers(),
        shapes.Strings(),
        shapes.Arrays(rest=shapes.ANYTHING),
        shapes.Objects(others=shapes.ANYTHING),
    )
)
LONGEST_HINT = 24
PLAIN_NAMES: dict[shapes.Shape, str] = {
    shapes.Strings(): "string",
    shapes.Integers(): "integer",
    shapes.Numbers(): "number",
}


class ShapeWriter:
    """Adds the rules of shapes, each shape once."""

    def __init__(self, named: Mapping[str, shapes.Shape], *, prefix: str = "") -> None:
        self._named = named
        self._prefix = _plain(prefix)
        self._rules: dict[str, ex.Expression] = {}
        self._leaves: set[str] = set()
        self._known: dict[shapes.Shape, str] = {}

    def grammar(self, root: ex.Expression, *, name: str = "root") -> ex.Grammar:
        """The reachable rules, the root first."""
        graph = {known: ex.rules_named(rule) for known, rule in self._rules.items()}
        needed = ex.reachable(graph, ex.rules_named(root))
        rules = {name: root, **{known: rule for known, rule in self._rules.items() if known in needed}}
        return ex.Grammar(rules=rules, root=name, leaves=frozenset(self._leaves & needed))

    def text_of(self, shape: shapes.Shape, hint: str) -> ex.Expression:
        """The texts of a shape; `hint` is the preferred name of its rule."""
        match shape:
            case shapes.Constants() if len(shape.texts) == 1 or not _is_single(shape):
                return self._constants(shape, hint)
            case shapes.Objects() | shapes.Arrays():
                return self._structure(shape, hint)
            case shapes.Named(name=name):
                return self._rule(shape, name.rpartition("/")[2] or "document", self._named[name])
            case shapes.Anything():
                return self._rule(shape, "value", JSON_VALUE)
            case shapes.Union(options=options) if not all(map(_is_single, options)):
                return self._mixed(options, hint)
            case _:
                return self._leaf(shape, hint)

    def _constants(self, shape: shapes.Constants, hint: str) -> ex.Expression:
        """Constants; arrays and objects among them are not scalars."""
        single = self._leaf(shapes.constants_of(text for text in shape.texts if not _is_structure(text)), hint)
        return ex.one_of([single, *(ex.Text(text) for text in shape.texts if _is_structure(text))])

    def _mixed(self, options: tuple[shapes.Shape, ...], hint: str) -> ex.Expression:
        """A union whose scalars are one rule, so that no two rules match the same text."""
        apart = [part for option in options for part in _apart(option)]
        single = self.text_of(shapes.any_of(filter(_is_single, apart)), f"{hint}-scalar")
        many = enumerate((option for option in apart if not _is_single(option)), start=1)
        return ex.one_of([single, *(self.text_of(option, f"{hint}-{number}") for number, option in many)])

    def _rule(self, shape: shapes.Shape, hint: str, meaning: shapes.Shape) -> ex.Expression:
        """A separate rule, registered before it is built, since it may refer to itself."""
        if shape not in self._known:
            self._known[shape] = name = self.free_name(hint)
            self._rules[name] = ex.EMPTY
            if isinstance(meaning, shapes.Objects | shapes.Arrays) and meaning not in self._known:
                self._rules[name] = self._inside(meaning, name)
            else:
                self._rules[name] = self.text_of(meaning, name)
        return ex.Rule(self._known[shape])

    def _structure(self, shape: shapes.Objects | shapes.Arrays, hint: str) -> ex.Expression:
        if shape not in self._known:
            name = self.free_name(hint)
            self._rules[name] = ex.EMPTY
            self._rules[name] = self._inside(shape, name)
        return ex.Rule(self._known[shape])

    def _inside(self, shape: shapes.Objects | shapes.Arrays, name: str) -> ex.Expression:
        self._known[shape] = name
        return self._object(shape, name) if isinstance(shape, shapes.Objects) else self._array(shape, name)

    def _leaf(self, shape: shapes.Shape, hint: str) -> ex.Expression:
        if shape not in self._known:
            expression = ex.one_of(map(single_text, shapes.options_of(shape)))
            if isinstance(expression, ex.Text) or expression == ex.NEVER:
                return expression
            self._known[shape] = self.add(PLAIN_NAMES.get(shape, hint), expression, leaf=True)
        return ex.Rule(self._known[shape])

    def add(self, hint: str, expression: ex.Expression, *, leaf: bool = False) -> str:
        """Add a rule; returns its name."""
        name = self.free_name(hint)
        self._rules[name] = expression
        if leaf:
            self._leaves.add(name)
        return name

    def free_name(self, hint: str) -> str:
        """An unused name of letters, digits and hyphens."""
        own = hint if self._prefix and hint.startswith(f"{self._prefix}-") else f"{self._prefix}-{hint}"
        plain = _plain(own)
        if not plain[:1].isalpha():
            plain = f"x-{plain}".strip("-")
        short = plain[: LONGEST_HINT + len(self._prefix)].strip("-")
        names = chain([short], (f"{short}-{number}" for number in count(2)))
        return next(name for name in names if not (name in self._rules or name in RESERVED or name == self._prefix))

    def _array(self, shape: shapes.Arrays, name: str) -> ex.Expression:
        items = [self.text_of(inner, f"{name}-{number}") for number, inner in enumerate(shape.first, start=1)]
        rest = self.text_of(shape.rest, f"{name}-item") if shape.rest != shapes.NOTHING else ex.NEVER
        return ex.in_sequence(ex.Text("["), _items(items, rest, shape), ex.Text("]"))

    def _object(self, shape: shapes.Objects, name: str) -> ex.Expression:
        pairs = [
            (entry, ex.in_sequence(ex.Text(ex.json_text(entry.name) + ":"), self.text_of(entry.shape, entry.name)))
            for entry in shape.properties
            if entry.shape != shapes.NOTHING
        ]
        other = self._other(shape, name)
        return ObjectText(pairs=pairs, other=other, shape=shape, add=lambda tail: self.add(f"{name}-rest", tail)).text()

    def _other(self, shape: shapes.Objects, name: str) -> ex.Expression:
        if shape.others == shapes.NOTHING:
            return ex.NEVER
        if shape.names is None and not shape.properties:
            key = self._leaf(shapes.Strings(), "string")
        else:
            other_name = shape.names or ex.other_than(frozenset(entry.name for entry in shape.properties))
            key = ex.Rule(self.add(f"{name}-key", ex.written_string(other_name), leaf=True))
        return ex.in_sequence(key, ex.Text(":"), self.text_of(shape.others, f"{name}-value"))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _items(items: list[ex.Expression], rest: ex.Expression, shape: shapes.Arrays) -> ex.Expression:
    """The items with commas between them, within the bounds of the array."""
    most = None if shape.most is None else shape.most - len(items)
    if not items:
        return _listed(rest, shape.fewest, most)
    tail = ex.repeated(ex.in_sequence(COMMA, rest), max(0, shape.fewest - len(items)), most)
    for index in range(len(items) - 1, -1, -1):
        here = ex.in_sequence(COMMA if index else ex.EMPTY, items[index], tail)
        tail = here if shape.fewest > index else ex.optional(here)
    return tail


def _listed(item: ex.Expression, fewest: int, most: int | None) -> ex.Expression:
    if most == 0 or item == ex.NEVER:
        return ex.EMPTY
    more = ex.repeated(ex.in_sequence(COMMA, item), max(0, fewest - 1), None if most is None else most - 1)
    some = ex.in_sequence(item, more)
    return some if fewest else ex.optional(some)


def _apart(shape: shapes.Shape) -> tuple[shapes.Shape, ...]:
    """A shape with its scalar constants separated from arrays and objects."""
    if not isinstance(shape, shapes.Constants):
        return (shape,)
    kinds = [shapes.constants_of(text for text in shape.texts if _is_structure(text) is kind) for kind in (False, True)]
    return tuple(kind for kind in kinds if kind != shapes.NOTHING)


def _is_structure(text: str) -> bool:
    return text.startswith(("[", "{"))


def _is_single(shape: shapes.Shape) -> bool:
    if isinstance(shape, shapes.Constants):
        return not any(map(_is_structure, shape.texts))
    return isinstance(shape, shapes.Integers | shapes.Numbers | shapes.Strings)


def single_text(shape: shapes.Shape) -> ex.Expression:
    """The texts of a scalar shape."""
    match shape:
        case shapes.Constants(texts=texts):
            return ex.one_of(map(ex.Text, texts))
        case shapes.Integers(least=least, most=most, step=1):
            return integer_text(least, most)
        case shapes.Integers(step=step):
            return multiples_text(step) or ex.NEVER
        case shapes.Numbers(least=None, most=None):
            return number_text()
        case shapes.Numbers():
            return bounded_number_text(shape.least, shape.most, above=shape.above, below=shape.below)
        case shapes.Strings(pattern=pattern):
            any_text = ex.repeated(ex.Chars(ex.EVERY_CHARACTER), shape.shortest, shape.longest)
            return ex.written_string(any_text if pattern is None else pattern)
        case _:
            return ex.NEVER


def grammar_of(tree: shapes.ShapeTree) -> ex.Grammar:
    """The rules for the texts of a tree; they start at `root`."""
    writer = ShapeWriter(tree.named)
    return writer.grammar(writer.text_of(tree.root, "args"))
