"""Full-text index in memory: BM25 over rows of weighted fields, updated row by row."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trysquare.search.tokenize import Spelling, meaning, split_words, stem, terms

_SATURATION = 1.2
_LENGTH_SHARE = 0.4
_PREFIX_SHARE = 0.8
_SHORTEST_PREFIX, _MOST_PREFIXED = 3, 8
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Row:
    weights: Mapping[str, float]
    length: float


class FullTextIndex:
    """Rows of (id, fields); a field is a text and the weight of its terms."""

    def __init__(self) -> None:
        self._rows: dict[str, _Row] = {}
        self._postings: dict[str, dict[str, float]] = {}
        self._spelling = Spelling()
        self._vectors: dict[str, dict[str, float]] = {}
        self._length = 0.0

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, id: str, fields: Iterable[tuple[str, float]]) -> None:
        self.remove(id)
        weights: dict[str, float] = {}
        for text, weight in fields:
            for term in terms(text):
                weights[term] = weights.get(term, 0.0) + weight
        row = self._rows[id] = _Row(weights=weights, length=max(sum(weights.values()), 1.0))
        self._length += row.length
        for term, weight in weights.items():
            if term not in self._postings:
                self._postings[term] = {}
                self._spelling.add(term)
            self._postings[term][id] = weight
        self._vectors.clear()

    def remove(self, id: str) -> None:
        row = self._rows.pop(id, None)
        if row is None:
            return
        self._length -= row.length
        for term in row.weights:
            del self._postings[term][id]
            if not self._postings[term]:
                del self._postings[term]
                self._spelling.remove(term)
        self._vectors.clear()

    def scores(self, query: str) -> dict[str, float]:
        """Return the BM25 score of every row that shares a term with the query."""
        found: dict[str, float] = {}
        for term in dict.fromkeys(terms(query) or split_words(query)):
            for known, nearness in self._known(term):
                self._add_gains(found, known, nearness)
        return found

    def similarity(self, one: str, other: str) -> float:
        """Return the cosine of the weighted terms of two rows, from 0 to 1."""
        first, second = self._vector(one), self._vector(other)
        return min(1.0, sum(weight * second[term] for term, weight in first.items() if term in second))

    def neighbours(self, id: str) -> set[str]:
        """Return the rows that share a rare term with this one: the only candidates for a high similarity."""
        most = max(3.0, 0.2 * len(self))
        rare = (term for term in self._rows[id].weights if len(self._postings[term]) <= most)
        return {other for term in rare for other in self._postings[term]} - {id}

    def _known(self, term: str) -> list[tuple[str, float]]:
        """Indexed terms for one of the query: the term itself, else corrected spellings, else terms it begins."""
        if term in self._postings:
            return [(term, 1.0)]
        if guesses := self._spelling.guesses(term):
            return guesses
        if len(term) < _SHORTEST_PREFIX:
            return []
        longer = sorted(
            (known for known in self._postings if known.startswith(term)), key=lambda known: (len(known), known)
        )
        return [(known, _PREFIX_SHARE) for known in longer[:_MOST_PREFIXED]]

    def _add_gains(self, found: dict[str, float], term: str, nearness: float) -> None:
        factor = nearness * self._rarity(term) * (_SATURATION + 1)
        mean = self._length / len(self._rows)
        for id, weight in self._postings[term].items():
            norm = 1 - _LENGTH_SHARE + _LENGTH_SHARE * self._rows[id].length / mean
            found[id] = found.get(id, 0.0) + factor * weight / (weight + _SATURATION * norm)

    def _rarity(self, term: str) -> float:
        holding = len(self._postings.get(term, ()))
        return math.log(1 + (len(self._rows) - holding + 0.5) / (holding + 0.5))

    def _vector(self, id: str) -> dict[str, float]:
        """The row's terms by meaning, normalised: `fetch` and `get` do not distinguish two rows."""
        if id not in self._vectors:
            vector: dict[str, float] = {}
            for term, weight in self._rows[id].weights.items():
                own = math.sqrt(weight) * (1 + self._rarity(term))
                vector[meaning(term)] = max(own, vector.get(meaning(term), 0.0))
            size = math.sqrt(sum(weight * weight for weight in vector.values())) or 1.0
            self._vectors[id] = {term: weight / size for term, weight in vector.items()}
        return self._vectors[id]


def excerpt(text: str, query: str, *, words: int = 24) -> str:
    """Return about so many words of a text, from shortly before the first one that the query holds."""
    wanted = set(terms(query))
    found = list(_WORD.finditer(text))
    hits = (place for place, word in enumerate(found) if any(stem(part) in wanted for part in split_words(word[0])))
    start = max(0, next(hits, 0) - words // 4)
    shown = found[start : start + words]
    if not shown:
        return ""
    before, after = "… " if start else "", " …" if start + words < len(found) else ""
    return f"{before}{' '.join(text[shown[0].start() : shown[-1].end()].split())}{after}"
