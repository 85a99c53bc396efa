"""Grammars limited to a number of bytes, and the shortest texts of shapes.

A token has at least one byte, so a text of at most as many bytes as there are tokens left is never cut. Bytes go
first to what is required, then to what is optional, in order; the rest is shared evenly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, inf

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.grammar.schema import shapes
from trysquare.grammar.text import expressions as ex

BYTES = ((1, (0, 0x7F)), (2, (0x80, 0x7FF)), (4, (0x800, 0x10FFFF)))
"""Maximum bytes of a character by code point."""
MOST_ITEMS = 8
BYTES_PER_ITEM = 64
"""Long items are limited to eight, each with more bytes than its minimum if possible."""
SIGNIFICANT_BITS = 3
"""To which the limits of recursive rules are rounded down."""


def bounded(grammar: ex.Grammar, space: int) -> ex.Grammar:
    """The grammar limited to texts of `space` bytes. A `ToolError` where none is short enough."""
    bounding = _Bounding(grammar)
    needed = bounding.fewest(grammar.rules[grammar.root])
    if needed > space:
        raise ToolError(
            f"The shortest response has {needed} bytes and does not fit into {space} tokens.",
            code=ErrorCode.GRAMMAR_REFUSED,
            instruction="Allow more tokens for the response.",
        )
    return bounding.bounded(space)


class _Bounding:
    """Copies rules for the bytes that they get."""

    def __init__(self, grammar: ex.Grammar) -> None:
        self._grammar = grammar
        self._fewest: dict[str, float] = dict.fromkeys(grammar.rules, inf)
        self._most: dict[str, float] = {}
        self._rules: dict[str, ex.Expression] = {}
        self._leaves: set[str] = set()
        self._measures: dict[int, tuple[float, float]] = {}
        graph = {name: ex.rules_named(rule) for name, rule in grammar.rules.items()}
        self._recursive = frozenset(name for name in graph if name in ex.reachable(graph, graph[name]))
        self._find_fewest()

    def _find_fewest(self) -> None:
        before: dict[str, float] = {}
        while before != self._fewest:
            before = dict(self._fewest)
            for name, rule in self._grammar.rules.items():
                self._fewest[name] = self.fewest(rule)

    def bounded(self, space: int) -> ex.Grammar:
        root = self._limited(self._grammar.rules[self._grammar.root], space)
        rules = {self._grammar.root: root, **self._rules}
        return ex.Grammar(rules=rules, root=self._grammar.root, leaves=frozenset(self._leaves))

    def fewest(self, expression: ex.Expression) -> float:
        """Bytes of the shortest text."""
        match expression:
            case ex.Text(text):
                return len(text.encode())
            case ex.Chars(ranges):
                return next(size for size, (_, last) in BYTES if ranges[0][0] <= last)
            case ex.Sequence(parts):
                return sum(map(self.fewest, parts))
            case ex.Choice(options):
                return min(map(self.fewest, options), default=inf)
            case ex.Repeat(part, fewest):
                return fewest and fewest * self.fewest(part)
            case ex.Rule(name):
                return self._fewest[name]

    def most(self, expression: ex.Expression) -> float:
        """Bytes of the longest text."""
        match expression:
            case ex.Text(text):
                return len(text.encode())
            case ex.Chars(ranges):
                return next(size for size, (_, last) in BYTES if ranges[-1][1] <= last)
            case ex.Sequence(parts):
                return sum(map(self.most, parts))
            case ex.Choice(options):
                return max(map(self.most, options), default=0)
            case ex.Repeat(part, _, most):
                return inf if most is None else most * self.most(part)
            case ex.Rule(name):
                if name not in self._most:
                    # A rule that is reached while it is measured contains itself, and has no longest text.
                    self._most[name] = inf
                    self._most[name] = self.most(self._grammar.rules[name])
                return self._most[name]

    def _measured(self, expression: ex.Expression) -> tuple[float, float]:
        """Minimum and maximum bytes, measured once; parts of the grammar live as long as it does."""
        if id(expression) not in self._measures:
            self._measures[id(expression)] = (self.fewest(expression), self.most(expression))
        return self._measures[id(expression)]

    def _limited(self, expression: ex.Expression, space: float) -> ex.Expression:
        fewest, most = self._measured(expression)
        if fewest > space:
            return ex.NEVER
        if most <= space:
            self._copy(expression)
            return expression
        match expression:
            case ex.Chars(ranges):
                return ex.chars(ex.without(ranges, (span for size, span in BYTES if size > space)))
            case ex.Sequence(parts):
                return self._limited_sequence(parts, space)
            case ex.Choice(options):
                return ex.one_of(self._limited(option, space) for option in options)
            case ex.Repeat(part, fewest, most):
                return self._limited_repeat(part, fewest, most, space)
            case ex.Rule(name):
                return self._limited_rule(name, space)
            case ex.Text():
                return ex.NEVER

    def _copy(self, expression: ex.Expression) -> None:
        """Copy the rules that an expression refers to."""
        match expression:
            case ex.Rule(name) if name not in self._rules:
                self._rules[name] = self._grammar.rules[name]
                self._leaves |= self._grammar.leaves & {name}
                self._copy(self._grammar.rules[name])
            case _:
                for part in ex.children(expression):
                    self._copy(part)

    def _limited_rule(self, name: str, space: float) -> ex.Expression:
        # A recursive rule is copied for ever smaller limits; rounding them keeps the copies few.
        limit = int(space)
        if name in self._recursive:
            small = max(0, limit.bit_length() - SIGNIFICANT_BITS)
            limit = max(int(self._fewest[name]), limit >> small << small)
        copy = f"{name}-max-{limit}"
        if copy not in self._rules:
            self._rules[copy] = ex.EMPTY
            self._leaves |= {copy} if name in self._grammar.leaves else set()
            self._rules[copy] = self._limited(self._grammar.rules[name], limit)
        return ex.Rule(copy)

    def _limited_sequence(self, parts: Sequence[ex.Expression], space: float) -> ex.Expression:
        shares = [self._measured(part)[0] for part in parts]
        left = space - sum(shares)
        for index, part in enumerate(parts):
            wish = self._measured(part.part)[0] if isinstance(part, ex.Repeat) and not part.fewest else 0
            if wish <= left:
                shares[index] += wish
                left -= wish
        shares = _spread(shares, [self._measured(part)[1] for part in parts], left)
        return ex.in_sequence(*(self._limited(part, share) for part, share in zip(parts, shares, strict=True)))

    def _limited_repeat(self, part: ex.Expression, fewest: int, most: int | None, space: float) -> ex.Expression:
        tiers = _by_size(part)
        if tiers:
            return ex.one_of(_tiers(tiers, fewest, most, space))
        each = self._measured(part)[1]
        if each <= space / max(fewest, 1):
            return ex.repeated(part, fewest, _least(most, space // each))
        count = self._count(part, fewest, most, space)
        return ex.repeated(self._limited(part, space // max(count, 1)), fewest, count)

    def _count(self, part: ex.Expression, fewest: int, most: int | None, space: float) -> int:
        """Maximum number of items where one alone could take all bytes."""
        needed = max(1, self._measured(part)[0])
        wished = min(MOST_ITEMS, space // max(2 * needed, BYTES_PER_ITEM))
        return max(fewest, _least(most, max(min(wished, space // needed), 1 if needed <= space else 0)))


def _spread(shares: list[float], most: list[float], left: float) -> list[float]:
    """Shares with the rest added evenly, up to the maximum of each."""
    open_ends: list[int] = [index for index in range(len(shares)) if shares[index] < most[index]]
    while left >= 1 and open_ends:
        each = max(1, left // len(open_ends))
        for index in open_ends:
            given = min(each, most[index] - shares[index], left)
            shares[index] += given
            left -= given
        open_ends = [index for index in open_ends if shares[index] < most[index]]
    return shares


def _by_size(part: ex.Expression) -> dict[int, list[ex.Expression]]:
    """Single characters, including escapes, by size in bytes; empty where the part is more than that."""
    sizes: dict[int, list[ex.Expression]] = {}
    for option in part.options if isinstance(part, ex.Choice) else (part,):
        for size, piece in _sized(option):
            sizes.setdefault(size, []).append(piece)
    return {} if 0 in sizes else dict(sorted(sizes.items()))


def _sized(option: ex.Expression) -> Iterable[tuple[int, ex.Expression]]:
    if isinstance(option, ex.Chars):
        for size, span in BYTES:
            piece = ex.chars(ex.without(option.ranges, (other for _, other in BYTES if other != span)))
            if piece != ex.NEVER:
                yield size, piece
    else:
        yield _fixed_size(option), option


def _fixed_size(option: ex.Expression) -> int:
    """Bytes of a fixed-size option such as an escape; 0 where the size varies."""
    match option:
        case ex.Text(text):
            return len(text.encode())
        case ex.Chars(ranges):
            return 1 if ranges[-1][1] < 128 else 0
        case ex.Sequence(parts):
            sizes = list(map(_fixed_size, parts))
            return 0 if 0 in sizes else sum(sizes)
        case ex.Choice(options):
            sizes = set(map(_fixed_size, options))
            return sizes.pop() if len(sizes) == 1 else 0
        case _:
            return 0


def _tiers(
    sizes: dict[int, list[ex.Expression]], fewest: int, most: int | None, space: float
) -> Iterable[ex.Expression]:
    """Long repetitions of small characters, shorter ones of all."""
    pieces: list[ex.Expression] = []
    limits = [_least(most, space // size) for size in sizes]
    for (_, found), limit, next_limit in zip(sizes.items(), limits, [*limits[1:], -1], strict=True):
        pieces = [*pieces, *found]
        if limit >= fewest and limit != next_limit:
            yield ex.repeated(ex.one_of(pieces), fewest, limit)


def _least(most: int | None, other: float) -> int:
    return int(other) if most is None else int(min(most, other))


NEVER_ENDS = 1 << 40
"""Length of an impossible text, such as one of a shape that requires itself."""


class Lengths:
    """Bytes of the shortest texts of shapes, cached."""

    def __init__(self, named: Mapping[str, shapes.Shape]) -> None:
        self._named = named
        self._found: dict[shapes.Shape, int] = {}
        self._open: set[str] = set()

    def least(self, shape: shapes.Shape) -> int:
        if shape in self._found:
            return self._found[shape]
        found = self._least(shape)
        if not self._open:
            # Computed while a containing shape is open, it may be too long to be cached.
            self._found[shape] = found
        return found

    def least_after(self, properties: tuple[shapes.Property, ...]) -> int:
        """Bytes of the required ones of these properties, each with its comma."""
        return sum(self._entry(each) for each in properties if each.required)

    def _least(self, shape: shapes.Shape) -> int:
        match shape:
            case shapes.Constants(texts=texts):
                return min(len(text.encode()) for text in texts)
            case shapes.Strings():
                return self._string(shape)
            case shapes.Integers() | shapes.Numbers():
                fewest = max(len(str(bound)) for bound in (shape.least, shape.most, 0) if bound is not None)
                return fewest + (0 if isinstance(shape, shapes.Integers) or _holds_whole(shape) else 18)
            case shapes.Arrays():
                items = [self.least(shape.item(index)) for index in range(shape.fewest)]
                return 2 + sum(items) + max(len(items) - 1, 0)
            case shapes.Objects():
                return self._object(shape)
            case shapes.Union(options=options):
                return min(map(self.least, options), default=NEVER_ENDS)
            case shapes.Named(name=name) if name in self._open:
                return NEVER_ENDS
            case shapes.Named(name=name):
                self._open.add(name)
                try:
                    return self.least(self._named[name])
                finally:
                    self._open.discard(name)
            case _:
                return 1

    def _string(self, shape: shapes.Strings) -> int:
        if shape.pattern is None:
            return 2 + shape.shortest
        fewest, _ = ex.length_of(ex.written(shape.pattern))
        # Characters are counted, not bytes, and one has four bytes at most.
        return 2 + 4 * max(shape.shortest, fewest)

    def _object(self, shape: shapes.Objects) -> int:
        further = max(shape.fewest - sum(each.required for each in shape.properties), 0)
        optional = [self._entry(each) for each in shape.properties if not each.required]
        if shape.others != shapes.NOTHING:
            # Unlisted names must differ from one another, so they take a few characters.
            optional += [len(',"xx":') + len(str(further)) + self.least(shape.others)] * further
        added = sum(sorted(optional)[:further]) if len(optional) >= further else NEVER_ENDS
        return 2 + max(self.least_after(shape.properties) + added - 1, 0)

    def _entry(self, each: shapes.Property) -> int:
        return 1 + len(key_text(each).encode()) + self.least(each.shape)


def _holds_whole(shape: shapes.Numbers) -> bool:
    if shape.least is None or shape.most is None:
        return True
    lowest = floor(shape.least) + 1 if shape.above else ceil(shape.least)
    return lowest <= (ceil(shape.most) - 1 if shape.below else floor(shape.most))


def key_text(each: shapes.Property) -> str:
    """The JSON text of a property's name, with its colon."""
    return ex.json_text(each.name) + ":"


def common_beginning(texts: Iterable[str]) -> str:
    """The longest common prefix."""
    first, last = min(texts := tuple(texts)), max(texts)
    same = next((index for index, char in enumerate(first) if char != last[index]), len(first))
    return first[:same]


def is_closed(shape: shapes.Objects) -> bool:
    """Whether an object has only its listed properties, without further bounds on their number."""
    required = sum(each.required for each in shape.properties)
    return shape.others == shapes.NOTHING and shape.fewest <= required and shape.most is None
