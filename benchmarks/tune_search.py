"""`make tune-search`: learns the weights of search on training parts, and prints them.

ARGS="--sources DIR" names a directory with clones of HowieHwong/MetaTool and fairyshine/Seal-Tools from GitHub.
What comes out can go into `Weights` in src/trysquare/search/index.py, by hand. Nothing that is measured is read: see
`search_training.py` for the split.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.discovery_sets import DATA, VARIABLE, Entry, auc, fill_index
from benchmarks.search_training import Questions, TrainingSet, read_questions, read_training
from trysquare.search import LEARNED, MiniLM, Ranked, SearchIndex, Vectors, Weights, encoder_file
from trysquare.search.index import AskedWord, Meaning
from trysquare.search.vectors import vectors_folder

if TYPE_CHECKING:
    from trysquare.search.encoder import Matrix

FOUND = 5
START = Weights(
    name=0.5, words=0.1, words_per_part=0.0, most_words=0.3, domain=0.0, likely=0.36, shared=0.25,
    likely_shared=0.75, likely_words=0.2,
)  # fmt: skip
RANKING: Mapping[str, Sequence[float]] = {
    "name": (0.25, 0.35, 0.5, 0.7, 1.0),
    "words": (0.05, 0.1, 0.15, 0.2),
    "words_per_part": (0.0, 0.03, 0.06),
    "most_words": (0.2, 0.3, 0.4),
}
LIKELY: Mapping[str, Sequence[float]] = {
    "domain": (0.0, 0.2, 0.3, 0.4, 0.5, 0.6),
    "likely": (0.32, 0.34, 0.36, 0.38, 0.4),
    "shared": (0.15, 0.25, 0.35, 0.45),
    "likely_shared": (0.65, 0.7, 0.75, 0.8, 0.85),
}
WITHOUT_ENCODER: Mapping[str, Sequence[float]] = {"likely_words": (0.15, 0.2, 0.25, 0.3, 0.35)}
SWEEPS = 2
UNSURE = {"everyday": 83.0, "MetaTool": 63.0}
"""Of what nothing answers, so much has to stay unsure: what is promised, and three points for tools not seen."""
UNSURE_BY_WORDS = {"everyday": 90.0}
"""The same without an encoder, and ten points: words are shared by chance."""

Objective: TypeAlias = Callable[[Weights], float]


class _Remembering(SearchIndex):
    """An index that reads a request once, however often it is weighed."""

    def __init__(self, vectors: Vectors | None) -> None:
        super().__init__(vectors)
        self._said: dict[str, dict[str, float]] = {}
        self._asked: dict[str, list[AskedWord]] = {}
        self._meanings: dict[tuple[str, float], Meaning | None] = {}

    def _by_words(self, query: str, parts: Sequence[str]) -> dict[str, float]:
        if query not in self._said:
            self._said[query] = super()._by_words(query, parts)
        return self._said[query]

    def _wanted(self, part: str) -> list[AskedWord]:
        if part not in self._asked:
            self._asked[part] = super()._wanted(part)
        return self._asked[part]

    def _by_meaning(self, query: str, parts: Sequence[str]) -> Meaning | None:
        key = (query, self.weights.name)
        if key not in self._meanings:
            self._meanings[key] = super()._by_meaning(query, parts)
        return self._meanings[key]


class _Kept(Vectors):
    """Vectors that keep those of every request."""

    def __init__(self) -> None:
        super().__init__(lambda: MiniLM(encoder_file()), folder=vectors_folder())
        self._asked: dict[tuple[str, ...], Matrix | None] = {}

    def of_query(self, texts: tuple[str, ...]) -> Matrix | None:
        if texts not in self._asked:
            self._asked[texts] = super().of_query(texts)
        return self._asked[texts]


@dataclass(slots=True)
class Lesson:
    """A training set with its index, and what it says of weights."""

    training: TrainingSet
    index: SearchIndex
    removed: bool = field(init=False)
    """Whether what nothing answers are its own requests, once their tool is taken away."""

    def __post_init__(self) -> None:
        self.removed = self.training.name == "MetaTool"

    def recall(self) -> float:
        shares = [
            len(wanted & {one.id for one in _nearest(self.index, query)[:FOUND]}) / len(wanted)
            if self.training.name.startswith(("MetaTool", "Seal"))
            else float(any(one.id in wanted for one in _nearest(self.index, query)[:FOUND]))
            for query, wanted in self.training.asked
        ]
        return 100 * sum(shares) / len(shares)

    def likely(self) -> float:
        """Of the right tools among the first, how many are likely."""
        hits = [
            [one for one in _nearest(self.index, query) if one.id in wanted] for query, wanted in self.training.asked
        ]
        found = [any(one.likely for one in each) for each in hits if each]
        return 100 * sum(found) / max(len(found), 1)

    def unsure(self) -> float | None:
        """Of what nothing answers, how often all of the first are unsure; None where there is no such request."""
        asked = [(query, frozenset[str]()) for query in self.training.unanswerable]
        asked += self.training.asked if self.removed else ()
        all_unsure = [not any(one.likely for one in _nearest(self.index, *each)) for each in asked]
        return 100 * sum(all_unsure) / len(asked) if asked else None


def _nearest(index: SearchIndex, query: str, without: frozenset[str] = frozenset()) -> list[Ranked]:
    found: list[Ranked] = []
    for one in index.rank(query):
        if one.id not in without:
            found.append(one)
        if len(found) == FOUND:
            break
    return found


class Learner:
    """Training sets with their indexes, with an encoder or without."""

    def __init__(self, sets: Sequence[TrainingSet], questions: Questions | None, vectors: Vectors | None) -> None:
        self._vectors = vectors
        indexes: dict[int, SearchIndex] = {}
        self.lessons: list[Lesson] = []
        for one in sets:
            if id(one.entries) not in indexes:
                indexes[id(one.entries)] = self._index(one.entries)
            self.lessons.append(Lesson(training=one, index=indexes[id(one.entries)]))
        self._questions = [
            [(text, self._index(entries)) for text, entries in each]
            for each in ((questions.able, questions.unable) if questions is not None else ())
        ]

    def recall(self, weights: Weights) -> float:
        """The mean recall; every request counts once."""
        self._weigh(weights)
        return self._mean(Lesson.recall)

    def confidence(self, weights: Weights) -> float:
        """How many right tools are likely, and how well questions separate; too little unsure weighs ten times."""
        self._weigh(weights)
        return self._mean(Lesson.likely) + 100 * self.separation() - self._missing(UNSURE)

    def separation(self) -> float:
        if not self._questions:
            return 0.0
        able, unable = ([_surest(index, text) for text, index in each] for each in self._questions)
        return auc(able, unable)

    def words_alone(self, weights: Weights) -> float:
        """Without an encoder: how many right tools are likely; too little unsure weighs ten times."""
        self._weigh(weights)
        return self._mean(Lesson.likely) - self._missing(UNSURE_BY_WORDS)

    def print(self, weights: Weights) -> None:
        self._weigh(weights)
        for one in self.lessons:
            unsure = one.unsure()
            print(
                f"  {one.training.name}: recall in {FOUND} {one.recall():.1f}, right ones likely {one.likely():.0f} %"
                + ("" if unsure is None else f", unsure of what nothing answers {unsure:.0f} %")
            )
        if self._questions:
            print(f"  BFCL: AUC {self.separation():.3f}")

    def _missing(self, wanted: Mapping[str, float]) -> float:
        """Ten times the points by which what nothing answers is unsure too rarely."""
        unsure = [(one.unsure(), wanted[one.training.name]) for one in self.lessons if one.training.name in wanted]
        return sum(10 * max(0.0, least - found) for found, least in unsure if found is not None)

    def _mean(self, of: Callable[[Lesson], float]) -> float:
        """The mean of a figure over the sets, weighed by their requests."""
        found = [(of(one), len(one.training.asked)) for one in self.lessons]
        return sum(value * count for value, count in found) / sum(count for _, count in found)

    def _weigh(self, weights: Weights) -> None:
        for index in (*(one.index for one in self.lessons), *(index for each in self._questions for _, index in each)):
            index.weigh(weights)

    def _index(self, entries: Sequence[Entry]) -> SearchIndex:
        return fill_index(_Remembering(self._vectors), entries, self._vectors)


def _surest(index: SearchIndex, text: str) -> float:
    return next((one.confidence for one in index.rank(text)), -1.0)


def climb(start: Weights, grid: Mapping[str, Sequence[float]], objective: Objective) -> Weights:
    """One weight after the other, each at its best value; of equals the first that was found."""
    best, reached = start, objective(start)
    for _ in range(SWEEPS):
        before = best
        for name, values in grid.items():
            for value in values:
                tried = replace(best, **{name: value})
                if tried != best and (result := objective(tried)) > reached + 1e-9:
                    best, reached = tried, result
        if best == before:
            break
    return best


def learn(sets: Sequence[TrainingSet], questions: Questions | None, vectors: Vectors | None) -> Weights:
    """The weights, from the start that stands above; what needs an encoder stays at it without one."""
    words = Learner(sets, None, None)
    weights = climb(START, WITHOUT_ENCODER, words.words_alone)
    if vectors is not None:
        both = Learner(sets, questions, vectors)
        weights = climb(weights, RANKING, both.recall)
        weights = climb(weights, LIKELY, both.confidence)
        print("Words and meaning, on what was learned from:")
        both.print(weights)
    print("Words, on what was learned from:")
    words.print(weights)
    return weights


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tune_search", description=__doc__)
    parser.add_argument("--sources", type=Path, help="directory with clones `MetaTool` and `Seal-Tools`")
    options = parser.parse_args()
    measured = os.environ.get(VARIABLE)
    sets = list(read_training(options.sources, Path(measured) if measured else None))
    wheels = sorted(DATA.glob("bfcl_eval-*.whl"))
    for one in sets:
        print(
            f"{one.name}: {len(one.entries)} tools, {len(one.asked)} requests, "
            f"{len(one.unanswerable)} that nothing answers, digest {one.digest}"
        )
    weights = learn(sets, read_questions(wheels[-1]) if wheels else None, _Kept() if encoder_file().is_file() else None)
    print("\nFor `Weights` in src/trysquare/search/index.py:")
    for name in Weights.__dataclass_fields__:
        value, shipped = getattr(weights, name), getattr(LEARNED, name)
        print(f"    {name}: float = {value:g}" + ("" if value == shipped else f"  # shipped: {shipped:g}"))


if __name__ == "__main__":
    main()
