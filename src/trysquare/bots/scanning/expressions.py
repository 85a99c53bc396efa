"""Regular expressions of rules, run so that none of them can hang the server.

A pattern that cannot take long on the text at hand runs here. One that could, because repetitions are nested or the
text is long for it, runs in a process of its own that is ended at a deadline. `re` holds the interpreter's lock while
it matches, so a thread would not do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from importlib import import_module
from typing import Any, NamedTuple

from trysquare.bots.rules import RegexScanner
from trysquare.bots.scanning.findings import Hit, ScannerFailed, Selected
from trysquare.bots.scanning.matching import Span, find_spans
from trysquare.bots.scanning.worker_process import ask_matcher

MAX_INPUT = 1_000_000
CHEAP = 5_000_000
"""Steps that a match may take here, at the worst."""


def scan_expression(scanner: RegexScanner, selected: Sequence[Selected], *, seconds: float) -> list[Hit]:
    """The texts that break the rule; a forbidden pattern is reported at each place where it matches."""
    texts = [_text(each.value) for each in selected]
    found = _find(scanner, texts, seconds)
    if scanner.match == "require":
        fulfilled = {index for index, _, _ in found}
        return [Hit(index=index) for index in range(len(texts)) if index not in fulfilled]
    return [_hit(texts[index], index, start, end) for index, start, end in found]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        return "" if value is None else str(value)
    if len(value) > MAX_INPUT:
        raise ScannerFailed(f"a text has {len(value):,} characters; at most {MAX_INPUT:,} are searched")
    return value


def _hit(text: str, index: int, start: int, end: int) -> Hit:
    line = text.count("\n", 0, start) + 1
    whole = text[text.rfind("\n", 0, start) + 1 :].partition("\n")[0] if "\n" in text else text
    return Hit(index=index, line=line, text=whole.strip() or text[start:end])


def _find(scanner: RegexScanner, texts: list[str], seconds: float) -> list[Span]:
    flags = re.IGNORECASE if scanner.ignore_case else 0
    first_only = scanner.match == "require"
    longest = max(map(len, texts), default=0)
    if worst_steps(scanner.pattern, longest) * max(1, len(texts)) <= CHEAP:
        return find_spans(scanner.pattern, int(flags), texts, first_only)
    task = {"pattern": scanner.pattern, "flags": int(flags), "texts": texts, "first_only": first_only}
    return [(index, start, end) for index, start, end in ask_matcher(task, seconds=seconds)]


def worst_steps(pattern: str, length: int) -> float:
    """A bound of what a search may cost: a power of the length by the number of repetitions, or no bound at all."""
    cost = _cost(pattern)
    return float("inf") if cost is None else cost.factor * float(length + 1) ** (cost.power + 1)


class _Cost(NamedTuple):
    power: int = 0
    """How many repetitions without a limit stand in a row."""
    factor: int = 1
    """How many ways there are beside them."""

    def then(self, other: _Cost) -> _Cost:
        return _Cost(self.power + other.power, self.factor * other.factor)


class _Nested(Exception):
    """A repetition whose parts can be divided in more than one way."""


@lru_cache(maxsize=256)
def _cost(pattern: str) -> _Cost | None:
    """What a pattern may cost; None where one repetition stands within another."""
    try:
        return _of_all(_parsed(pattern), inside=False)
    except _Nested:
        return None


def _parsed(pattern: str) -> Iterable[Any]:
    # The parser of `re` has no public name; its output has been the same for many versions, and what is not known in
    # it counts as costly.
    parser: Any = import_module("re._parser")
    return parser.parse(pattern).data


_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_FIXED = ("LITERAL", "NOT_LITERAL", "ANY", "IN", "AT", "CATEGORY", "RANGE")
_FEW = 4


def _of_all(items: Iterable[Any], *, inside: bool) -> _Cost:
    return reduce(_Cost.then, (_of_one(str(kind), argument, inside) for kind, argument in items), _Cost())


def _of_one(kind: str, argument: Any, inside: bool) -> _Cost:
    if kind in _FIXED:
        return _Cost()
    if kind in _REPEATS:
        return _of_repeat(*argument, inside=inside)
    if kind == "BRANCH" and not inside:
        branches = [_of_all(branch, inside=False) for branch in argument[1]]
        return _Cost(max(each.power for each in branches), sum(each.factor for each in branches))
    if kind == "SUBPATTERN":
        return _of_all(argument[-1], inside=inside)
    if kind in ("ASSERT", "ASSERT_NOT"):
        return _of_all(argument[1], inside=inside)
    # Back references, conditions and whatever else there may be: nothing is promised about them.
    raise _Nested


def _of_repeat(low: int, high: int, body: Iterable[Any], *, inside: bool) -> _Cost:
    if low == high:
        return _of_all(body, inside=True)
    if inside:
        raise _Nested
    if high <= _FEW:
        once = _of_all(body, inside=False)
        return _Cost(once.power * high, (once.factor + 1) ** high)
    return _Cost(1).then(_of_all(body, inside=True))
