"""Token estimate without a vocabulary, and choice of texts within a token budget.

A tokenizer cuts a text into pieces by simple rules, then looks each piece up in a vocabulary of megabytes. Pieces are
cut here as o200k does it; the mean tokens of a piece of its kind and length replace the vocabulary. The tests compare
the estimate with the real tokenizer.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, cast

_ACCENTED = "\u00c0-\u024f\u1e00-\u1eff"
# A look ahead that is bounded keeps the cost linear in texts that are one endless word.
_PIECE = re.compile(
    rf"(?P<accented>[^\r\n\w]?(?=[A-Za-z]{{0,40}}[{_ACCENTED}])[A-Za-z{_ACCENTED}]+)"
    r"|(?P<word>[^\r\nA-Za-z0-9\u0080-\U0010ffff]?(?:[A-Z]*[a-z]+(?:'(?:s|t|re|ve|m|ll|d)\b)?|[A-Z]+))"
    r"|(?P<number>[0-9]{1,3})"
    r"|(?P<other> ?[^\x00-\x7f\s]+)"
    r"|(?P<mark> ?[!-/:-@\[-`{-~]+[\r\n/]*)"
    r"|(?P<space>\s*[\r\n]+|\s+(?!\S)|\s+|[\x00-\x1f\x7f])"
)

# Mean tokens of words of 1, 2, 3 … letters, by the character before the word and by its case.
_WORDS: dict[tuple[str, str], tuple[float, ...]] = {
    ("", "lower"): (1.0, 1.0, 1.19, 1.05, 1.08, 1.16, 1.21, 1.33, 1.42, 1.44, 1.5, 1.9),
    ("", "capital"): (1.0, 1.01, 1.08, 1.04, 1.07, 1.09, 1.12, 1.19, 1.3, 1.4, 1.6, 1.8),
    ("", "upper"): (1.0, 1.01, 1.21, 1.38, 1.65, 1.72, 1.9, 2.6, 2.8, 3.1, 3.6, 4.2),
    (" ", "lower"): (1.0, 1.0, 1.02, 1.02, 1.03, 1.04, 1.07, 1.11, 1.17, 1.18, 1.24, 1.36),
    (" ", "capital"): (1.0, 1.0, 1.12, 1.06, 1.08, 1.19, 1.21, 1.33, 1.4, 1.42, 1.55, 1.6),
    (" ", "upper"): (1.0, 1.03, 1.22, 1.2, 1.48, 1.58, 1.6, 1.85, 2.1, 2.2, 2.4, 2.8),
    ("mark", "lower"): (1.03, 1.19, 1.32, 1.32, 1.42, 1.44, 1.58, 1.75, 1.9, 2.15, 2.3, 2.5),
    ("mark", "capital"): (1.5, 1.58, 1.6, 1.58, 1.68, 1.8, 1.85, 1.99, 2.1, 2.15, 2.3, 2.6),
    ("mark", "upper"): (1.42, 1.36, 1.45, 1.45, 1.58, 1.6, 1.65, 2.03, 2.28, 2.5, 3.0, 3.4),
}
# The words of which every schema is made are in the vocabulary whole.
_SCHEMA_WORDS = frozenset(
    {"additional", "array", "boolean", "default", "description", "enum", "false", "format", "input", "integer", "items",
     "maximum", "minimum", "name", "null", "number", "object", "pattern", "Properties", "properties", "required",
     "schema", "string", "title", "true", "type"}
)  # fmt: skip
_LONGER = {"lower": 0.27, "capital": 0.27, "upper": 0.37}
_JSON_MARKS = (1.0, 1.0, 1.01, 1.4, 1.7, 2.5, 2.8, 3.0)
_OTHER_MARKS = (1.0, 1.04, 1.28, 1.5, 2.05, 2.6, 2.8, 3.6)
# Letters of Western Europe stand in more of the vocabulary's words than those of the other Latin alphabets.
_WESTERN_LETTER, _ACCENTED_LETTER = 0.28, 0.38
# In a text with accented words the plain ones are not English either, and cost more.
_FOREIGN_SHARE, _FOREIGN_COST = 0.04, 1.08

# Mean tokens of one character, by the code point where its script begins.
_SCRIPTS = (
    (0x0080, 0.9), (0x0370, 0.45), (0x0400, 0.31), (0x0530, 0.42), (0x0590, 0.43), (0x0600, 0.41), (0x0700, 1.2),
    (0x0900, 0.4), (0x0980, 0.45), (0x0B80, 0.34), (0x0E00, 0.4), (0x0E80, 1.0), (0x10A0, 0.4), (0x1100, 0.65),
    (0x1200, 1.2), (0x1780, 0.64), (0x1800, 1.2), (0x2000, 0.95), (0x2500, 0.5), (0x25A0, 1.0), (0x3040, 0.62),
    (0x3100, 1.0), (0x3400, 2.0), (0x4E00, 0.74), (0xA000, 1.5), (0xAC00, 0.62), (0xD800, 1.0), (0xF900, 1.2),
    (0x10000, 2.5), (0x1F000, 1.6), (0x1FB00, 2.5),
)  # fmt: skip
_STARTS = [start for start, _ in _SCRIPTS]


def count_tokens(text: str) -> int:
    """About how many o200k tokens a text has. Fast, deterministic, the same everywhere."""
    pieces = Counter((cast(str, found.lastgroup), found[0]) for found in _PIECE.finditer(text))
    costs, counts = dict[str, float].fromkeys(_COSTS, 0.0), dict[str, int].fromkeys(_COSTS, 0)
    for (kind, piece), times in pieces.items():
        costs[kind] += times * _COSTS[kind](piece)
        counts[kind] += times
    if counts["accented"] > _FOREIGN_SHARE * (counts["accented"] + counts["word"]):
        costs["word"] *= _FOREIGN_COST
    return round(sum(costs.values()))


def _word_cost(piece: str) -> float:
    if piece in _SCHEMA_WORDS:
        return 1.0
    bare = piece if piece[0].isalpha() else piece[1:]
    before = "" if bare is piece else " " if piece[0] == " " else "mark"
    case = "lower" if bare.islower() else "upper" if bare.isupper() and len(bare) > 1 else "capital"
    rates = _WORDS[before, case]
    over = len(bare) - len(rates)
    return rates[len(bare) - 1] if over <= 0 else rates[-1] + over * _LONGER[case]


def _accented_cost(piece: str) -> float:
    letters = piece.strip()
    return max(1.0, len(letters) * (_WESTERN_LETTER if max(letters) < "\u0100" else _ACCENTED_LETTER))


def _other_cost(piece: str) -> float:
    return max(1.0, sum(_SCRIPTS[bisect_right(_STARTS, ord(char)) - 1][1] for char in piece.strip()))


def _mark_cost(piece: str) -> float:
    marks = piece.strip()
    if len(marks) > 2 and len(set(marks)) == 1:
        return 1 + len(marks) / 16
    rates = _OTHER_MARKS if set(marks) - set('{}[]":,') else _JSON_MARKS
    over = max(0, len(marks) - len(rates))
    return rates[min(len(marks), len(rates)) - 1] + over * 0.45


_COSTS: dict[str, Callable[[str], float]] = {
    "accented": _accented_cost,
    "word": _word_cost,
    "number": lambda piece: 1.0,
    "other": _other_cost,
    "mark": _mark_cost,
    "space": lambda piece: 1 + len(piece) // 80,
}

_BYTES_A_TOKEN = 3.5
"""On the safe side: English prose has about four bytes a token, code and JSON fewer."""


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has, rather too many than too few."""
    return math.ceil(len(text.encode("utf-8", errors="surrogatepass")) / _BYTES_A_TOKEN)


SHORT_DIGEST = 12


class BudgetItem(Protocol):
    """Something that is sent whole or not at all.

    `digest` changes when its text does, `tokens` is what it costs the reader, and more `priority` is kept first.
    """

    @property
    def digest(self) -> str: ...

    @property
    def tokens(self) -> int: ...

    @property
    def priority(self) -> int: ...


Item = TypeVar("Item", bound=BudgetItem)


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetSelection(Generic[Item]):
    """What is sent, what the reader has already, and what did not fit; each in the order in which it was given."""

    sent: tuple[Item, ...]
    unchanged: tuple[Item, ...] = ()
    left_out: tuple[Item, ...] = ()

    @property
    def tokens(self) -> int:
        return sum(item.tokens for item in self.sent)

    def held(self) -> tuple[str, ...]:
        """The short digests that the reader holds once this has arrived."""
        return tuple(item.digest[:SHORT_DIGEST] for item in (*self.unchanged, *self.sent))


def fit_budget(
    items: Sequence[Item],
    *,
    budget: int | None = None,
    held: AbstractSet[str] = frozenset(),
    naming: Callable[[int], int] = lambda left_out: 0,
) -> BudgetSelection[Item]:
    """Choose what to send, the most important first. `naming` says what it costs to name so many that are left out."""
    unchanged = tuple(item for item in items if is_held(item.digest, held))
    fresh = [item for item in items if not is_held(item.digest, held)]
    fitting = set(range(len(fresh)) if budget is None else _fitting(fresh, budget, naming))
    return BudgetSelection(
        sent=tuple(item for index, item in enumerate(fresh) if index in fitting),
        unchanged=unchanged,
        left_out=tuple(item for index, item in enumerate(fresh) if index not in fitting),
    )


def _fitting(items: Sequence[BudgetItem], budget: int, naming: Callable[[int], int]) -> Iterable[int]:
    if sum(item.tokens for item in items) <= budget:
        return range(len(items))
    left, fitting = budget, list[int]()
    # Sorting is stable: among items of one priority the given order decides.
    for index in sorted(range(len(items)), key=lambda index: -items[index].priority):
        if items[index].tokens + naming(len(items) - len(fitting) - 1) <= left:
            left -= items[index].tokens
            fitting.append(index)
    return fitting


def is_held(digest: str, held: AbstractSet[str]) -> bool:
    """Whether a digest, in full or shortened, is among those that the reader holds."""
    return digest in held or digest[:SHORT_DIGEST] in held
