"""A question that was answered is not asked again; only what was answered in every way is scored."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from evals.asking import Deadline, answered_in_all, ask_all
from evals.kept import AnswerFile
from evals.questions import Question
from evals.scores import READ, score, score_tables, with_text_read
from evals.ways import NATIVE, Answered, AnswerLost, Way
from trysquare.core.json import JsonObject
from trysquare.models import CallRequest

FUNCTION: JsonObject = {
    "name": "area",
    "description": "The area.",
    "parameters": {"type": "dict", "properties": {"base": {"type": "integer"}}, "required": ["base"]},
}
RIGHT = CallRequest(id="1", name="area", arguments={"base": 1})
TEXT = '```json\n{"name": "area", "arguments": {"base": 1}}\n```'


def question(set: str, number: int) -> Question:
    right = ({"area": {"base": [1]}},)
    return Question(id=f"{set}_{number}", set=set, text=f"Question {number}", functions=(FUNCTION,), right=right)


QUESTIONS = [question("simple", 0), question("multiple", 0), question("parallel", 0), question("simple", 1)]


class Asked:
    """Ways that remember what they were asked: one is right, one writes a call as text, one fails."""

    def __init__(self, prompt: str = "one") -> None:
        self.asked: list[tuple[str, str]] = []
        self.ways = [
            self._way("ours", prompt, Answered(calls=(RIGHT,))),
            self._way(NATIVE, prompt, Answered(calls=(), text=TEXT)),
            self._way("failing", prompt, None),
        ]

    def _way(self, name: str, prompt: str, answer: Answered | None) -> Way:
        async def ask(question: Question) -> Answered:
            self.asked.append((name, question.id))
            if answer is None:
                raise AnswerLost("the server is gone")
            return answer

        return Way(name=name, plan=lambda question: {"prompt": prompt, "text": question.text}, ask=ask)


def is_right(question: Question, calls: Sequence[JsonObject]) -> bool:
    return list(calls) == [{"name": "area", "args": {"base": 1}}]


async def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "answers.jsonl"
    first = Asked()
    await ask_all("m", QUESTIONS[:2], first.ways, AnswerFile(path), Deadline())
    path.write_bytes(path.read_bytes()[:-20])
    second = Asked()
    await ask_all("m", QUESTIONS[:3], second.ways, AnswerFile(path), Deadline())
    assert len(first.asked) == 6
    assert second.asked == [
        ("failing", "multiple_0"),
        ("ours", "parallel_0"),
        (NATIVE, "parallel_0"),
        ("failing", "parallel_0"),
    ]
    third = Asked()
    await ask_all("m", QUESTIONS[:3], third.ways, AnswerFile(path), Deadline())
    assert third.asked == []


async def test_another_prompt_or_model_is_asked_anew(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    await ask_all("m", QUESTIONS[:1], Asked().ways, AnswerFile(path), Deadline())
    for model, prompt in (("m", "two"), ("n", "one")):
        other = Asked(prompt)
        await ask_all(model, QUESTIONS[:1], other.ways, AnswerFile(path), Deadline())
        assert len(other.asked) == 3
    assert AnswerFile(path).models == ["m", "n"]


async def test_nothing_is_asked_after_the_deadline(tmp_path: Path) -> None:
    late = Asked()
    await ask_all("m", QUESTIONS, late.ways, AnswerFile(tmp_path / "a.jsonl"), Deadline(at=time.monotonic()))
    assert late.asked == []


async def test_only_questions_that_were_answered_in_all_ways_are_scored(tmp_path: Path) -> None:
    kept, asked = AnswerFile(tmp_path / "answers.jsonl"), Asked()
    await ask_all("m", QUESTIONS[:3], asked.ways, kept, Deadline())
    await ask_all("m", QUESTIONS[3:], asked.ways[:1], kept, Deadline())
    answered = with_text_read(answered_in_all("m", QUESTIONS, asked.ways, kept))
    scores = score(answered, is_right)
    assert {way: (own["all"].right, own["all"].asked) for way, own in scores.by_way.items()} == {
        "ours": (3, 3),
        NATIVE: (0, 3),
        "failing": (0, 3),
        READ: (3, 3),
    }
    assert scores.failed == {"ours": 0, NATIVE: 0, "failing": 3, READ: 0}
    [table] = score_tables("m", scores)
    assert table.rows[0][:5] == ["ours", *["1 of 1 (21% to 100%)"] * 3, "3 of 3 (44% to 100%)"]


def test_nothing_measured_is_no_table() -> None:
    assert list(score_tables("m", score([], is_right))) == []
