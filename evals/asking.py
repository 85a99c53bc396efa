"""Asking: every question in every way, unless its answer is kept already."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from evals.kept import AnswerFile, KeptAnswer, digest
from evals.questions import Question
from evals.ways import Answered, AnswerLost, Way
from trysquare.core.errors import ToolError
from trysquare.core.json import JsonObject
from trysquare.models import CallRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class Deadline:
    """When no further question is asked; None for never."""

    at: float | None = None

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """So many seconds from now."""
        return cls(at=None if seconds is None else time.monotonic() + seconds)

    @property
    def is_over(self) -> bool:
        """Whether it is time to stop."""
        return self.at is not None and time.monotonic() >= self.at


async def ask_all(
    model: str, questions: Sequence[Question], ways: Sequence[Way], kept: AnswerFile, deadline: Deadline
) -> None:
    """One way after another for each question, so that a run that is stopped has the same questions in all of them."""
    for number, question in enumerate(questions, start=1):
        if deadline.is_over:
            return
        for way in ways:
            asked = digest(way.plan(question))
            if kept.find(model, way.name, question.id, asked) is None:
                kept.keep(await _ask(model, question, way, asked))
                print(f"{number} of {len(questions)}: {question.id}, {way.name}", file=sys.stderr)


async def _ask(model: str, question: Question, way: Way, asked: str) -> KeptAnswer:
    started = time.perf_counter()
    answered, problem = Answered(calls=()), None
    try:
        answered = await way.ask(question)
    except (AnswerLost, ToolError) as error:
        problem = str(error)
    return KeptAnswer(
        model=model,
        way=way.name,
        question=question.id,
        asked=asked,
        calls=plain_calls(answered.calls),
        text=answered.text,
        problem=problem,
        seconds=round(time.perf_counter() - started, 2),
    )


def plain_calls(calls: Iterable[CallRequest]) -> tuple[JsonObject, ...]:
    """Calls as they are kept and checked."""
    return tuple({"name": call.name, "args": call.arguments} for call in calls)


def answered_in_all(
    model: str, questions: Sequence[Question], ways: Sequence[Way], kept: AnswerFile
) -> Iterator[tuple[Question, dict[str, KeptAnswer]]]:
    """The questions that have an answer in every way: only those are compared."""
    for question in questions:
        found = {way.name: kept.find(model, way.name, question.id, digest(way.plan(question))) for way in ways}
        answers = {name: answer for name, answer in found.items() if answer is not None}
        if len(answers) == len(found):
            yield question, answers
