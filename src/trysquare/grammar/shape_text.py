"""Shape text: the JSON texts of a shape, as rules."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trysquare.grammar.expressions import (
    EMPTY,
    NEVER,
    Chars,
    Expression,
    Grammar,
    Rule,
    Text,
    in_sequence,
    one_of,
    optional,
    repeated,
    rules_named,
)
from trysquare.grammar.json_text import EVERY_CHARACTER, json_text, other_than, written_string
from trysquare.grammar.object_text import ObjectText
from trysquare.grammar.ranges import bounded_number_text, integer_text, multiples_text, number_text
from trysquare.grammar.shapes import (
    ANYTHING,
    NOTHING,
    Anything,
    Arrays,
    Constants,
    Integers,
    Named,
    Numbers,
    Objects,
    Shape,
    ShapeTree,
    Strings,
    Union,
    any_of,
    constants_of,
    options_of,
)

COMMA = Text(",")
RESERVED = frozenset({"root", "char", "escape"})
"""Names that the dialects give to rules of their own."""
JSON_VALUE = Union(
    options=(
        Constants(texts=("null", "true", "false")),
        Numbers(),
        Strings(),
        Arrays(rest=ANYTHING),
        Objects(others=ANYTHING),
    )
)
LONGEST_HINT = 24
PLAIN_NAMES: dict[Shape, str] = {Strings(): "string", Integers(): "integer", Numbers(): "number"}


class ShapeWriter:
    """Writes shapes as rules, each shape once."""

    def __init__(self, named: Mapping[str, Shape], *, prefix: str = "") -> None:
        self._named = named
        self._prefix = _plain(prefix)
        self._rules: dict[str, Expression] = {}
        self._leaves: set[str] = set()
        self._known: dict[Shape, str] = {}

    def grammar(self, root: Expression, *, name: str = "root") -> Grammar:
        """The rules that have been needed, with the root in front of them."""
        needed = self._needed(rules_named(root))
        rules = {name: root, **{known: rule for known, rule in self._rules.items() if known in needed}}
        return Grammar(rules=rules, root=name, leaves=frozenset(self._leaves & needed))

    def _needed(self, names: frozenset[str]) -> set[str]:
        """These rules with all that they refer to."""
        found: set[str] = set()
        waiting = set(names)
        while waiting:
            name = waiting.pop()
            found.add(name)
            waiting |= rules_named(self._rules[name]) - found
        return found

    def text_of(self, shape: Shape, hint: str) -> Expression:
        """The texts of a shape; `hint` is what its rule would be called."""
        match shape:
            case Constants() if len(shape.texts) == 1 or not _is_single(shape):
                return self._constants(shape, hint)
            case Objects() | Arrays():
                return self._structure(shape, hint)
            case Named(name=name):
                return self._reference(name)
            case Anything():
                return self._rule(shape, "value", JSON_VALUE)
            case Union(options=options) if _has_structure(shape):
                return self._mixed(options, hint)
            case _:
                return self._leaf(shape, hint)

    def _constants(self, shape: Constants, hint: str) -> Expression:
        """Constants, of which arrays and objects are no single values."""
        single = constants_of(text for text in shape.texts if not _is_structure(text))
        found = [] if single == NOTHING else [self._leaf(single, hint)]
        return one_of([*found, *(Text(text) for text in shape.texts if _is_structure(text))])

    def _mixed(self, options: tuple[Shape, ...], hint: str) -> Expression:
        """A union of which the single values are one rule, so that no two rules compete for one text."""
        apart = [part for option in options for part in _apart(option)]
        single = any_of(option for option in apart if _is_single(option))
        found = [] if single == NOTHING else [self.text_of(single, f"{hint}-scalar")]
        many = [option for option in apart if not _is_single(option)]
        found += [self.text_of(option, f"{hint}-{number}") for number, option in enumerate(many, start=1)]
        return one_of(found)

    def _reference(self, name: str) -> Expression:
        shape = Named(name=name)
        return self._rule(shape, name.rpartition("/")[2] or "document", self._named[name])

    def _rule(self, shape: Shape, hint: str, meaning: Shape) -> Expression:
        """A rule of its own, known before it is written, since its meaning may contain it."""
        if shape not in self._known:
            self._known[shape] = name = self.free_name(hint)
            self._rules[name] = EMPTY
            if isinstance(meaning, Objects | Arrays) and meaning not in self._known:
                self._rules[name] = self._inside(meaning, name)
            else:
                self._rules[name] = self.text_of(meaning, name)
        return Rule(self._known[shape])

    def _structure(self, shape: Objects | Arrays, hint: str) -> Expression:
        if shape not in self._known:
            name = self.free_name(hint)
            self._rules[name] = EMPTY
            self._rules[name] = self._inside(shape, name)
        return Rule(self._known[shape])

    def _inside(self, shape: Objects | Arrays, name: str) -> Expression:
        """What the rule of an object or array says."""
        self._known[shape] = name
        return self._object(shape, name) if isinstance(shape, Objects) else self._array(shape, name)

    def _leaf(self, shape: Shape, hint: str) -> Expression:
        if shape not in self._known:
            own = PLAIN_NAMES.get(shape, hint)
            expression = self._single(shape)
            if isinstance(expression, Text) or expression == NEVER:
                return expression
            self._known[shape] = self.add(own, expression, leaf=True)
        return Rule(self._known[shape])

    def add(self, hint: str, expression: Expression, *, leaf: bool = False) -> str:
        """A new rule; its name."""
        name = self.free_name(hint)
        self._rules[name] = expression
        if leaf:
            self._leaves.add(name)
        return name

    def free_name(self, hint: str) -> str:
        """A name that is not taken, of letters, digits and hyphens."""
        own = hint if self._prefix and hint.startswith(f"{self._prefix}-") else f"{self._prefix}-{hint}"
        plain = _plain(own)
        if not plain[:1].isalpha():
            plain = f"x-{plain}".strip("-")
        short = plain[: LONGEST_HINT + len(self._prefix)].strip("-")
        name, number = short, 1
        while name in self._rules or name in RESERVED or name == self._prefix:
            number += 1
            name = f"{short}-{number}"
        return name

    def _single(self, shape: Shape) -> Expression:
        return one_of(single_text(option) for option in options_of(shape))

    def _array(self, shape: Arrays, name: str) -> Expression:
        items = [self.text_of(inner, f"{name}-{number}") for number, inner in enumerate(shape.first, start=1)]
        rest = self.text_of(shape.rest, f"{name}-item") if shape.rest != NOTHING else NEVER
        return in_sequence(Text("["), _items(items, rest, shape), Text("]"))

    def _object(self, shape: Objects, name: str) -> Expression:
        pairs = [
            (entry, in_sequence(Text(json_text(entry.name) + ":"), self.text_of(entry.shape, entry.name)))
            for entry in shape.properties
            if entry.shape != NOTHING
        ]
        other = self._other(shape, name)
        return ObjectText(pairs=pairs, other=other, shape=shape, add=lambda tail: self.add(f"{name}-rest", tail)).text()

    def _other(self, shape: Objects, name: str) -> Expression:
        if shape.others == NOTHING:
            return NEVER
        taken = [entry.name for entry in shape.properties]
        said = shape.names if shape.names is not None else other_than(taken)
        if shape.names is None and not taken:
            key = self._leaf(Strings(), "string")
        else:
            key = Rule(self.add(f"{name}-key", written_string(said), leaf=True))
        return in_sequence(key, Text(":"), self.text_of(shape.others, f"{name}-value"))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _items(items: list[Expression], rest: Expression, shape: Arrays) -> Expression:
    """The items with commas between them, as few and as many as there may be."""
    most = None if shape.most is None else shape.most - len(items)
    if not items:
        return _listed(rest, shape.fewest, most)
    tail = repeated(in_sequence(COMMA, rest), max(0, shape.fewest - len(items)), most)
    for index in range(len(items) - 1, -1, -1):
        here = in_sequence(COMMA if index else EMPTY, items[index], tail)
        tail = here if shape.fewest > index else optional(here)
    return tail


def _listed(item: Expression, fewest: int, most: int | None) -> Expression:
    if most == 0 or item == NEVER:
        return EMPTY
    some = in_sequence(item, repeated(in_sequence(COMMA, item), max(0, fewest - 1), None if most is None else most - 1))
    return some if fewest else optional(some)


def _apart(shape: Shape) -> tuple[Shape, ...]:
    """A shape with its single constants apart from arrays and objects."""
    if not isinstance(shape, Constants):
        return (shape,)
    kinds = [constants_of(text for text in shape.texts if _is_structure(text) is kind) for kind in (False, True)]
    return tuple(kind for kind in kinds if kind != NOTHING)


def _is_structure(text: str) -> bool:
    return text.startswith(("[", "{"))


def _is_single(shape: Shape) -> bool:
    if isinstance(shape, Constants):
        return not any(map(_is_structure, shape.texts))
    return isinstance(shape, Integers | Numbers | Strings)


def _has_structure(shape: Union) -> bool:
    return not all(map(_is_single, shape.options))


def single_text(shape: Shape) -> Expression:
    """The texts of a shape without inner values."""
    match shape:
        case Constants(texts=texts):
            return one_of(map(Text, texts))
        case Integers(least=least, most=most, step=1):
            return integer_text(least, most)
        case Integers(step=step):
            return multiples_text(step) or NEVER
        case Numbers(least=None, most=None):
            return number_text()
        case Numbers():
            return bounded_number_text(shape.least, shape.most, above=shape.above, below=shape.below)
        case Strings(pattern=None):
            return written_string(repeated(Chars(EVERY_CHARACTER), shape.shortest, shape.longest))
        case Strings(pattern=pattern):
            return written_string(pattern if pattern is not None else EMPTY)
        case _:
            return NEVER


def grammar_of(tree: ShapeTree) -> Grammar:
    """The rules for the texts of a tree; they start at `root`."""
    writer = ShapeWriter(tree.named)
    return writer.grammar(writer.text_of(tree.root, "args"))
