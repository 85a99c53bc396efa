"""SearchIndex: rows by words and, where an encoder is installed, by meaning; each result likely or unsure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from trysquare.core.threads import run_in_thread
from trysquare.search.fulltext import FullTextIndex
from trysquare.search.tokenize import terms

if TYPE_CHECKING:
    from trysquare.search.encoder import Matrix
    from trysquare.search.vectors import Vectors


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """How words and meaning are weighed. docs/benchmarks-discovery.md says how the defaults were found."""

    name: float = 0.5
    """The name's vector beside the text's."""
    words: float = 0.1
    """Words beside meaning: short requests want meaning, requests with several parts want words."""
    words_per_part: float = 0.03
    most_words: float = 0.3
    domain: float = 0.5
    """How much nearer the other rows of its group are than those of all groups counts for a row's confidence."""
    likely: float = 0.36
    """A row is likely by its meaning alone, or together with the logarithm of how many terms it shares."""
    shared: float = 0.35
    likely_shared: float = 0.75
    likely_words: float = 0.2
    """The same without an encoder: of the share of the request that the row says."""


AskedWord: TypeAlias = tuple[dict[str, float], float]
"""The indexed terms that a word of a request stands for, how nearly, and how rare they are."""
LEARNED = Weights()
_KNOWN = 0.1
"""Most that former choices add to a score, whose best is about 1 by words and 0.7 with meaning."""
_HALF_SAID = 1.5
"""The weight of a term at which a row says half of it: more than a description once."""
_PARTS = re.compile(
    r"[.;?!\n]+(?:\s|$)|,\s+and\b|,?\s+(?:and\s+)?(?:then|also|additionally|finally|next|afterwards|after that|lastly"
    r"|furthermore|moreover)\b,?|\s+and\s+",
    re.IGNORECASE,
)
_MOST_PARTS = 8
_LEAD = re.compile(r"(?<=[.!?])\s|\n")
_SHORTEST_LEAD = 4
"""In words: `Search.` says less than the sentence after it."""


def lead(text: str) -> str:
    """The first sentence of a text that says something: the later ones are about details and limits."""
    text = text.strip()
    for end in _LEAD.finditer(text):
        if len(text[: end.start()].split()) >= _SHORTEST_LEAD:
            return text[: end.start()]
    return text


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranked:
    """A row near to a query. Scores compare within one query only."""

    id: str
    score: float
    confidence: float
    """How surely it fits, which compares across queries; above 0 it is likely."""

    @property
    def likely(self) -> bool:
        return self.confidence > 0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Meant:
    name: str
    text: str
    group: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rows:
    """The vectors of all rows: of each by itself, and of the other rows of its group."""

    ids: tuple[str, ...]
    own: Matrix
    others: Matrix | None
    """None while there is one group only: then a group says nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Meaning:
    """How near each row is to a request."""

    near: Mapping[str, float]
    domain: Mapping[str, float]
    """How much nearer the other rows of its group are than those of all groups: 0 where there are none."""


def split_request(query: str) -> list[str]:
    """The parts of a request that asks for several things; one part where it asks for one."""
    parts = [part.strip(" ,") for part in _PARTS.split(query)]
    parts = [part for part in parts if len(terms(part)) > 1]
    return parts[:_MOST_PARTS] if len(parts) > 1 else [query]


class SearchIndex(FullTextIndex):
    """Full-text index that also ranks by meaning, as soon as the vectors of its rows are there."""

    def __init__(self, vectors: Vectors | None = None, *, weights: Weights = LEARNED) -> None:
        super().__init__()
        self.weights = weights
        self._meant: dict[str, _Meant] = {}
        self._vectors_of = vectors
        self._matrix: _Rows | None = None
        self._requested = False
        """Whether the vectors of the present rows are on their way."""

    def weigh(self, weights: Weights) -> None:
        """Use other weights from now on."""
        if weights.name != self.weights.name:
            self._matrix, self._requested = None, False
        self.weights = weights

    def put_row(self, id: str, fields: Iterable[tuple[str, float]], *, name: str, text: str, group: str = "") -> None:
        """Put a row whose meaning is that of its name and its text, in a group of rows of the same domain."""
        self.put(id, fields)
        self._meant[id] = _Meant(name=name, text=text, group=group)
        self._matrix, self._requested = None, False

    def remove(self, id: str) -> None:
        super().remove(id)
        if self._meant.pop(id, None) is not None:
            self._matrix, self._requested = None, False

    async def prepare(self, query: str) -> None:
        """Have an encoder behind an address encode a query, off the event loop; the others need no preparation."""
        if self._vectors_of is not None and self._vectors_of.remote:
            await run_in_thread(partial(self._by_meaning, query, split_request(query)))

    def rank(self, query: str, *, known_for: Mapping[str, float] | None = None) -> Iterator[Ranked]:
        """Yield every row that has anything in common with the query, best first, ties by id.

        `known_for` says from 0 to 1 how well rows have proved for such queries: they rank a little higher.
        """
        parts = split_request(query)
        words = self._by_words(query, parts)
        meaning = self._by_meaning(query, parts)
        if meaning is None:
            scores = words
        else:
            weights = self.weights
            share = min(weights.words + weights.words_per_part * (len(parts) - 1), weights.most_words)
            scores = {id: (1 - share) * near + share * words.get(id, 0.0) for id, near in meaning.near.items()}
        for id, share in (known_for or {}).items():
            if id in scores:
                scores[id] += _KNOWN * share
        wanted = [self._wanted(part) for part in parts]
        for id, score in sorted(scores.items(), key=lambda item: (-item[1], item[0])):
            yield Ranked(id=id, score=round(score, 6), confidence=self._confidence(id, wanted, meaning))

    def _by_words(self, query: str, parts: Sequence[str]) -> dict[str, float]:
        """BM25 of the whole request and of its parts, each as a share of its best row."""
        whole = _shares(self.scores(query))
        if len(parts) == 1:
            return whole
        best: dict[str, float] = {}
        for part in parts:
            for id, share in _shares(self.scores(part)).items():
                best[id] = max(share, best.get(id, 0.0))
        return {id: (whole.get(id, 0.0) + best.get(id, 0.0)) / 2 for id in {*whole, *best}}

    def _by_meaning(self, query: str, parts: Sequence[str]) -> Meaning | None:
        """Cosines with the request and with the nearest of its parts; None while vectors are missing."""
        if self._vectors_of is None or not self._meant or not query.strip():
            return None
        if (rows := self._rows_matrix()) is None:
            return None
        asked = self._vectors_of.of_query((query,) if len(parts) == 1 else (query, *parts))
        if asked is None:
            return None
        domain = (
            {} if rows.others is None else dict(zip(rows.ids, _above_mean(_nearest(rows.others, asked)), strict=True))
        )
        return Meaning(near=dict(zip(rows.ids, _nearest(rows.own, asked).tolist(), strict=True)), domain=domain)

    def _rows_matrix(self) -> _Rows | None:
        vectors = self._vectors_of
        if self._matrix is not None or vectors is None or (self._requested and vectors.busy):
            return self._matrix
        meant = dict(self._meant)
        self._requested = True
        if vectors.request(text for row in meant.values() for text in (row.name, row.text)):
            texts = vectors.of([row.text for row in meant.values()])
            own = vectors.of([row.name for row in meant.values()])
            own *= self.weights.name
            own += texts
            own /= 1 + self.weights.name
            self._matrix = _Rows(
                ids=tuple(meant), own=own, others=_others([row.group for row in meant.values()], texts)
            )
        return self._matrix

    def _wanted(self, part: str) -> list[AskedWord]:
        """What a part of a request asks for: of each word the terms that it stands for, and how rare it is."""
        unknown = self.rarity("")
        return [
            (dict(known), min((self.rarity(term) for term, _ in known), default=unknown))
            for known in self.resolve(part).values()
        ]

    def _confidence(self, id: str, wanted: Sequence[Sequence[AskedWord]], meaning: Meaning | None) -> float:
        """How surely the row fits the request, by its meaning, its group and the words they share."""
        known, weights = self._rows[id].weights.keys(), self.weights
        if meaning is not None:
            shared = len({term for part in wanted for words, _ in part for term in words.keys() & known})
            near = meaning.near[id] + weights.domain * meaning.domain.get(id, 0.0)
            return max(near - weights.likely, near + weights.shared * math.log1p(shared) - weights.likely_shared)
        return max((self._covered(part, id) for part in wanted), default=0.0) - weights.likely_words

    def _covered(self, part: Sequence[AskedWord], id: str) -> float:
        """How much of a part the row says: rare words and those of heavy fields count more."""
        held = self._rows[id].weights
        total = said = 0.0
        for words, rarity in part:
            weight = max((nearness * held.get(term, 0.0) for term, nearness in words.items()), default=0.0)
            said += rarity * weight / (weight + _HALF_SAID)
            total += rarity
        return said / total if total else 0.0


def _nearest(rows: Matrix, asked: Matrix) -> Matrix:
    """The cosine of each row with the request; of one with several parts, the mean of the whole and the nearest."""
    near: Matrix = rows @ asked.T
    together: Matrix = near[:, 0] if near.shape[1] == 1 else (near[:, 0] + near[:, 1:].max(axis=1)) / 2
    return together


def _others(groups: Sequence[str], texts: Matrix) -> Matrix | None:
    """The direction of the other rows of each row's group; zero for a row without others."""
    import numpy as np

    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    if len(numbers) < 2:
        return None
    of = np.array([numbers[group] for group in groups])
    sums = np.zeros((len(numbers), texts.shape[1]), dtype=np.float32)
    np.add.at(sums, of, texts)
    others: Matrix = sums[of] - texts
    others[np.bincount(of)[of] == 1] = 0.0
    others /= np.maximum(np.linalg.norm(others, axis=1, keepdims=True), np.float32(1e-6))
    return others


def _above_mean(near: Matrix) -> list[float]:
    """How far each is above the mean of those that are not exactly 0, which have no others in their group."""
    present = near != 0.0
    if not present.any():
        return [0.0] * len(near)
    found: list[float] = ((near - near[present].mean()) * present).tolist()
    return found


def _shares(scores: dict[str, float]) -> dict[str, float]:
    best = max(scores.values(), default=0.0)
    return {id: score / best for id, score in scores.items()} if best > 0 else {}
