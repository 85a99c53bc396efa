"""Writing a value: which of its text a schema forces, and where there is something to choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise

from trysquare.grammar.least import Lengths, common_beginning, is_closed, key_text
from trysquare.grammar.shapes import NOTHING, Arrays, Constants, Named, Objects, Property, Shape, Strings, Union
from trysquare.grammar.wanted import Choice, Forced, Free, Inside, Option, Writing, behind, choose, tails


class ValueWriter:
    """Writes values of the shapes of one tree. `after` is how the text may go on, `rest` how long it is at least."""

    def __init__(self, named: Mapping[str, Shape]) -> None:
        self.named = named
        self._lengths = Lengths(named)
        self._leads: dict[Shape, str] = {}
        self._apart: dict[Shape, bool] = {}

    def least(self, shape: Shape) -> int:
        """How many bytes the shortest text of a shape has."""
        return self._lengths.least(shape)

    def value(self, shape: Shape, after: tuple[Option, ...], rest: int) -> Writing:
        """Write one value."""
        match shape:
            case Named(name=name):
                yield from self.value(self.named[name], after, rest)
            case Constants(texts=(text,)):
                yield Forced(text=text)
            case Constants() if self._can_choose(shape):
                yield from self._constant(shape, after, rest)
            case Union() if self._can_choose(shape):
                yield from self._alternatives(shape, after, rest)
            case Strings(shortest=shortest, longest=longest, pattern=None):
                yield Forced(text='"')
                yield Inside(shortest=shortest, longest=longest, after=tails(after), rest=rest)
            case Objects() if is_closed(shape):
                yield from self._object(shape, after, rest)
            case Arrays() if self._can_walk(shape):
                yield from self._array(shape, after, rest)
            case _:
                yield Free(shape=shape, after=tails(after), rest=rest)

    def lead(self, shape: Shape) -> str:
        """The text with which every value of a shape is written, as far as it is forced."""
        if shape not in self._leads:
            # A shape that leads to itself is not taken apart, so that this comes to an end.
            self._leads[shape] = ""
            self._leads[shape] = _forced_beginning(self.value(shape, (), 0))
        return self._leads[shape]

    def _can_choose(self, shape: Constants | Union) -> bool:
        """Whether the alternatives can be told apart by how they begin."""
        if shape not in self._apart:
            looks = sorted(shape.texts if isinstance(shape, Constants) else map(self.lead, _alternatives(shape)))
            self._apart[shape] = all(looks) and not any(later.startswith(look) for look, later in pairwise(looks))
        return self._apart[shape]

    def _constant(self, shape: Constants, after: tuple[Option, ...], rest: int) -> Writing:
        # There can be ten thousand, so each costs as little as possible.
        following = tails(after)
        options = [Option(look=text, need=partial(_text_and, text, rest), after=following) for text in shape.texts]
        yield Forced(text=shape.texts[(yield from choose(options))])

    def _alternatives(self, shape: Union, after: tuple[Option, ...], rest: int) -> Writing:
        alternatives = _alternatives(shape)
        options = [self._alternative(each, after, rest) for each in alternatives]
        chosen = alternatives[(yield from choose(options))]
        yield from self.value(chosen, after, rest)

    def _alternative(self, shape: Shape, after: tuple[Option, ...], rest: int) -> Option:
        following = tails(after) if isinstance(shape, Constants) else ()
        return Option(look=self.lead(shape), need=lambda: self.least(shape) + rest, after=following)

    def _object(self, shape: Objects, after: tuple[Option, ...], rest: int) -> Writing:
        yield Forced(text="{")
        comma, left = "", tuple(each for each in shape.properties if each.shape != NOTHING)
        while True:
            options = self._next_properties(left, comma, after, rest)
            number = yield from choose(options)
            yield Forced(text=options[number].look)
            if options[number].look == "}":
                return
            chosen, left, comma = left[number], left[number + 1 :], ","
            following = _closed_by("}", self._next_properties(left, comma, after, rest), after)
            yield from self.value(chosen.shape, following, self._lengths.least_after(left) + 1 + rest)

    def _next_properties(
        self, left: tuple[Property, ...], comma: str, after: tuple[Option, ...], rest: int
    ) -> list[Option]:
        """The properties of which one may come next, up to the first that must; the closing brace if none must."""
        options: list[Option] = []
        for number, each in enumerate(left):
            look = comma + key_text(each)
            need = partial(self._least_from, left[number:], len(comma) + rest)
            options.append(Option(look=look, need=need))
            if each.required:
                return options
        return [*options, Option(look="}", need=lambda: 1 + rest, after=tails(after))]

    def _least_from(self, left: tuple[Property, ...], rest: int) -> int:
        """How many bytes an object has at least from the first of these properties on, with the brace."""
        first, *further = left
        value = len(key_text(first).encode()) + self.least(first.shape)
        return value + self._lengths.least_after(tuple(further)) + 1 + rest

    def _can_walk(self, shape: Arrays) -> bool:
        """Whether an item can be told from the closing bracket by how it begins."""
        if shape not in self._apart:
            self._apart[shape] = all(self.lead(item) for item in (*shape.first, shape.rest) if item != NOTHING)
        return self._apart[shape]

    def _array(self, shape: Arrays, after: tuple[Option, ...], rest: int) -> Writing:
        yield Forced(text="[")
        count = 0
        while True:
            options = self._next_items(shape, count, after, rest)
            number = yield from choose(options)
            if options[number].look == "]":
                yield Forced(text="]")
                return
            if count:
                yield Forced(text=",")
            item, count = _item(shape, count), count + 1
            following = _closed_by("]", self._next_items(shape, count, after, rest), after)
            yield from self.value(item, following, self._least_behind(shape, count) + rest)

    def _next_items(self, shape: Arrays, count: int, after: tuple[Option, ...], rest: int) -> list[Option]:
        options: list[Option] = []
        item = _item(shape, count)
        if item != NOTHING and (shape.most is None or count < shape.most):
            look = ("," if count else "") + self.lead(item)
            need = partial(self._least_with, item, shape, count, rest)
            options.append(Option(look=look, need=need))
        if count >= shape.fewest:
            options.append(Option(look="]", need=lambda: 1 + rest, after=tails(after)))
        return options

    def _least_with(self, item: Shape, shape: Arrays, count: int, rest: int) -> int:
        """How many bytes an array has at least from its item with this number on."""
        return (1 if count else 0) + self.least(item) + self._least_behind(shape, count + 1) + rest

    def _least_behind(self, shape: Arrays, count: int) -> int:
        """How many bytes an array has at least behind its first items, with the bracket."""
        items = [_item(shape, number) for number in range(count, shape.fewest)]
        return 1 + sum(1 + self.least(item) for item in items)


def _forced_beginning(writing: Writing) -> str:
    text = ""
    for wanted in writing:
        if not isinstance(wanted, Forced):
            looks = [option.look for option in wanted.options] if isinstance(wanted, Choice) else [""]
            return text + common_beginning(looks)
        text += wanted.text
    return text


def _text_and(text: str, rest: int) -> int:
    return len(text.encode()) + rest


def _alternatives(shape: Union) -> list[Shape]:
    """The alternatives, each constant for itself."""
    alternatives: list[Shape] = []
    for option in shape.options:
        if isinstance(option, Constants):
            alternatives += [Constants(texts=(text,)) for text in option.texts]
        else:
            alternatives.append(option)
    return alternatives


def _item(shape: Arrays, number: int) -> Shape:
    return shape.first[number] if number < len(shape.first) else shape.rest


def _closed_by(closing: str, options: Sequence[Option], after: tuple[Option, ...]) -> tuple[Option, ...]:
    """How text goes on: with one of the options, and behind the closing one as it goes on there."""
    return tuple(
        each for option in options for each in (behind(closing, after) if option.look == closing else (option,))
    )
