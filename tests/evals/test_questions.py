"""Questions are read by turns from each set, and their functions become tools with closed schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evals import questions
from evals.questions import SETS, closed_schema, read_questions


def question(name: str, number: int) -> dict[str, Any]:
    function = {
        "name": "maths.area",
        "description": "The area.",
        "parameters": {"type": "dict", "properties": {"base": {"type": "float"}}, "required": ["base"]},
    }
    turns = [[{"role": "user", "content": f"What is the area of {number}?"}]]
    return {"id": f"{name}_{number}", "question": turns, "function": [function]}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    (folder / "possible_answer").mkdir(parents=True)
    for name in SETS.values():
        asked = [question(name, number) for number in range(3)]
        right = [{"id": each["id"], "ground_truth": [{"maths.area": {"base": [1.0]}}]} for each in reversed(asked)]
        file = f"BFCL_v4_{name}.json"
        (folder / file).write_text("\n".join(map(json.dumps, asked)) + "\n", encoding="utf-8")
        (folder / "possible_answer" / file).write_text("\n".join(map(json.dumps, right)), encoding="utf-8")
    monkeypatch.setattr(questions, "files", lambda _: tmp_path)
    return tmp_path


def test_the_first_questions_of_each_set_come_by_turns(package: Path) -> None:
    assert [each.id for each in read_questions(2)] == [
        "simple_python_0",
        "multiple_0",
        "parallel_0",
        "simple_python_1",
        "multiple_1",
        "parallel_1",
    ]
    assert len(read_questions(50)) == 9


def test_a_question_is_joined_with_its_own_answer_and_its_functions_become_tools(package: Path) -> None:
    [first] = read_questions(1, sets=["simple"])
    assert (first.set, first.text, first.right) == (
        "simple",
        "What is the area of 0?",
        ({"maths.area": {"base": [1.0]}},),
    )
    [offer] = first.offers
    assert offer.name == "maths_area"
    assert offer.schema == {
        "type": "object",
        "properties": {"base": {"type": "number"}},
        "required": ["base"],
        "additionalProperties": False,
    }


def test_schemas_are_closed_all_the_way_down() -> None:
    told = {
        "type": "array",
        "description": "Rows.",
        "items": {
            "type": "dict",
            "properties": {
                "at": {"type": "tuple", "items": {"type": "any", "optional": True}},
                "free": {"type": "dict"},
            },
            "required": ["at", "gone"],
        },
    }
    assert closed_schema(told) == {
        "type": "array",
        "description": "Rows.",
        "items": {
            "type": "object",
            "properties": {"at": {"type": "array", "items": {"type": "string"}}, "free": {"type": "object"}},
            "required": ["at"],
            "additionalProperties": False,
        },
    }
