"""Text matching: whether a text fits a grammar, without any engine.

Every way through the grammar that is still open is a stack of what has to come. Stacks share their lower parts, so
that many ways cost little and depth costs no recursion.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.grammar.expressions import Chars, Choice, Expression, Grammar, Repeat, Rule, Sequence, Text, children
from trysquare.grammar.gbnf_checking import check_grammar

Frame: TypeAlias = tuple[int, int, int]
"""A node, how far it has got (letters of a text, turns of a repetition), and the stack under it."""
BOTTOM = -1


class TextMatcher:
    """Matches texts against one grammar."""

    def __init__(self, grammar: Grammar) -> None:
        broken = [finding.text for finding in check_grammar(grammar) if finding.fatal]
        if broken:
            raise ToolError(
                f"The grammar cannot be matched: {' '.join(broken)}",
                code=ErrorCode.GRAMMAR_UNSUPPORTED,
                instruction="Correct these rules.",
            )
        self._nodes = _Nodes(grammar)

    def accepts(self, text: str) -> bool:
        """Whether the whole text fits."""
        return _Matching(self._nodes).read(text).complete

    def begins(self, text: str) -> bool:
        """Whether some text that fits begins with this."""
        matching = _Matching(self._nodes).read(text)
        return matching.complete or bool(matching.waiting)

    def stops_at(self, text: str) -> int | None:
        """The first character that cannot stand where it does; None where all can."""
        matching = _Matching(self._nodes)
        for index, char in enumerate(text):
            matching.take(char)
            if not matching.waiting and not matching.complete:
                return index
        return None


@dataclass
class _Nodes:
    """The parts of a grammar's rules, numbered."""

    grammar: Grammar
    parts: list[Expression] = field(default_factory=list[Expression])
    inner: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    starts: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        for name, rule in self.grammar.rules.items():
            self.starts[name] = self._add(rule)

    def _add(self, part: Expression) -> int:
        inside = tuple(self._add(child) for child in children(part))
        self.parts.append(part)
        self.inner.append(inside)
        return len(self.parts) - 1


class _Matching:
    """One text on its way."""

    def __init__(self, nodes: _Nodes) -> None:
        self._nodes = nodes
        self._frames: list[Frame] = []
        self._numbers: dict[Frame, int] = {}
        self.waiting: list[tuple[Text | Chars, int]] = []
        """What the next character has to fit, with the stack, whose top it is."""
        self.complete = False
        self._open([self._pushed(nodes.starts[nodes.grammar.root], 0, BOTTOM)])

    def read(self, text: str) -> _Matching:
        for char in text:
            if not self.waiting:
                self.complete = False
                break
            self.take(char)
        return self

    def take(self, char: str) -> None:
        """Go on with the ways that this character fits."""
        self._open([after for part, stack in self.waiting for after in self._after(part, stack, char)])

    def _after(self, part: Text | Chars, stack: int, char: str) -> Iterator[int]:
        node, done, under = self._frames[stack]
        if isinstance(part, Chars):
            if _holds(part, ord(char)):
                yield under
        elif part.text[done] == char:
            yield under if done + 1 == len(part.text) else self._pushed(node, done + 1, under)

    def _pushed(self, node: int, done: int, under: int) -> int:
        frame = (node, done, under)
        number = self._numbers.get(frame)
        if number is None:
            number = self._numbers[frame] = len(self._frames)
            self._frames.append(frame)
        return number

    def _open(self, stacks: list[int]) -> None:
        """Unfold what is on top of the stacks until each waits for a character, or nothing has to come."""
        seen = set(stacks)
        self.waiting = []
        self.complete = False
        while stacks:
            stack = stacks.pop()
            if stack == BOTTOM:
                self.complete = True
                continue
            part = self._nodes.parts[self._frames[stack][0]]
            if isinstance(part, Chars) or (isinstance(part, Text) and part.text):
                self.waiting.append((part, stack))
                continue
            fresh = [after for after in self._unfolded(part, *self._frames[stack]) if after not in seen]
            seen.update(fresh)
            stacks += fresh

    def _unfolded(self, part: Expression, node: int, done: int, under: int) -> Iterator[int]:
        inner = self._nodes.inner[node]
        match part:
            case Sequence():
                stack = under
                for child in reversed(inner):
                    stack = self._pushed(child, 0, stack)
                yield stack
            case Choice():
                yield from (self._pushed(child, 0, under) for child in inner)
            case Repeat():
                yield from self._turns(part, node, done, under)
            case Rule(name):
                yield self._pushed(self._nodes.starts[name], 0, under)
            case _:
                yield under

    def _turns(self, part: Repeat, node: int, done: int, under: int) -> Iterator[int]:
        if done >= part.fewest:
            yield under
        if part.most is None or done < part.most:
            # Without an upper bound, only the turns up to the lower one have to be counted.
            turns = min(done + 1, part.fewest) if part.most is None else done + 1
            yield self._pushed(self._nodes.inner[node][0], 0, self._pushed(node, turns, under))


def _holds(part: Chars, code: int) -> bool:
    index = bisect_right(part.ranges, (code, 0x110000)) - 1
    return index >= 0 and part.ranges[index][0] <= code <= part.ranges[index][1]
