"""SearchIndex: rows by words and, where an encoder is installed, by meaning; each result likely or unsure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from trysquare.core.threads import run_in_thread
from trysquare.search.fulltext import FullTextIndex
from trysquare.search.tokenize import terms

if TYPE_CHECKING:
    from trysquare.search.encoder import Matrix
    from trysquare.search.vectors import Vectors

# What follows was chosen on training parts of public sets; docs/benchmarks-discovery.md names them and what came out.
_NAME_SHARE = 0.5
"""Weight of the name's vector beside the text's."""
_WORDS, _WORDS_PER_PART, _MOST_WORDS = 0.1, 0.03, 0.3
"""Weight of words beside meaning: short requests want meaning, requests with several parts want words."""
_LIKELY_BY_MEANING = 0.36
_SHARED, _LIKELY_BY_BOTH = 0.35, 0.75
"""A row is likely by its cosine alone, or with the logarithm of how many terms it shares with the request."""
_LIKELY_BY_WORDS = 0.25
_KNOWN = 0.1
"""Most that former choices add to a score, whose best is about 1 by words and 0.7 with meaning."""
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
    name_terms: frozenset[str]


def split_request(query: str) -> list[str]:
    """The parts of a request that asks for several things; one part where it asks for one."""
    parts = [part.strip(" ,") for part in _PARTS.split(query)]
    parts = [part for part in parts if len(terms(part)) > 1]
    return parts[:_MOST_PARTS] if len(parts) > 1 else [query]


class SearchIndex(FullTextIndex):
    """Full-text index that also ranks by meaning, as soon as the vectors of its rows are there."""

    def __init__(self, vectors: Vectors | None = None) -> None:
        super().__init__()
        self._meant: dict[str, _Meant] = {}
        self._vectors_of = vectors
        self._matrix: tuple[tuple[str, ...], Matrix] | None = None
        self._requested = False
        """Whether the vectors of the present rows are on their way."""

    def put_row(self, id: str, fields: Iterable[tuple[str, float]], *, name: str, text: str) -> None:
        """Put a row whose meaning is that of its name and its text."""
        self.put(id, fields)
        self._meant[id] = _Meant(name=name, text=text, name_terms=frozenset(terms(name)))
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
            share = min(_WORDS + _WORDS_PER_PART * (len(parts) - 1), _MOST_WORDS)
            scores = {id: (1 - share) * near + share * words.get(id, 0.0) for id, near in meaning.items()}
        for id, share in (known_for or {}).items():
            if id in scores:
                scores[id] += _KNOWN * share
        wanted = [frozenset(terms(part)) for part in parts]
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

    def _by_meaning(self, query: str, parts: Sequence[str]) -> Mapping[str, float] | None:
        """Cosines with the request and with the nearest of its parts; None while vectors are missing."""
        if self._vectors_of is None or not self._meant or not query.strip():
            return None
        if (rows := self._rows_matrix()) is None:
            return None
        ids, matrix = rows
        asked = self._vectors_of.of_query((query,) if len(parts) == 1 else (query, *parts))
        if asked is None:
            return None
        near = matrix @ asked.T
        together = near[:, 0] if len(parts) == 1 else (near[:, 0] + near[:, 1:].max(axis=1)) / 2
        return dict(zip(ids, together.tolist(), strict=True))

    def _rows_matrix(self) -> tuple[tuple[str, ...], Matrix] | None:
        vectors = self._vectors_of
        if self._matrix is not None or vectors is None or (self._requested and vectors.busy):
            return self._matrix
        meant = dict(self._meant)
        self._requested = True
        if vectors.request(text for row in meant.values() for text in (row.name, row.text)):
            matrix = vectors.of([row.name for row in meant.values()])
            matrix *= _NAME_SHARE
            matrix += vectors.of([row.text for row in meant.values()])
            matrix /= 1 + _NAME_SHARE
            self._matrix = tuple(meant), matrix
        return self._matrix

    def _confidence(self, id: str, wanted: Sequence[frozenset[str]], meaning: Mapping[str, float] | None) -> float:
        """How surely the row fits the request, by its meaning and the words they share."""
        known = self._rows[id].weights.keys()
        if meaning is not None:
            shared = len(frozenset[str]().union(*wanted) & known)
            near = meaning[id]
            return max(near - _LIKELY_BY_MEANING, near + _SHARED * math.log1p(shared) - _LIKELY_BY_BOTH)
        own = self._meant[id].name_terms
        named = max((len(part & own) for part in wanted), default=0) / max(len(own), 1)
        covered = max((len(part & known) / max(len(part), 1) for part in wanted), default=0.0)
        return (covered + named) / 2 - _LIKELY_BY_WORDS


def _shares(scores: dict[str, float]) -> dict[str, float]:
    best = max(scores.values(), default=0.0)
    return {id: score / best for id, score in scores.items()} if best > 0 else {}
