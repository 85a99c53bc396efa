"""SearchIndex: the tools nearest to a query. Exact names first, then BM25 over everything that is said of a tool."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from operator import is_

from trysquare.catalog.authored import read_authored
from trysquare.catalog.schema_parts import as_list, properties_of
from trysquare.catalog.spelling import Spelling
from trysquare.catalog.words import meaning, split_words, terms
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject

_SATURATION = 1.2
_LENGTH_SHARE = 0.4
_EXACT = 1_000.0

NAME, TRIGGER, USE, DESCRIPTION, CATEGORY, PARAMETER, PARAMETER_TEXT = 3.0, 2.5, 1.5, 1.0, 1.5, 0.8, 0.4
"""What a term counts for by the field that it stands in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """A tool that is near to a query. Scores compare within one query only; 0 means that they share no term."""

    tool: Tool
    score: float


@dataclass(frozen=True, kw_only=True, slots=True)
class _Document:
    tool: Tool
    weights: Mapping[str, float]
    length: float


class SearchIndex:
    """An index over the tools of a set, brought up to date by what changed and nothing else."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: tuple[Tool, ...] = ()
        self._documents: dict[str, _Document] = {}
        self._postings: dict[str, dict[str, float]] = {}
        self._names: dict[str, list[str]] = {}
        self._spelling = Spelling()
        self._vectors: dict[str, dict[str, float]] = {}
        self._length = 0.0
        self.update(tools)

    def __len__(self) -> int:
        return len(self._documents)

    def update(self, tools: Iterable[Tool]) -> None:
        """Take in the present tools: only those that are new, gone or another value than before are looked at."""
        present = tuple(tools)
        if len(present) == len(self._tools) and all(map(is_, present, self._tools)):
            return
        wanted = {tool.name: tool for tool in present}
        for name, document in list(self._documents.items()):
            if wanted.get(name) is not document.tool:
                self._remove(name)
        for name, tool in wanted.items():
            if name not in self._documents:
                self._add(tool)
        self._tools = present
        self._vectors.clear()

    def search(self, query: str, *, limit: int = 5, allowed: Callable[[Tool], bool] | None = None) -> list[Match]:
        """The nearest tools, best first, ties by name: always as many as asked for while there are so many."""
        scores = self._ranked(query)
        ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        rest = ((name, 0.0) for name in sorted(self._documents.keys() - scores.keys()))
        matches = (
            Match(tool=self._documents[name].tool, score=round(score, 6))
            for part in (ranked, rest)
            for name, score in part
        )
        usable = matches if allowed is None else (match for match in matches if allowed(match.tool))
        return list(islice(usable, max(limit, 0)))

    def similarity(self, one: str, other: str) -> float:
        """How alike two tools read, from 0 to 1: the cosine of their weighted terms."""
        first, second = self._vector(one), self._vector(other)
        return min(1.0, sum(weight * second[term] for term, weight in first.items() if term in second))

    def neighbours(self, name: str) -> set[str]:
        """The tools that share a telling term with this one: the only ones that can be alike."""
        telling = (term for term in self._documents[name].weights if len(self._postings[term]) <= _telling(len(self)))
        return {other for term in telling for other in self._postings[term]} - {name}

    def _ranked(self, query: str) -> dict[str, float]:
        """The score of every tool that shares a term with the query; the exact name above all."""
        scores: dict[str, float] = {}
        for term in dict.fromkeys(terms(query) or split_words(query)):
            for known, nearness in self._known(term):
                self._add_gains(scores, known, nearness)
        for name in self._names.get(_folded(query), []):
            scores[name] = _EXACT + scores.get(name, 0.0)
        return scores

    def _known(self, term: str) -> list[tuple[str, float]]:
        """The indexed terms that stand for one of the query: itself, or those that it may be misspelt from."""
        if term in self._postings:
            return [(term, 1.0)]
        return [(guess.term, guess.nearness) for guess in self._spelling.guesses(term)]

    def _add_gains(self, scores: dict[str, float], term: str, nearness: float) -> None:
        factor = nearness * self._rarity(term) * (_SATURATION + 1)
        mean = self._length / len(self._documents)
        for name, weight in self._postings[term].items():
            norm = 1 - _LENGTH_SHARE + _LENGTH_SHARE * self._documents[name].length / mean
            scores[name] = scores.get(name, 0.0) + factor * weight / (weight + _SATURATION * norm)

    def _rarity(self, term: str) -> float:
        holding = len(self._postings.get(term, ()))
        return math.log(1 + (len(self._documents) - holding + 0.5) / (holding + 0.5))

    def _vector(self, name: str) -> dict[str, float]:
        """The tool's terms by meaning, of length one: `fetch` and `get` do not tell two tools apart."""
        if name not in self._vectors:
            vector: dict[str, float] = {}
            for term, weight in self._documents[name].weights.items():
                own = math.sqrt(weight) * (1 + self._rarity(term))
                vector[meaning(term)] = max(own, vector.get(meaning(term), 0.0))
            size = math.sqrt(sum(weight * weight for weight in vector.values())) or 1.0
            self._vectors[name] = {term: weight / size for term, weight in vector.items()}
        return self._vectors[name]

    def _add(self, tool: Tool) -> None:
        document = _document(tool)
        self._documents[tool.name] = document
        self._length += document.length
        self._names.setdefault(_folded(tool.name), []).append(tool.name)
        for term, weight in document.weights.items():
            if term not in self._postings:
                self._postings[term] = {}
                self._spelling.add(term)
            self._postings[term][tool.name] = weight

    def _remove(self, name: str) -> None:
        document = self._documents.pop(name)
        self._length -= document.length
        self._names[_folded(name)].remove(name)
        for term in document.weights:
            del self._postings[term][name]
            if not self._postings[term]:
                del self._postings[term]
                self._spelling.remove(term)


def _document(tool: Tool) -> _Document:
    weights: dict[str, float] = {}
    length = 0.0
    for text, weight in _fields(tool):
        for term in terms(text):
            weights[term] = weights.get(term, 0.0) + weight
            length += weight
    return _Document(tool=tool, weights=weights, length=max(length, 1.0))


def _fields(tool: Tool) -> Iterator[tuple[str, float]]:
    metadata = tool.metadata
    yield tool.name, NAME
    yield tool.title or "", NAME
    yield read_authored(tool.description).description, DESCRIPTION
    yield metadata.category or "", CATEGORY
    yield metadata.use_when or "", USE
    yield " ".join(metadata.trigger_words), TRIGGER
    for name, schema in properties_of(tool.input_schema).items():
        yield name, PARAMETER
        yield _told(schema), PARAMETER_TEXT


def _told(schema: JsonObject) -> str:
    """What a schema says of a parameter: its description and its choices."""
    choices = (choice for choice in as_list(schema.get("enum")) if isinstance(choice, str))
    return " ".join([str(schema.get("description", "")), *choices])


def _folded(name: str) -> str:
    return " ".join(split_words(name))


def _telling(count: int) -> float:
    return max(3.0, 0.2 * count)
