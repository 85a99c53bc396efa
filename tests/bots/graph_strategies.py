"""Story graphs for Hypothesis: small, of every shape that the schema allows, with names that people would not use."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

NAMES = st.text(alphabet="abcdeéß漢 -.*_#[]()'\"<&", min_size=1, max_size=12).map(str.strip).filter(bool)
SENTENCES = st.text(alphabet="abc dé.,*'\"<&\n", max_size=24)


@st.composite
def graphs(draw: st.DrawFn, *, names: st.SearchStrategy[str] = NAMES) -> dict[str, Any]:
    """A graph that keeps the schema and its promises."""
    pool = draw(st.lists(names, unique=True, min_size=12, max_size=24))
    fresh = iter(pool)
    stories: list[str] = []
    epics = [_epic(draw, fresh, stories, 2) for _ in range(draw(st.integers(0, 3)))]
    epics = [epic for epic in epics if epic]
    increments = [
        {
            "name": f"Increment {number}",
            "priority": number,
            "stories": draw(st.lists(st.sampled_from(stories), unique=True, max_size=4)) if stories else [],
        }
        for number in range(1, draw(st.integers(0, 2)) + 1)
    ]
    return {"schema": 1, "product": draw(names), "goal": draw(SENTENCES), "epics": epics, "increments": increments}


def _epic(draw: st.DrawFn, fresh: Any, stories: list[str], depth: int) -> dict[str, Any]:
    name = next(fresh, None)
    if name is None:
        return {}
    epic: dict[str, Any] = {"name": name}
    if draw(st.booleans()):
        epic["outcome"] = draw(SENTENCES)
    if depth and draw(st.booleans()):
        below = [_epic(draw, fresh, stories, depth - 1) for _ in range(draw(st.integers(0, 2)))]
        epic["sub_epics"] = [each for each in below if each]
    made = [_story(draw, each) for each in (next(fresh, None) for _ in range(draw(st.integers(0, 3)))) if each]
    stories.extend(each["name"] for each in made)
    if made and draw(st.booleans()):
        epic["story_groups"] = [{"type": "and", "stories": made[1:]}]
        made = made[:1]
    epic["stories"] = made
    return copy.deepcopy(epic)


def _story(draw: st.DrawFn, name: str) -> dict[str, Any]:
    story: dict[str, Any] = {"name": name}
    if draw(st.booleans()):
        story["sequential_order"] = draw(st.integers(1, 5))
    if draw(st.booleans()):
        story["users"] = draw(st.lists(NAMES, max_size=2))
    if draw(st.booleans()):
        when = draw(st.lists(NAMES, unique=True, max_size=2))
        story["acceptance_criteria"] = [{"when": each, "then": draw(SENTENCES)} for each in when]
    if draw(st.booleans()):
        story["scenarios"] = [
            {"name": each, "type": "main", "steps": draw(st.lists(SENTENCES, max_size=2))}
            for each in draw(st.lists(NAMES, unique=True, max_size=2))
        ]
    return story
