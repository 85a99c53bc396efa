"""The story maps of a run as tables: epics and steps above, increments as rows, stories as cards."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from trysquare.bots.documents.store import expand
from trysquare.bots.graph import Graph, Node, problems_of, walk
from trysquare.bots.rendering.pages import KINDS, STAGES, Column, grid_of, kind_of, progress_of, summary_of
from trysquare.console.boards import MAX_FILE, map_outputs, require_run
from trysquare.core.errors import NotFound
from trysquare.files.root import DirectoryRoot, PathNotAllowed

if TYPE_CHECKING:
    from trysquare.bots.projects import LiveBot

MAX_STORIES = 500
"""Stories of one map on a page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Heading:
    """An epic or one of its steps above its columns; without a name where a step has none below it."""

    name: str
    outcome: str
    span: int
    is_epic: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    """One card: its name, what kind of story it is, and how far it is."""

    name: str
    kind: str
    title: str
    progress: str
    stages: Sequence[tuple[str, bool]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Increment:
    """One row: an increment, or what is in none."""

    name: str
    outcome: str
    cells: Sequence[Sequence[Story]]


@dataclass(frozen=True, kw_only=True, slots=True)
class StoryMap:
    """A story map. `problem` says why there is none to draw."""

    path: str
    product: str = ""
    goal: str = ""
    summary: str = ""
    headings: Sequence[Sequence[Heading]] = ()
    increments: Sequence[Increment] = ()
    problem: str = ""
    more: int = 0


def story_maps(bot: LiveBot, run: str) -> list[StoryMap]:
    """The story maps that the actions of a run have written."""
    require_run(bot, run)
    outputs = dict.fromkeys(map_outputs(bot, run))
    found: list[StoryMap] = []
    with DirectoryRoot(bot.project().root) as folder:
        for path in (each for output in outputs for each in expand(folder, output)):
            try:
                text = folder.read_bytes(path, limit=MAX_FILE).decode("utf-8", "replace")
            except (NotFound, PathNotAllowed):
                continue
            found.append(_map_of(path, text))
    return found


def _map_of(path: str, text: str) -> StoryMap:
    try:
        graph = json.loads(text)
    except ValueError as error:
        return StoryMap(path=path, problem=f"It is not valid JSON: {error}")
    problems = problems_of(graph)
    if problems:
        return StoryMap(path=path, problem=f"It is not a story graph: {problems[0]}")
    return _drawn(path, graph)


def _drawn(path: str, graph: Graph) -> StoryMap:
    grid = grid_of(graph)
    nodes = list(walk(graph))
    stories = [each for each in nodes if each.kind == "story"]
    outcomes = {each.address: str(each.value.get("outcome", "")) for each in nodes if each.kind in ("epic", "sub_epic")}
    deepest = max((len(column.owner.address) for column in grid.columns), default=0)
    left = MAX_STORIES
    increments: list[Increment] = []
    for row, increment in enumerate(grid.rows):
        cells: list[Sequence[Story]] = []
        for column in grid.columns:
            shown = column.rows.get(row, [])[:left]
            left -= len(shown)
            cells.append([_story(each) for each in shown])
        name = "Not planned yet" if increment is None else str(increment.get("name", ""))
        outcome = "" if increment is None else str(increment.get("outcome", ""))
        increments.append(Increment(name=name, outcome=outcome, cells=cells))
    return StoryMap(
        path=path,
        product=str(graph.get("product") or "Story map"),
        goal=str(graph.get("goal", "")),
        summary=summary_of(each.value for each in stories),
        headings=[_headings(grid.columns, level, outcomes) for level in range(1, deepest + 1)],
        increments=increments,
        more=max(0, len(stories) - MAX_STORIES),
    )


def _headings(columns: Sequence[Column], level: int, outcomes: Mapping[tuple[str, ...], str]) -> list[Heading]:
    found: list[Heading] = []
    for address, group in groupby(columns, key=lambda column: column.owner.address[:level]):
        has_name = len(address) == level
        found.append(
            Heading(
                name=address[-1] if has_name else "",
                outcome=outcomes.get(address, "") if has_name else "",
                span=len(list(group)),
                is_epic=level == 1,
            )
        )
    return found


def _story(node: Node) -> Story:
    kind, progress = kind_of(node.value), progress_of(node.value)
    stages = list(zip(STAGES, progress.reached, strict=True))
    return Story(name=node.name, kind=kind, title=KINDS[kind][0], progress=str(progress), stages=stages)
