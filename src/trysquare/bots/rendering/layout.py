"""Layout of a story map: epics as the backbone, their steps below, stories in rows by increment. Numbers only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trysquare.bots.graph.nodes import Graph, Node, children, stories_of
from trysquare.bots.rendering.progress import summary_of
from trysquare.bots.rendering.views import in_order, in_priority
from trysquare.bots.rendering.wrapping import wrap

MARGIN, LABELS, CARD, GAP, PADDING = 28.0, 200.0, 176.0, 10.0, 9.0
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 14.0, 13.0, 11.0
LINE = 1.3
BOLD = 1.08
"""How much wider bold letters are."""
MIN_CARD, MIN_ROW = 52.0, 76.0
PIPS = 46.0
"""The room at the foot of a card for the dots that tell how far the story is."""
UNPLANNED = "Not planned yet"


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """A rectangle with its texts."""

    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...] = ()
    small: tuple[str, ...] = ()
    """Lines in small print below."""
    node: Node | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Band:
    """A row of the map: an increment, or the stories that are in none."""

    box: Box
    label: Box
    name: str
    number: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoryMap:
    """Where everything is."""

    width: float
    height: float
    title: Box
    epics: tuple[Box, ...]
    steps: tuple[Box, ...]
    bands: tuple[Band, ...]
    stories: tuple[Box, ...]


@dataclass(slots=True)
class Column:
    """The stories directly below one epic or sub-epic."""

    owner: Node
    x: float
    """Where it begins on the picture."""
    rows: dict[int, list[Node]] = field(default_factory=dict[int, list[Node]])
    """The stories by the row that they stand in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """The map as rows and columns, before anything has a size."""

    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Any] | None, ...]
    """The increments by priority; None stands for the stories that are in none."""


def grid_of(graph: Graph) -> Grid:
    """The rows and columns of a graph's map."""
    increments = in_priority(graph)
    columns = _columns(graph, _rows(increments), len(increments))
    unplanned = any(len(increments) in column.rows for column in columns)
    return Grid(columns=tuple(columns), rows=(*increments, *([None] if unplanned or not increments else [])))


def lay_out(graph: Graph) -> StoryMap:
    """The map of a graph."""
    grid = grid_of(graph)
    columns = grid.columns
    width = max(MARGIN * 2 + LABELS + GAP + len(columns) * (CARD + GAP), 760.0)
    title = _title(graph, width)
    epics, steps, top = _headers(graph, columns, title.y + title.height + 22)
    bands, stories, bottom = _bands(grid.rows, columns, top + GAP, width)
    return StoryMap(
        width=width,
        height=bottom + MARGIN,
        title=title,
        epics=tuple(epics),
        steps=tuple(steps),
        bands=tuple(bands),
        stories=tuple(stories),
    )


def _title(graph: Graph, width: float) -> Box:
    goal = wrap(str(graph.get("goal", "")), width - 2 * MARGIN - 370, TITLE_SIZE, lines=3)
    name = wrap(str(graph.get("product") or "Story map"), width - 2 * MARGIN - 370, 24, lines=1)
    height = max(52.0, 34 + len(goal) * TITLE_SIZE * LINE)
    return Box(x=MARGIN, y=MARGIN, width=width, height=height, lines=tuple(name), small=tuple(goal))


def _rows(increments: list[Mapping[str, Any]]) -> dict[str, int]:
    rows: dict[str, int] = {}
    for row, increment in enumerate(increments):
        for name in increment.get("stories", ()):
            rows.setdefault(str(name), row)
    return rows


def _columns(graph: Graph, rows: Mapping[str, int], rest: int) -> list[Column]:
    columns: list[Column] = []
    for owner in _owners(Node(kind="graph", value=graph, pointer=(), address=())):
        column = Column(owner, MARGIN + LABELS + GAP + len(columns) * (CARD + GAP))
        for story in in_order(stories_of(owner)):
            column.rows.setdefault(rows.get(story.name, rest), []).append(story)
        columns.append(column)
    return columns


def _owners(node: Node) -> list[Node]:
    """The epics and sub-epics that have a column: those with stories, and those with nothing below them."""
    found: list[Node] = []
    for child in children(node):
        if child.kind == "story":
            continue
        below = children(child)
        if not below or any(each.kind == "story" for each in below):
            found.append(child)
        found.extend(_owners(child))
    return found


def _headers(graph: Graph, columns: Sequence[Column], top: float) -> tuple[list[Box], list[Box], float]:
    """A box for each epic over its columns, and below it one for each sub-epic, level by level."""
    boxes: dict[int, list[Box]] = {}
    depth = max((len(column.owner.address) for column in columns), default=1)
    for level in range(1, depth + 1):
        level_boxes: list[Box] = []
        for node in _at_level(Node(kind="graph", value=graph, pointer=(), address=()), level):
            spans = [column.x for column in columns if column.owner.address[:level] == node.address]
            if spans:
                level_boxes.append(_header(node, min(spans), max(spans) + CARD - min(spans)))
        height = max((box.height for box in level_boxes), default=0.0)
        boxes[level] = [_placed(box, top, height) for box in level_boxes]
        top += height + GAP * 0.7
    return boxes.get(1, []), [box for level in sorted(boxes) if level > 1 for box in boxes[level]], top


def _at_level(node: Node, level: int) -> list[Node]:
    below = [each for each in children(node) if each.kind != "story"]
    return below if level == 1 else [each for child in below for each in _at_level(child, level - 1)]


def _header(node: Node, x: float, width: float) -> Box:
    inner = width - 2 * PADDING
    lines = tuple(wrap(node.name, inner / BOLD, TITLE_SIZE, lines=3))
    small = tuple(wrap(str(node.value.get("outcome", "")), inner, SMALL_SIZE, lines=4))
    height = 2 * PADDING + len(lines) * TITLE_SIZE * LINE + len(small) * SMALL_SIZE * LINE + (3 if small else 0)
    return Box(x=x, y=0, width=width, height=height, lines=lines, small=small, node=node)


def _placed(box: Box, y: float, height: float) -> Box:
    return Box(x=box.x, y=y, width=box.width, height=height, lines=box.lines, small=box.small, node=box.node)


def _bands(
    rows: Sequence[Mapping[str, Any] | None], columns: Sequence[Column], top: float, width: float
) -> tuple[list[Band], list[Box], float]:
    bands: list[Band] = []
    stories: list[Box] = []
    for row, increment in enumerate(rows):
        label = _label(increment, [story for column in columns for story in column.rows.get(row, ())])
        cards = [_stack(column, row, top + GAP) for column in columns]
        tallest = max((stack[-1].y + stack[-1].height - top for stack in cards if stack), default=0.0)
        height = max(MIN_ROW, label.height + 2 * GAP, tallest + GAP)
        box = Box(x=MARGIN, y=top, width=width - 2 * MARGIN, height=height)
        name = UNPLANNED if increment is None else str(increment["name"])
        number = "" if increment is None else str(row + 1)
        bands.append(Band(box=box, label=_placed(label, top + GAP, label.height), name=name, number=number))
        stories += [card for stack in cards for card in stack]
        top += height + GAP * 0.8
    return bands, stories, top


def _label(increment: Mapping[str, Any] | None, stories: Sequence[Node]) -> Box:
    name = UNPLANNED if increment is None else str(increment["name"])
    outcome = "" if increment is None else str(increment.get("outcome", ""))
    inner = LABELS - 2 * PADDING
    lines = tuple(wrap(name, (inner - 26) / BOLD, TITLE_SIZE, lines=4))
    summary = wrap(summary_of(story.value for story in stories), inner, SMALL_SIZE, lines=3)
    small = (*wrap(outcome, inner, SMALL_SIZE, lines=5), *summary)
    height = max(24.0, len(lines) * TITLE_SIZE * LINE) + len(small) * SMALL_SIZE * LINE + 6
    return Box(x=MARGIN + PADDING, y=0, width=LABELS, height=height, lines=lines, small=small)


def _stack(column: Column, row: int, top: float) -> list[Box]:
    stack: list[Box] = []
    for story in column.rows.get(row, ()):
        card = _card(story, column.x)
        stack.append(_placed(card, top, card.height))
        top += card.height + GAP * 0.8
    return stack


def _card(story: Node, x: float) -> Box:
    inner = CARD - 2 * PADDING - 6
    lines = tuple(wrap(story.name, inner, TEXT_SIZE, lines=5))
    small = tuple(wrap(", ".join(story.value.get("users") or ()), inner - PIPS, SMALL_SIZE, lines=2))
    below = max(1, len(small)) * SMALL_SIZE * LINE
    height = max(MIN_CARD, 2 * PADDING + len(lines) * TEXT_SIZE * LINE + below + 4)
    return Box(x=x, y=0, width=CARD, height=height, lines=lines, small=small, node=story)
