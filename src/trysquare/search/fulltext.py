"""Full-text index in memory: BM25 over rows of weighted fields, updated row by row."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import compress, pairwise

from trysquare.search.tokenize import SAYS_NOTHING, Spelling, meaning, split_words, stem, terms

_SATURATION = 1.2
_LENGTH_SHARE = 0.4
_PREFIX_SHARE = 0.8
_SHORTEST_PREFIX, _MOST_PREFIXED = 3, 8
_ABBREVIATED_SHARE = 0.6
_LONGEST_ABBREVIATION = 5
_VOWELS = frozenset("aeiou")
_SHORTEST_PART, _LONGEST_PARTED = 3, 40
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
        nearest: dict[str, float] = {}
        for known in self.resolve(query).values():
            for term, nearness in known:
                nearest[term] = max(nearness, nearest.get(term, 0.0))
        found: dict[str, float] = {}
        for term, nearness in nearest.items():
            self._add_gains(found, term, nearness)
        return found

    def resolve(self, query: str) -> dict[str, list[tuple[str, float]]]:
        """Each word of the query that says something, with the indexed terms that it stands for and how nearly."""
        words = split_words(query)
        chosen = [word not in SAYS_NOTHING for word in words]
        if not any(chosen):
            chosen = [True] * len(words)
        found = {word: self._known(word) for word in dict.fromkeys(compress(words, chosen))}
        for pair in pairwise(words):
            # `on call` and `data base` are `oncall` and `database` elsewhere.
            if (joined := stem("".join(pair))) in self._postings:
                for word in pair:
                    if word in found:
                        found[word].append((joined, 1.0))
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

    def _known(self, word: str) -> list[tuple[str, float]]:
        """Indexed terms for a word: itself, else corrected spellings, the words it is written of, terms it shortens."""
        term = stem(word)
        if term in self._postings:
            return [(term, 1.0)]
        if guesses := self._spelling.guesses(term):
            return guesses
        if parts := self._parted(word):
            return [(part, 1.0) for part in parts]
        return self._longer(term) or self._spelling.beginnings(word)

    def _parted(self, word: str) -> list[str]:
        """The fewest indexed terms that a word is written of without anything between: `listpods`."""
        if not 2 * _SHORTEST_PART <= len(word) <= _LONGEST_PARTED:
            return []
        best: list[list[str] | None] = [[], *([None] * len(word))]
        for end in range(2, len(word) + 1):
            for start in range(end - 1):
                before, part = best[start], word[start:end]
                says_nothing = part in SAYS_NOTHING
                if before is None or not (
                    says_nothing or (end - start >= _SHORTEST_PART and stem(part) in self._postings)
                ):
                    continue
                longer = before if says_nothing else [*before, stem(part)]
                if (known := best[end]) is None or len(longer) < len(known):
                    best[end] = longer
        return best[-1] or []

    def _longer(self, term: str) -> list[tuple[str, float]]:
        """Indexed terms that a term begins, else those that it is the consonants of: `del` and `msg`."""
        if len(term) >= _SHORTEST_PREFIX and (begun := [known for known in self._postings if known.startswith(term)]):
            share = _PREFIX_SHARE
        elif _is_abbreviation(term):
            begun = [known for known in self._postings if _abbreviates(term, known)]
            share = _ABBREVIATED_SHARE / max(min(len(begun), _MOST_PREFIXED), 1)
        else:
            return []
        return [(known, share) for known in sorted(begun, key=lambda known: (len(known), known))[:_MOST_PREFIXED]]

    def _add_gains(self, found: dict[str, float], term: str, nearness: float) -> None:
        factor = nearness * self.rarity(term) * (_SATURATION + 1)
        mean = self._length / len(self._rows)
        for id, weight in self._postings[term].items():
            norm = 1 - _LENGTH_SHARE + _LENGTH_SHARE * self._rows[id].length / mean
            found[id] = found.get(id, 0.0) + factor * weight / (weight + _SATURATION * norm)

    def rarity(self, term: str) -> float:
        """How few rows hold a term; most of all one that none holds."""
        holding = len(self._postings.get(term, ()))
        return math.log(1 + (len(self._rows) - holding + 0.5) / (holding + 0.5))

    def _vector(self, id: str) -> dict[str, float]:
        """The row's terms by meaning, normalised: `fetch` and `get` do not distinguish two rows."""
        if id not in self._vectors:
            vector: dict[str, float] = {}
            for term, weight in self._rows[id].weights.items():
                own = math.sqrt(weight) * (1 + self.rarity(term))
                vector[meaning(term)] = max(own, vector.get(meaning(term), 0.0))
            size = math.sqrt(sum(weight * weight for weight in vector.values())) or 1.0
            self._vectors[id] = {term: weight / size for term, weight in vector.items()}
        return self._vectors[id]


def _is_abbreviation(term: str) -> bool:
    """Whether a term has a consonant or more after its first letter, and no vowel there."""
    return 2 <= len(term) <= _LONGEST_ABBREVIATION and term.isascii() and term.isalpha() and not _VOWELS & set(term[1:])


def _abbreviates(term: str, known: str) -> bool:
    """Whether the letters of a term are in another in this order, from its first on."""
    letters = iter(known)
    return known[0] == term[0] and len(known) > len(term) and all(letter in letters for letter in term)


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
