"""Bounding: a grammar whose texts are no longer than a number of bytes, and else as free as that allows.

A token is at least one byte, so a text of at most as many bytes as there are tokens left is never cut. Room is given
first to what must be there, then to what may be there, in its order, and the rest is shared evenly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.grammar.expressions import (
    EMPTY,
    NEVER,
    Chars,
    Choice,
    Expression,
    Grammar,
    Repeat,
    Rule,
    Text,
    chars,
    in_sequence,
    one_of,
    repeated,
    rules_named,
    without,
)
from trysquare.grammar.expressions import Sequence as InSequence

BYTES = ((1, (0, 0x7F)), (2, (0x80, 0x7FF)), (4, (0x800, 0x10FFFF)))
"""How many bytes a character takes at most, by its code point."""
MOST_ITEMS = 8
ROOM_OF_AN_ITEM = 64
"""Of items that may be long, there are no more than eight, each with room for more than its least if possible."""


def bounded(grammar: Grammar, room: int) -> Grammar:
    """The grammar with every text short enough. A `ToolError` where none is."""
    bounding = _Bounding(grammar)
    needed = bounding.fewest(grammar.rules[grammar.root])
    if needed > room:
        raise ToolError(
            f"Not even the shortest answer fits: it has {needed} bytes, and there is room for {room} tokens.",
            code=ErrorCode.GRAMMAR_REFUSED,
            instruction="Allow more tokens for the answer.",
        )
    return bounding.bounded(room)


class _Bounding:
    """Makes copies of rules for the room that they get."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._fewest: dict[str, float] = dict.fromkeys(grammar.rules, inf)
        self._most: dict[str, float] = {}
        self._rules: dict[str, Expression] = {}
        self._leaves: set[str] = set()
        self._measures: dict[int, tuple[float, float]] = {}
        self._recursive = _recursive_rules(grammar)
        self._find_fewest()

    def _find_fewest(self) -> None:
        changed = True
        while changed:
            changed = False
            for name, rule in self._grammar.rules.items():
                found = self.fewest(rule)
                changed = changed or found < self._fewest[name]
                self._fewest[name] = found

    def bounded(self, room: int) -> Grammar:
        root = self._limited(self._grammar.rules[self._grammar.root], room)
        rules = {self._grammar.root: root, **self._rules}
        return Grammar(rules=rules, root=self._grammar.root, leaves=frozenset(self._leaves))

    def fewest(self, expression: Expression) -> float:
        """How many bytes the shortest text has."""
        match expression:
            case Text(text):
                return len(text.encode())
            case Chars(ranges):
                return next(size for size, (_, last) in BYTES if ranges[0][0] <= last)
            case InSequence(parts):
                return sum(map(self.fewest, parts))
            case Choice(options):
                return min(map(self.fewest, options), default=inf)
            case Repeat(part, fewest):
                return fewest and fewest * self.fewest(part)
            case Rule(name):
                return self._fewest[name]

    def most(self, expression: Expression) -> float:
        """How many bytes the longest text has."""
        match expression:
            case Text(text):
                return len(text.encode())
            case Chars(ranges):
                return next(size for size, (_, last) in BYTES if ranges[-1][1] <= last)
            case InSequence(parts):
                return sum(map(self.most, parts))
            case Choice(options):
                return max(map(self.most, options), default=0)
            case Repeat(part, _, most):
                return inf if most is None else most * self.most(part)
            case Rule(name):
                return self._most_of(name)

    def _most_of(self, name: str) -> float:
        if name not in self._most:
            # A rule that is asked for while it is measured contains itself, and so has no longest text.
            self._most[name] = inf
            self._most[name] = self.most(self._grammar.rules[name])
        return self._most[name]

    def _measured(self, expression: Expression) -> tuple[float, float]:
        """The fewest and the most bytes, measured once; parts of the grammar live as long as it does."""
        known = self._measures.get(id(expression))
        if known is None:
            known = self._measures[id(expression)] = (self.fewest(expression), self.most(expression))
        return known

    def _limited(self, expression: Expression, room: float) -> Expression:
        fewest, most = self._measured(expression)
        if fewest > room:
            return NEVER
        if most <= room:
            self._keep(expression)
            return expression
        match expression:
            case Chars(ranges):
                return chars(without(ranges, (span for size, span in BYTES if size > room)))
            case InSequence(parts):
                return self._limited_sequence(parts, room)
            case Choice(options):
                return one_of(found for option in options if (found := self._limited(option, room)) != NEVER)
            case Repeat(part, fewest, most):
                return self._limited_repeat(part, fewest, most, room)
            case Rule(name):
                return self._limited_rule(name, room)
            case Text():
                return NEVER

    def _keep(self, expression: Expression) -> None:
        """Take over the rules that an expression needs as they are."""
        match expression:
            case Rule(name) if name not in self._rules:
                self._rules[name] = self._grammar.rules[name]
                self._leaves |= self._grammar.leaves & {name}
                self._keep(self._grammar.rules[name])
            case InSequence(inner) | Choice(inner):
                for part in inner:
                    self._keep(part)
            case Repeat(part):
                self._keep(part)
            case _:
                return

    def _limited_rule(self, name: str, room: float) -> Expression:
        # A rule that contains itself is copied for ever smaller rooms; rounding them makes the copies few.
        limit = max(int(self._fewest[name]), _rounded(int(room))) if name in self._recursive else int(room)
        copy = f"{name}-max-{limit}"
        if copy not in self._rules:
            self._rules[copy] = EMPTY
            self._leaves |= {copy} if name in self._grammar.leaves else set()
            self._rules[copy] = self._limited(self._grammar.rules[name], limit)
        return Rule(copy)

    def _limited_sequence(self, parts: Sequence[Expression], room: float) -> Expression:
        shares = [self._measured(part)[0] for part in parts]
        left = room - sum(shares)
        for index, part in enumerate(parts):
            wish = self._measured(part.part)[0] if isinstance(part, Repeat) and not part.fewest else 0
            if wish <= left:
                shares[index] += wish
                left -= wish
        shares = _spread(shares, [self._measured(part)[1] for part in parts], left)
        return in_sequence(*(self._limited(part, share) for part, share in zip(parts, shares, strict=True)))

    def _limited_repeat(self, part: Expression, fewest: int, most: int | None, room: float) -> Expression:
        tiers = _by_size(part)
        if tiers:
            return one_of(_tiers(tiers, fewest, most, room))
        each = self._measured(part)[1]
        if each <= room / max(fewest, 1):
            return repeated(part, fewest, _least(most, room // each))
        count = self._count(part, fewest, most, room)
        return repeated(self._limited(part, room // max(count, 1)), fewest, count)

    def _count(self, part: Expression, fewest: int, most: int | None, room: float) -> int:
        """How many items there may be where one alone could take all the room."""
        needed = max(1, self._measured(part)[0])
        wished = min(MOST_ITEMS, room // max(2 * needed, ROOM_OF_AN_ITEM))
        return max(fewest, _least(most, max(min(wished, room // needed), 1 if needed <= room else 0)))


def _rounded(room: int) -> int:
    """The room with three significant bits."""
    small = max(0, room.bit_length() - 3)
    return room >> small << small


def _recursive_rules(grammar: Grammar) -> frozenset[str]:
    reached = {name: rules_named(rule) for name, rule in grammar.rules.items()}
    found: set[str] = set()
    for start in reached:
        seen: set[str] = set()
        waiting = set(reached[start])
        while waiting:
            name = waiting.pop()
            seen.add(name)
            waiting |= reached[name] - seen
        found |= {start} if start in seen else set()
    return frozenset(found)


def _spread(shares: list[float], most: list[float], left: float) -> list[float]:
    """Shares with what is left added evenly, but to none more than it can use."""
    open_ends: list[int] = [index for index in range(len(shares)) if shares[index] < most[index]]
    while left >= 1 and open_ends:
        each = max(1, left // len(open_ends))
        for index in open_ends:
            given = min(each, most[index] - shares[index], left)
            shares[index] += given
            left -= given
        open_ends = [index for index in open_ends if shares[index] < most[index]]
    return shares


def _by_size(part: Expression) -> dict[int, list[Expression]]:
    """Single characters, escapes among them, by the bytes that they take; nothing where the part is more than that."""
    sizes: dict[int, list[Expression]] = {}
    for option in part.options if isinstance(part, Choice) else (part,):
        for size, piece in _sized(option):
            sizes.setdefault(size, []).append(piece)
    return {} if 0 in sizes else dict(sorted(sizes.items()))


def _sized(option: Expression) -> Iterable[tuple[int, Expression]]:
    if isinstance(option, Chars):
        for size, span in BYTES:
            piece = chars(without(option.ranges, (other for _, other in BYTES if other != span)))
            if piece != NEVER:
                yield size, piece
    elif isinstance(option, Text) and option != EMPTY:
        yield len(option.text.encode()), option
    else:
        yield _fixed_size(option), option


def _fixed_size(option: Expression) -> int:
    """The bytes of an escape, which are always as many; 0 where the option is no such thing."""
    match option:
        case Text(text):
            return len(text)
        case Chars(ranges):
            return 1 if ranges[-1][1] < 128 else 0
        case InSequence(parts):
            sizes = list(map(_fixed_size, parts))
            return 0 if 0 in sizes else sum(sizes)
        case Choice(options):
            sizes = set(map(_fixed_size, options))
            return sizes.pop() if len(sizes) == 1 else 0
        case _:
            return 0


def _tiers(sizes: dict[int, list[Expression]], fewest: int, most: int | None, room: float) -> Iterable[Expression]:
    """Long repetitions of what is small, shorter ones of everything."""
    pieces: list[Expression] = []
    limits = [_least(most, room // size) for size in sizes]
    for (_, found), limit, next_limit in zip(sizes.items(), limits, [*limits[1:], -1], strict=True):
        pieces = [*pieces, *found]
        if limit >= fewest and limit != next_limit:
            yield repeated(one_of(pieces), fewest, limit)


def _least(most: int | None, other: float) -> int:
    return int(other) if most is None else int(min(most, other))
