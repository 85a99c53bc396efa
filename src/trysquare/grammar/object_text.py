"""Object text: the pairs of an object in their order, with commas only between those that are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from trysquare.grammar.expressions import (
    EMPTY,
    NEVER,
    Expression,
    Rule,
    Text,
    in_sequence,
    one_of,
    optional,
    repeated,
)
from trysquare.grammar.shapes import Objects, Property

COMMA = Text(",")
State: TypeAlias = tuple[int, int]
"""The pair that comes next, and how many have been written, as far as that matters."""


@dataclass(kw_only=True)
class ObjectText:
    """Writes one object from its last pair to its first."""

    pairs: Sequence[tuple[Property, Expression]]
    other: Expression
    """A pair that is not listed; never, where there are none."""
    shape: Objects
    add: Callable[[Expression], str]
    """Makes a rule of what comes from several places."""
    _known: dict[State, Expression] = field(default_factory=dict[State, Expression])

    def text(self) -> Expression:
        """The whole object."""
        return in_sequence(Text("{"), self._from((0, 0)), Text("}"))

    @property
    def _counts(self) -> bool:
        return self.shape.fewest > 0 or self.shape.most is not None

    def _after(self, state: State) -> State:
        """The state once the next pair has been written."""
        index, count = state
        highest = self.shape.most if self.shape.most is not None else max(1, self.shape.fewest)
        return index + 1, min(count + 1, highest)

    def _from(self, state: State) -> Expression:
        if state not in self._known:
            index, _ = state
            found = self._end(state) if index == len(self.pairs) else self._pair(state)
            shared = index > 0 and self._is_shared(state) and found not in (EMPTY, NEVER)
            self._known[state] = Rule(self.add(found)) if shared and not isinstance(found, Text | Rule) else found
        return self._known[state]

    def _is_shared(self, state: State) -> bool:
        """Whether the state is reached by writing the pair before it as well as by leaving it out."""
        index, count = state
        return not self.pairs[index - 1][0].required and (count > 0 and (self._counts or self._may_be_first(index)))

    def _may_be_first(self, index: int) -> bool:
        """Whether the pair before the index can be the first that is written."""
        return not any(entry.required for entry, _ in self.pairs[: index - 1])

    def _pair(self, state: State) -> Expression:
        index, count = state
        entry, pair = self.pairs[index]
        full = self.shape.most is not None and count >= self.shape.most
        written = NEVER if full else in_sequence(COMMA if count else EMPTY, pair)
        after = self._after(state)
        if entry.required:
            return in_sequence(written, self._from(after))
        if after[1] == count:
            return in_sequence(optional(written), self._from(after))
        with_it = in_sequence(written, self._from(after)) if written != NEVER else NEVER
        return one_of(way for way in (with_it, self._from((index + 1, count))) if way != NEVER)

    def _end(self, state: State) -> Expression:
        """The pairs that are not listed."""
        _, count = state
        fewest = max(0, self.shape.fewest - count)
        most = None if self.shape.most is None else self.shape.most - count
        if self.other == NEVER or most == 0:
            return EMPTY if fewest == 0 else NEVER
        following = in_sequence(COMMA, self.other)
        if count:
            return repeated(following, fewest, most)
        some = in_sequence(self.other, repeated(following, max(0, fewest - 1), None if most is None else most - 1))
        return some if fewest else optional(some)
