"""SearchIndex: which tools fit a query. Exact names first, then BM25 over everything that is told of a tool."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import is_

from trysquare.catalog.asking import Asked, asked, is_question
from trysquare.catalog.authored import read_authored
from trysquare.catalog.everyday import Meant, said_nearly
from trysquare.catalog.intents import Intent, agreement, intents_of_request, intents_of_tool
from trysquare.catalog.schema_parts import as_list, properties_of
from trysquare.catalog.spelling import Spelling
from trysquare.catalog.words import meaning, split_words, synonyms, terms
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject

_SATURATION = 1.2
_LENGTH_SHARE = 0.4
_SYNONYM_NEARNESS = 0.5
_LEAST_MET = 0.5
"""What the best tool must meet, as a share of the request; below it the honest answer is that nothing fits."""
_MUCH = 0.4
"""A tool may meet less of a long request if it meets much: what one rare word tells whole is worth this share."""
_ELSEWHERE_MORE = 0.2
"""But it must meet more where some of the request is about something that no tool here is about."""
_FIRM_SHARE = 0.46
"""Where that is what the request itself is about, or its deed, this share of it must be met, and much is no help."""
_LIGHT = 0.5
"""What something else counts beside a thing that some tool here is about by its own name."""
_PASSING = 0.5
"""A term in passing, such as in a parameter's text, tells less of what a tool is about than one in its name."""
_IMAGINED = 20
"""Tools that are counted as if they were there: in a set of two, every term would stand in half of them."""
_SAID_NEARNESS = 0.6
"""What people say is near to what tools are described with, and not the same."""
_GUESSED = 0.95
"""A word that was probably misspelt; it may as well be another one."""
_FURTHER = 0.7
"""A tool that meets a word in a second way is a better match, but not twice as good a one."""
_LEAST_SHARE = 0.75
"""Verbs of nearly every request tell little about whether a tool fits, but much about which one does."""
_BESIDE = 0.4
"""The share of the best tool's coverage that is enough beside it."""
_GROUP_SCORE, _GROUP_COVERAGE = 0.2, 0.3
"""How far a tool profits from what the other tools of its server meet."""
_EXACT = 1_000.0
_SEPARATOR = "__"
"""Between a server's name and the name of its tool."""

NAME, TRIGGER, USE, DESCRIPTION, CATEGORY, PARAMETER, PARAMETER_TEXT = 3.0, 2.5, 1.5, 1.0, 1.5, 0.8, 0.4


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """A tool that fits a query. Scores compare within one query only."""

    tool: Tool
    score: float


@dataclass(frozen=True, kw_only=True, slots=True)
class _Document:
    tool: Tool
    weights: Mapping[str, float]
    length: float
    does: frozenset[Intent]
    group: str
    """The server that it belongs to, or its category; empty where it stands alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """One thing that a query asks for, and the known terms for it, each with its nearness."""

    weight: float
    """What it counts for when it is told whether anything fits."""
    share: float
    """What it counts for when the fitting ones are ordered."""
    known: list[tuple[str, float]]
    meant: list[Meant]
    is_elsewhere: bool
    """Whether it is known to be about something that no tool here is about."""
    is_firm: bool
    """Whether it is elsewhere and the request itself is about it, or is to have it done."""


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
        """The tools that fit, best first; none if nothing fits well enough. Ties go by name."""
        ranked = sorted(self._fitting(query).items(), key=lambda item: (-item[1], item[0]))
        matches = (Match(tool=self._documents[name].tool, score=round(score, 6)) for name, score in ranked)
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

    def _fitting(self, query: str) -> dict[str, float]:
        """The names that meet enough of a query, each with its score; the exact name above all."""
        wanted = self._wanted(query)
        scores, coverage = self._scores(wanted)
        least = self._least(wanted, max(coverage.values(), default=0.0))
        fitting = {name: score for name, score in scores.items() if coverage[name] >= least}
        to_do = intents_of_request(split_words(query))
        if is_question(query):
            to_do |= {Intent.LOOK}
        fitting = {name: score * agreement(to_do, self._documents[name].does) for name, score in fitting.items()}
        exact = self._names.get(_folded(query), [])
        return {**fitting, **{name: _EXACT + scores.get(name, 0.0) for name in exact}}

    def _least(self, wanted: Sequence[_Wanted], best: float) -> float:
        """The coverage that a tool needs: out of reach where not even the best one is sure enough to be shown."""
        whole = sum(one.weight for one in wanted)
        if not best:
            return math.inf
        if any(one.is_firm for one in wanted):
            is_enough = best / whole >= _FIRM_SHARE
        else:
            is_elsewhere = any(one.is_elsewhere for one in wanted)
            is_enough = best / whole + _MUCH * best / self._rarity("") >= _LEAST_MET + _ELSEWHERE_MORE * is_elsewhere
        # One tool that fits is enough for an answer; then its neighbours are worth seeing beside it.
        return _BESIDE * best if is_enough else math.inf

    def _wanted(self, query: str) -> list[_Wanted]:
        """Each thing that a query asks for: what it weighs, and the known terms that stand for it."""
        things = asked(query)
        wanted = [self._weighed(one, self._known(one)) for one in things]
        if any(one.is_chief and one.is_thing and one.term in self._postings for one in things):
            return [_made_light(one) if one.is_elsewhere and not one.is_firm else one for one in wanted]
        return wanted

    def _weighed(self, one: Asked, known: list[tuple[str, float]]) -> _Wanted:
        said = one.stands_for if known or one.stands_for else said_nearly(one.term)
        meant = [each for each in said if any(term in self._postings for term in each.about)]
        is_elsewhere = bool(one.stands_for) and not meant
        if is_elsewhere and one.is_saying:
            known = []
        against = one.elsewhere_weight if is_elsewhere else one.unknown_weight
        weight = one.weight if known or meant else against
        share = one.weight if one.is_slight else max(one.weight, _LEAST_SHARE)
        is_elsewhere = is_elsewhere and not known and not one.is_slight_elsewhere
        return _Wanted(
            weight=self._rarity(one.term) * weight,
            share=share,
            known=known,
            meant=meant,
            is_elsewhere=is_elsewhere,
            is_firm=(is_elsewhere and one.is_firm_elsewhere) or (one.is_deed and not known and not meant),
        )

    def _known(self, one: Asked) -> list[tuple[str, float]]:
        own = [(term, 1.0) for term in one.own if term in self._postings]
        alike = [(other, _SYNONYM_NEARNESS) for other in synonyms(one.term) if other in self._postings]
        if own or alike or one.stands_for:
            return own + alike
        return [(guess.term, _GUESSED * guess.nearness) for guess in self._spelling.guesses(one.term)]

    def _scores(self, wanted: Sequence[_Wanted]) -> tuple[dict[str, float], dict[str, float]]:
        """Of every tool that meets a term: its score, and how much of the query it meets."""
        scores: dict[str, float] = {}
        coverage: dict[str, float] = {}
        group_scores: dict[str, float] = {}
        group_coverage: dict[str, float] = {}
        for one in wanted:
            met = self._met(one)
            gains = {name: gain * one.share for name, (gain, _) in met.items()}
            covered = {name: sure * one.weight for name, (_, sure) in met.items()}
            _add_up(scores, gains)
            _add_up(coverage, covered)
            _add_up(group_scores, self._best_of_groups(gains))
            _add_up(group_coverage, self._best_of_groups(covered))
        self._lean(scores, group_scores, _GROUP_SCORE)
        self._lean(coverage, group_coverage, _GROUP_COVERAGE)
        return scores, coverage

    def _best_of_groups(self, values: Mapping[str, float]) -> dict[str, float]:
        best: dict[str, float] = {}
        for name, value in values.items():
            group = self._documents[name].group
            if group and value > best.get(group, 0.0):
                best[group] = value
        return best

    def _lean(self, values: dict[str, float], groups: Mapping[str, float], share: float) -> None:
        """Let each tool profit from what the others of its server meet: the words point to the server first."""
        for name, value in values.items():
            group = groups.get(self._documents[name].group, value)
            values[name] = value + share * (group - value)

    def _met(self, one: _Wanted) -> dict[str, tuple[float, float]]:
        """Of every tool that meets one wanted thing, in the best way: the gain, and how surely it is met."""
        best = self._best(one.known)
        for meant in one.meant:
            about = self._best([(term, _SAID_NEARNESS) for term in meant.about])
            further = self._best([(term, _SAID_NEARNESS) for term in meant.further])
            for name, (gain, met) in about.items():
                told = gain + _FURTHER * further.get(name, (0.0, 0.0))[0]
                known = best.get(name, (0.0, 0.0))
                best[name] = max(told, known[0]), max(met, known[1])
        return best

    def _best(self, terms: Iterable[tuple[str, float]]) -> dict[str, tuple[float, float]]:
        best: dict[str, tuple[float, float]] = {}
        for term, nearness in terms:
            for name, gain, met in self._gains(term, nearness):
                if gain > best.get(name, (0.0, 0.0))[0]:
                    best[name] = gain, met
        return best

    def _gains(self, term: str, nearness: float) -> Iterator[tuple[str, float, float]]:
        """Of every tool that holds a term: what it adds to the score, and how surely the tool is about it."""
        factor = nearness * self._rarity(term) * (_SATURATION + 1)
        mean = self._length / len(self._documents)
        for name, weight in self._postings.get(term, {}).items():
            norm = 1 - _LENGTH_SHARE + _LENGTH_SHARE * self._documents[name].length / mean
            yield name, factor * weight / (weight + _SATURATION * norm), nearness * weight / (weight + _PASSING)

    def _rarity(self, term: str) -> float:
        holding = len(self._postings.get(term, ()))
        return math.log(1 + (len(self._documents) + _IMAGINED - holding + 0.5) / (holding + 0.5))

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


def _made_light(one: _Wanted) -> _Wanted:
    """What is beside a thing that some tool here is about by name: the price of the `yoga course` is a price."""
    return replace(one, weight=_LIGHT * one.weight, is_elsewhere=False)


def _add_up(sums: dict[str, float], values: Mapping[str, float]) -> None:
    for name, value in values.items():
        sums[name] = sums.get(name, 0.0) + value


def _document(tool: Tool) -> _Document:
    weights: dict[str, float] = {}
    length = 0.0
    for text, weight in _fields(tool):
        for term in terms(text):
            weights[term] = weights.get(term, 0.0) + weight
            length += weight
    server, separator, own_name = tool.name.partition(_SEPARATOR)
    does = intents_of_tool(split_words(own_name or server))
    group = tool.metadata.category or (server if separator else "")
    return _Document(tool=tool, weights=weights, length=max(length, 1.0), does=does, group=group)


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
