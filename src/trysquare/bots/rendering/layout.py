"""Layout of a story map: columns, rows, text wrapping, progress."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trysquare.bots.graph.graph import Graph, Node, children, stories_of
from trysquare.bots.rendering.template import in_order, in_priority

STAGES = ("criteria", "scenarios", "tests", "code")


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """Progress of a story: the count of each stage."""

    counts: tuple[int, ...]

    @property
    def reached(self) -> tuple[bool, ...]:
        return tuple(count > 0 for count in self.counts)

    def __str__(self) -> str:
        words = [_WORDS[stage](count) for stage, count in zip(STAGES, self.counts, strict=True) if count]
        return ", ".join(words) if words else "a name so far"


_WORDS: dict[str, Callable[[int], str]] = {
    "criteria": lambda count: f"{count} criteri{'on' if count == 1 else 'a'}",
    "scenarios": lambda count: f"{count} scenario{'' if count == 1 else 's'}",
    "tests": lambda count: "a test file",
    "code": lambda count: f"{count} code file{'' if count == 1 else 's'}",
}


def progress_of(story: Mapping[str, Any]) -> Progress:
    return Progress(
        counts=(
            len(story.get("acceptance_criteria") or ()),
            len(story.get("scenarios") or ()),
            1 if story.get("test_file") else 0,
            len(story.get("code_files") or ()),
        )
    )


def summary_of(stories: Iterable[Mapping[str, Any]]) -> str:
    """Progress of several stories in a few words."""
    found = [progress_of(story).reached for story in stories]
    if not found:
        return "no story yet"
    by_stage = zip(STAGES, zip(*found, strict=True), strict=True)
    stages = [f"{sum(each)} with {stage}" for stage, each in by_stage if any(each)]
    return ", ".join([f"{len(found)} stor{'y' if len(found) == 1 else 'ies'}", *stages])


_NARROW = frozenset("iljtfrI.,:;'|!()[] ")
_WIDE = frozenset("mwMW@%&—")


def width_of(text: str, size: float) -> float:
    """Approximate width of a text in common sans-serif fonts."""
    return sum(_letter(letter) for letter in text) * size * 1.08


def _letter(letter: str) -> float:
    if letter in _NARROW:
        return 0.32
    if letter in _WIDE:
        return 0.88
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    return 0.68 if letter.isupper() else 0.56


def wrap(text: str, width: float, size: float, *, lines: int) -> list[str]:
    """Wrap to a number of lines; a longer text ends in `…`."""
    wrapped: list[str] = []
    current = ""
    for word in (piece for whole in text.split() for piece in _pieces(whole, width, size)):
        longer = f"{current} {word}" if current else word
        if current and width_of(longer, size) > width:
            wrapped.append(current)
            current = word
        else:
            current = longer
    wrapped += [current] if current else []
    if len(wrapped) <= lines:
        return wrapped
    return [*wrapped[: lines - 1], _ended(wrapped[lines - 1], width, size)]


def _pieces(word: str, width: float, size: float) -> list[str]:
    pieces = [""]
    for letter in word:
        if pieces[-1] and width_of(pieces[-1] + letter, size) > width:
            pieces.append("")
        pieces[-1] += letter
    return pieces


def _ended(text: str, width: float, size: float) -> str:
    while text and width_of(f"{text}…", size) > width:
        text = text[:-1]
    return f"{text.rstrip()}…"


MARGIN, LABELS, CARD, GAP, PADDING = 28.0, 200.0, 176.0, 10.0, 9.0
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 14.0, 13.0, 11.0
LINE = 1.3
BOLD = 1.08
MIN_CARD, MIN_ROW = 52.0, 76.0
PIPS = 46.0
"""Width of the progress dots of a card."""
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
    """Lines in small print."""
    node: Node | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Band:
    """A row of the map: an increment, or the unplanned stories."""

    box: Box
    label: Box
    name: str
    number: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoryMap:
    """Boxes of a story map."""

    width: float
    height: float
    title: Box
    epics: tuple[Box, ...]
    steps: tuple[Box, ...]
    bands: tuple[Band, ...]
    stories: tuple[Box, ...]


@dataclass(slots=True)
class Column:
    """The stories directly below one epic or sub-epic, by row."""

    owner: Node
    x: float
    rows: dict[int, list[Node]] = field(default_factory=dict[int, list[Node]])


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """Rows and columns of the map, without sizes."""

    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Any] | None, ...]
    """Increments by priority; None for unplanned stories."""


def grid_of(graph: Graph) -> Grid:
    increments = in_priority(graph)
    columns = _columns(graph, _rows(increments), len(increments))
    unplanned = any(len(increments) in column.rows for column in columns)
    return Grid(columns=tuple(columns), rows=(*increments, *([None] if unplanned or not increments else [])))


def lay_out(graph: Graph) -> StoryMap:
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
    """The epics and sub-epics with a column: those with stories, and those without children."""
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
    """Boxes of the epics over their columns, and of the sub-epics below, level by level."""
    boxes: dict[int, list[Box]] = {}
    depth = max((len(column.owner.address) for column in columns), default=1)
    for level in range(1, depth + 1):
        level_boxes: list[Box] = []
        for node in _at_level(Node(kind="graph", value=graph, pointer=(), address=()), level):
            spans = [column.x for column in columns if column.owner.address[:level] == node.address]
            if spans:
                level_boxes.append(_header(node, min(spans), max(spans) + CARD - min(spans)))
        height = max((box.height for box in level_boxes), default=0.0)
        boxes[level] = [replace(box, y=top, height=height) for box in level_boxes]
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
        bands.append(Band(box=box, label=replace(label, y=top + GAP), name=name, number=number))
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
        stack.append(replace(card, y=top))
        top += card.height + GAP * 0.8
    return stack


def _card(story: Node, x: float) -> Box:
    inner = CARD - 2 * PADDING - 6
    lines = tuple(wrap(story.name, inner, TEXT_SIZE, lines=5))
    small = tuple(wrap(", ".join(story.value.get("users") or ()), inner - PIPS, SMALL_SIZE, lines=2))
    below = max(1, len(small)) * SMALL_SIZE * LINE
    height = max(MIN_CARD, 2 * PADDING + len(lines) * TEXT_SIZE * LINE + below + 4)
    return Box(x=x, y=0, width=CARD, height=height, lines=lines, small=small, node=story)
