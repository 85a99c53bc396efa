"""Scores: how many answers are right, for each way and set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean

from benchmarks.tables import Table
from evals.asking import plain_calls
from evals.intervals import wilson
from evals.kept import KeptAnswer
from evals.questions import SETS, Question
from evals.ways import NATIVE, read_calls
from trysquare.core.json import JsonObject

TOTAL = "all"
READ = "llama.cpp's own tool calling, calls in its text read by Trysquare"


@dataclass(slots=True)
class Score:
    """How many of so many were right."""

    right: int = 0
    asked: int = 0

    def add(self, is_right: bool) -> None:
        """Count one more."""
        self.right += is_right
        self.asked += 1

    def __str__(self) -> str:
        low, high = wilson(self.right, self.asked)
        return f"{self.right} of {self.asked} ({low:.0%} to {high:.0%})"


@dataclass(slots=True)
class Scores:
    """What came of the questions, by way and by set."""

    by_way: dict[str, dict[str, Score]] = field(default_factory=dict[str, dict[str, Score]])
    seconds: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    failed: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, question: Question, answer: KeptAnswer, is_right: bool) -> None:
        """Count an answer in its set and in the total."""
        own = self.by_way.setdefault(answer.way, {name: Score() for name in (*SETS, TOTAL)})
        own[question.set].add(is_right)
        own[TOTAL].add(is_right)
        self.seconds.setdefault(answer.way, []).append(answer.seconds)
        self.failed[answer.way] = self.failed.get(answer.way, 0) + (answer.problem is not None)


Check = Callable[[Question, Sequence[JsonObject]], bool]


Answered = Iterable[tuple[Question, dict[str, KeptAnswer]]]


def with_text_read(answered: Answered) -> Iterator[tuple[Question, dict[str, KeptAnswer]]]:
    """One more way: what llama.cpp wrote and did not read as a call itself, read from its text as the agents do it."""
    for question, answers in answered:
        native = answers[NATIVE]
        calls = native.calls or plain_calls(read_calls(question, native.text))
        yield question, {**answers, READ: replace(native, way=READ, calls=calls)}


def score(answered: Answered, check: Check) -> Scores:
    """Check every answer against its question."""
    scores = Scores()
    for question, answers in answered:
        for answer in answers.values():
            scores.add(question, answer, check(question, answer.calls))
    return scores


def score_tables(model: str, scores: Scores) -> Iterator[Table]:
    """The ways side by side."""
    if not scores.by_way:
        return
    head = ["way", *SETS, TOTAL, "no answer", "seconds a question"]
    rows = [
        [way, *map(str, own.values()), str(scores.failed[way]), f"{mean(scores.seconds[way]):.1f}"]
        for way, own in scores.by_way.items()
    ]
    yield Table(title=f"Right answers of {model}, with 95 % intervals", head=head, rows=rows)
