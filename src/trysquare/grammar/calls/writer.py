"""Writer of a call, value by value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, pairwise
from typing import TypeAlias

from trysquare.grammar.calls.call_set import AFTER_NAME, BEFORE_NAME, CallSet, written
from trysquare.grammar.dialects.bounds import Lengths, common_beginning, is_closed, key_text
from trysquare.grammar.schema.shapes import NOTHING, Arrays, Constants, Named, Objects, Property, Shape, Strings, Union

_TAIL = re.compile(r"[^A-Za-z0-9_]+")
"""What of the text after a piece may come with it, since tokens such as `","` and `"}},{"` have both."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Forced:
    """The only text that may come next."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One alternative."""

    look: str
    """The text that identifies it; no other option's look starts with it."""
    need: Callable[[], int]
    """Minimum bytes of the rest of the response, the look included."""
    after: tuple[Option, ...] = ()
    """How the text may continue after the look, and what that requires."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """Options of which one is chosen; its text is written afterwards."""

    options: tuple[Option, ...]
    names: bool = False
    """Whether the looks are tool names, which stay whole for their probabilities."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StringContent:
    """The content of a string without a pattern, and its closing quote."""

    shortest: int
    longest: int | None
    after: tuple[Option, ...]
    rest: int
    """Minimum bytes of the response after the closing quote."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FreeValue:
    """A value written as one piece."""

    shape: Shape
    after: tuple[Option, ...]
    rest: int


Wanted: TypeAlias = Forced | Choice | StringContent | FreeValue
Writing: TypeAlias = Generator[Wanted, int, None]
"""Yields what comes next, and receives the number of the chosen option."""


def choose(options: Sequence[Option], *, names: bool = False) -> Generator[Wanted, int, int]:
    """The number of the chosen option; a single one is chosen without a yield."""
    if len(options) == 1:
        return 0
    return (yield Choice(options=tuple(options), names=names))


def tails(after: tuple[Option, ...]) -> tuple[Option, ...]:
    """The prefixes of what may follow that may come with the piece before, each once."""
    needs: dict[str, list[Callable[[], int]]] = {}
    for option in after:
        marks = _TAIL.match(option.look)
        if marks is not None:
            needs.setdefault(marks[0], []).append(option.need)
    return tuple(Option(look=look, need=partial(_least_of, several)) for look, several in needs.items())


def _least_of(needs: Sequence[Callable[[], int]], size: int = 0) -> int:
    return min(need() for need in needs) + size


def behind(closing: str, after: tuple[Option, ...]) -> tuple[Option, ...]:
    """A closing brace or bracket with what may follow it."""
    need = partial(_least_of, size=len(closing))
    return tuple(Option(look=closing + each.look, need=partial(need, (each.need,))) for each in after)


class ValueWriter:
    """Writes values of the shapes of one tree. `after` is how the text may continue, `rest` its minimum length."""

    def __init__(self, named: Mapping[str, Shape]) -> None:
        self.named = named
        self._lengths = Lengths(named)
        self._leads: dict[Shape, str] = {}
        self._apart: dict[Shape, bool] = {}

    def least(self, shape: Shape) -> int:
        return self._lengths.least(shape)

    def value(self, shape: Shape, after: tuple[Option, ...], rest: int) -> Writing:
        match shape:
            case Named(name=name):
                yield from self.value(self.named[name], after, rest)
            case Constants(texts=(text,)):
                yield Forced(text=text)
            case Constants() if self._can_choose(shape):
                # There can be ten thousand, so each must be cheap.
                more = tails(after)
                options = [Option(look=text, need=partial(_text_and, text, rest), after=more) for text in shape.texts]
                yield Forced(text=shape.texts[(yield from choose(options))])
            case Union() if self._can_choose(shape):
                alternatives = _alternatives(shape)
                options = [self._alternative(each, after, rest) for each in alternatives]
                yield from self.value(alternatives[(yield from choose(options))], after, rest)
            case Strings(shortest=shortest, longest=longest, pattern=None):
                yield Forced(text='"')
                yield StringContent(shortest=shortest, longest=longest, after=tails(after), rest=rest)
            case Objects() if is_closed(shape):
                yield from self._object(shape, after, rest)
            case Arrays() if self._can_walk(shape):
                yield from self._array(shape, after, rest)
            case _:
                yield FreeValue(shape=shape, after=tails(after), rest=rest)

    def lead(self, shape: Shape) -> str:
        """The forced prefix of every value of a shape."""
        if shape not in self._leads:
            # A shape that leads to itself has no forced prefix, so that this terminates.
            self._leads[shape] = ""
            self._leads[shape] = _forced_beginning(self.value(shape, (), 0))
        return self._leads[shape]

    def _can_choose(self, shape: Constants | Union) -> bool:
        """Whether the alternatives differ in their prefixes."""
        if shape not in self._apart:
            looks = sorted(shape.texts if isinstance(shape, Constants) else map(self.lead, _alternatives(shape)))
            self._apart[shape] = all(looks) and not any(later.startswith(look) for look, later in pairwise(looks))
        return self._apart[shape]

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
        """The properties that may come next, up to the first required one, or the closing brace."""
        options: list[Option] = []
        for number, each in enumerate(left):
            need = partial(self._least_from, left[number:], len(comma) + rest)
            options.append(Option(look=comma + key_text(each), need=need))
            if each.required:
                return options
        return [*options, Option(look="}", need=lambda: 1 + rest, after=tails(after))]

    def _least_from(self, left: tuple[Property, ...], rest: int) -> int:
        """Minimum bytes of an object from the first of these properties on, with the brace."""
        first, *further = left
        value = len(key_text(first).encode()) + self.least(first.shape)
        return value + self._lengths.least_after(tuple(further)) + 1 + rest

    def _can_walk(self, shape: Arrays) -> bool:
        """Whether an item differs from the closing bracket in its prefix."""
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
            item = shape.item(count)
            count += 1
            following = _closed_by("]", self._next_items(shape, count, after, rest), after)
            yield from self.value(item, following, self._least_behind(shape, count) + rest)

    def _next_items(self, shape: Arrays, count: int, after: tuple[Option, ...], rest: int) -> list[Option]:
        options: list[Option] = []
        item = shape.item(count)
        if item != NOTHING and (shape.most is None or count < shape.most):
            comma = "," if count else ""
            need = partial(self._least_with, item, shape, count, len(comma) + rest)
            options.append(Option(look=comma + self.lead(item), need=need))
        if count >= shape.fewest:
            options.append(Option(look="]", need=lambda: 1 + rest, after=tails(after)))
        return options

    def _least_with(self, item: Shape, shape: Arrays, count: int, rest: int) -> int:
        """Minimum bytes of an array from this item on."""
        return self.least(item) + self._least_behind(shape, count + 1) + rest

    def _least_behind(self, shape: Arrays, count: int) -> int:
        """Minimum bytes of an array after its first items, with the bracket."""
        return 1 + sum(1 + self.least(shape.item(number)) for number in range(count, shape.fewest))


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
        apart = [Constants(texts=(text,)) for text in option.texts] if isinstance(option, Constants) else [option]
        alternatives += apart
    return alternatives


def _closed_by(closing: str, options: Sequence[Option], after: tuple[Option, ...]) -> tuple[Option, ...]:
    """How the text continues: with one of the options, or after the closing one."""
    return tuple(
        each for option in options for each in (behind(closing, after) if option.look == closing else (option,))
    )


class AnswerWriter:
    """Writes one response, and tracks the tool of the current arguments."""

    def __init__(self, calls: CallSet) -> None:
        self._calls = calls
        self._values = ValueWriter({})
        self._writers: dict[str, ValueWriter] = {}
        self._closing = "}]" if calls.parallel else "}"

    @property
    def named(self) -> Mapping[str, Shape]:
        return self._values.named

    def least(self, shape: Shape) -> int:
        return self._values.least(shape)

    def answer(self) -> Writing:
        yield Forced(text=self._calls.opening)
        for number in count(1):
            endings = self._calls.endings(number)
            yield from self._call(endings)
            chosen = yield from choose([self._ending(ending) for ending in endings])
            yield Forced(text=endings[chosen])
            if endings[chosen] != ",":
                return

    def _ending(self, ending: str) -> Option:
        if ending == ",":
            return Option(look=ending + BEFORE_NAME, need=self._least_next_call)
        return Option(look=ending, need=lambda: len(ending))

    def _call(self, endings: tuple[str, ...]) -> Writing:
        yield Forced(text=BEFORE_NAME)
        names = tuple(self._calls.tools)
        # The quote distinguishes a name from longer ones with the same prefix.
        options = [Option(look=written(name) + '"', need=partial(self._least_from_name, name)) for name in names]
        chosen = names[(yield from choose(options, names=True))]
        yield Forced(text=written(chosen) + AFTER_NAME)
        self._values = self._writer(chosen)
        after = behind("}", tuple(map(self._ending, endings)))
        yield from self._values.value(self._calls.tree(chosen).root, after, len(self._closing))
        yield Forced(text="}")

    def _least_from_name(self, name: str) -> int:
        arguments = self._writer(name).least(self._calls.tree(name).root)
        return len((written(name) + AFTER_NAME).encode()) + arguments + len(self._closing)

    def _least_next_call(self) -> int:
        # Any call is an upper bound, and the one with the shortest schema is likely short.
        name = min(self._calls.tools, key=lambda name: len(json.dumps(self._calls.tools[name])))
        return 1 + len(BEFORE_NAME) + self._least_from_name(name)

    def _writer(self, name: str) -> ValueWriter:
        if name not in self._writers:
            self._writers[name] = ValueWriter(self._calls.tree(name).named)
        return self._writers[name]
