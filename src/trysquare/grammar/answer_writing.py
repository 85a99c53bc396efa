"""Writing an answer: the calls one after another, each with its name and its tool's arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count

from trysquare.grammar.call_set import AFTER_NAME, BEFORE_NAME, CallSet, written
from trysquare.grammar.shapes import Shape
from trysquare.grammar.value_writing import ValueWriter
from trysquare.grammar.wanted import Forced, Option, Writing, behind, choose


class AnswerWriter:
    """Writes one answer, and knows of which tool the present arguments are."""

    def __init__(self, calls: CallSet) -> None:
        self._calls = calls
        self._values = ValueWriter({})
        self._writers: dict[str, ValueWriter] = {}
        self._closing = "}]" if calls.parallel else "}"

    @property
    def named(self) -> Mapping[str, Shape]:
        """The shapes that the present arguments' shapes refer to by name."""
        return self._values.named

    def least(self, shape: Shape) -> int:
        """How many bytes the shortest text of one of the present arguments' shapes has."""
        return self._values.least(shape)

    def answer(self) -> Writing:
        """Write all calls."""
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
        chosen = yield from choose([self._name(name) for name in names], names=True)
        yield Forced(text=written(names[chosen]) + AFTER_NAME)
        self._values = self._writer(names[chosen])
        after = behind("}", tuple(self._ending(ending) for ending in endings))
        yield from self._values.value(self._calls.tree(names[chosen]).root, after, len(self._closing))
        yield Forced(text="}")

    def _name(self, name: str) -> Option:
        # The quote makes a name differ from those that only begin with it.
        return Option(look=written(name) + '"', need=lambda: self._least_from_name(name))

    def _least_from_name(self, name: str) -> int:
        arguments = self._writer(name).least(self._calls.tree(name).root)
        return len((written(name) + AFTER_NAME).encode()) + arguments + len(self._closing)

    def _least_next_call(self) -> int:
        # Any call shows what is enough, and the one with the shortest schema is likely to be short.
        name = min(self._calls.tools, key=lambda name: len(json.dumps(self._calls.tools[name])))
        return 1 + len(BEFORE_NAME) + self._least_from_name(name)

    def _writer(self, name: str) -> ValueWriter:
        if name not in self._writers:
            self._writers[name] = ValueWriter(self._calls.tree(name).named)
        return self._writers[name]
