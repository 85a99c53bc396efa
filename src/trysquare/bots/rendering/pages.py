"""Story maps as SVG and HTML, and their layout: columns, rows, text wrapping, progress."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import groupby
from typing import Any

from trysquare.bots.graph import Address, Graph, Node, Pointer, children, stories_of, top_node, walk
from trysquare.bots.rendering.template import in_order, in_priority

STAGES = ("criteria", "scenarios", "tests", "code")


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
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
    number: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoryMap:
    width: float
    height: float
    title: Box
    epics: Sequence[Box]
    steps: Sequence[Box]
    bands: Sequence[Band]
    stories: Sequence[Box]


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
    height = bottom + MARGIN
    return StoryMap(width=width, height=height, title=title, epics=epics, steps=steps, bands=bands, stories=stories)


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
    for owner in _owners(top_node(graph)):
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
        for node in _at_level(top_node(graph), level):
            spans = [column.x for column in columns if column.owner.address[:level] == node.address]
            if spans:
                level_boxes.append(_header_box(node, min(spans), max(spans) + CARD - min(spans)))
        height = max((box.height for box in level_boxes), default=0.0)
        boxes[level] = [replace(box, y=top, height=height) for box in level_boxes]
        top += height + GAP * 0.7
    return boxes.get(1, []), [box for level in sorted(boxes) if level > 1 for box in boxes[level]], top


def _at_level(node: Node, level: int) -> list[Node]:
    below = [each for each in children(node) if each.kind != "story"]
    return below if level == 1 else [each for child in below for each in _at_level(child, level - 1)]


def _header_box(node: Node, x: float, width: float) -> Box:
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
        label = _label_box(increment, [story for column in columns for story in column.rows.get(row, ())])
        cards = [_stack(column, row, top + GAP) for column in columns]
        tallest = max((stack[-1].y + stack[-1].height - top for stack in cards if stack), default=0.0)
        height = max(MIN_ROW, label.height + 2 * GAP, tallest + GAP)
        box = Box(x=MARGIN, y=top, width=width - 2 * MARGIN, height=height)
        number = "" if increment is None else str(row + 1)
        bands.append(Band(box=box, label=replace(label, y=top + GAP), number=number))
        stories += [card for stack in cards for card in stack]
        top += height + GAP * 0.8
    return bands, stories, top


def _row_texts(increment: Mapping[str, Any] | None) -> tuple[str, str]:
    """Name and outcome of a row."""
    return (UNPLANNED, "") if increment is None else (str(increment["name"]), str(increment.get("outcome", "")))


def _label_box(increment: Mapping[str, Any] | None, stories: Sequence[Node]) -> Box:
    name, outcome = _row_texts(increment)
    inner = LABELS - 2 * PADDING
    lines = tuple(wrap(name, (inner - 26) / BOLD, TITLE_SIZE, lines=4))
    summary = wrap(summary_of(story.value for story in stories), inner, SMALL_SIZE, lines=3)
    small = (*wrap(outcome, inner, SMALL_SIZE, lines=5), *summary)
    height = max(24.0, len(lines) * TITLE_SIZE * LINE) + len(small) * SMALL_SIZE * LINE + 6
    return Box(x=MARGIN + PADDING, y=0, width=LABELS, height=height, lines=lines, small=small)


def _stack(column: Column, row: int, top: float) -> list[Box]:
    stack: list[Box] = []
    for story in column.rows.get(row, ()):
        card = _card_box(story, column.x)
        stack.append(replace(card, y=top))
        top += card.height + GAP * 0.8
    return stack


def _card_box(story: Node, x: float) -> Box:
    inner = CARD - 2 * PADDING - 6
    lines = tuple(wrap(story.name, inner, TEXT_SIZE, lines=5))
    small = tuple(wrap(", ".join(story.value.get("users") or ()), inner - PIPS, SMALL_SIZE, lines=2))
    below = max(1, len(small)) * SMALL_SIZE * LINE
    height = max(MIN_CARD, 2 * PADDING + len(lines) * TEXT_SIZE * LINE + below + 4)
    return Box(x=x, y=0, width=CARD, height=height, lines=lines, small=small, node=story)


STYLE = """
:root { color-scheme: light; --ink: #1d2b33; --muted: #52646e; --dark: #24404f; --line: #d5dfe3; --card: 11.5rem; }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.45 "Segoe UI", "Helvetica Neue", Helvetica, Arial, sans-serif; color: var(--ink);
  background: #fff; height: 100vh; display: flex; flex-direction: column; }
header { display: flex; flex-wrap: wrap; gap: .5rem 3rem; justify-content: space-between; padding: .9rem 1.4rem .8rem; }
h1 { margin: 0; font-size: 1.5rem; line-height: 1.2; }
.goal { margin: .15rem 0 0; color: var(--muted); max-width: 60rem; }
.sum { margin: .2rem 0 0; color: var(--muted); font-size: .8rem; font-weight: 400; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin: .2rem 0 0; padding: 0;
  font-size: .82rem; align-items: center; }
.swatch { display: inline-block; width: .85rem; height: .85rem; border: 1px solid var(--edge); border-radius: 3px;
  background: var(--fill); vertical-align: -.12em; margin-right: .35rem; }
.user { --fill: #fff1c2; --edge: #d29c00; } .system { --fill: #d6e8fc; --edge: #2f7fd0; }
.technical { --fill: #e6e0f5; --edge: #7a5cc0; }
.map { flex: 1; min-height: 0; overflow: auto; border-top: 1px solid var(--line); }
.map > table { border-collapse: separate; border-spacing: 0; }
.map > table > thead { position: sticky; top: 0; z-index: 2; background: #fff; box-shadow: 0 4px 6px -5px #24404f66; }
thead th, thead td { padding: .3rem .25rem 0; text-align: left; height: 1px; }
thead tr:last-child > * { padding-bottom: .5rem; }
thead th > div { height: 100%; padding: .4rem .6rem; border-radius: 6px; font-size: .92rem; line-height: 1.3; }
thead th small { display: block; font-weight: 400; font-size: .76rem; opacity: .85; }
.epic > div { background: var(--dark); color: #fff; } .step > div { background: #dbe7ec; }
.corner, .increment { position: sticky; left: 0; z-index: 1; width: 13rem; min-width: 13rem; max-width: 13rem; }
.corner { background: #fff; z-index: 3; }
.increment { text-align: left; vertical-align: top; padding: .7rem .8rem; font-size: .95rem; line-height: 1.3; }
.increment p { margin: .25rem 0 0; color: var(--muted); font-size: .8rem; font-weight: 400; }
.later .increment { color: var(--muted); }
.planned > *, .later > * { border-bottom: .5rem solid #fff; background: #f2f6f7; }
.planned:nth-child(even) > *, .later:nth-child(even) > * { background: #e8eff1; }
.cell { vertical-align: top; padding: .45rem .25rem .1rem; }
.cell, .step, .epic { min-width: var(--card); }
.number { display: inline-block; min-width: 1.35rem; height: 1.35rem; line-height: 1.35rem; border-radius: 1rem;
  background: var(--dark); color: #fff; text-align: center; font-size: .75rem; margin-right: .45rem; }
.card { display: block; width: calc(var(--card) - .5rem); margin: 0 0 .45rem; padding: .4rem .55rem .35rem;
  color: inherit; text-decoration: none; background: var(--fill); border: 1px solid var(--edge); border-left-width: 5px;
  border-radius: 5px; font-size: .86rem; line-height: 1.3; overflow-wrap: anywhere; }
.card:hover, .card:focus { box-shadow: 0 2px 8px #24404f55; outline: 2px solid var(--edge); }
.card small { display: flex; justify-content: space-between; align-items: center; gap: .5rem; margin-top: .25rem;
  color: var(--muted); font-size: .74rem; }
.pips { display: inline-flex; gap: 3px; margin-left: auto; }
.pips i { width: 8px; height: 8px; border-radius: 50%; border: 1px solid var(--edge, var(--muted)); }
.pips i.on { background: var(--edge, var(--muted)); } .pips i.off { background: #fff; }
body:has(#small:checked) { --card: 7.6rem; }
body:has(#small:checked) .card { font-size: .72rem; padding: .2rem .35rem; }
body:has(#small:checked) .card small, body:has(#small:checked) thead small { display: none; }
.nothing { padding: 2rem 1.4rem; color: var(--muted); }
article { display: none; }
article:target { display: block; position: fixed; right: 0; top: 0; bottom: 0; z-index: 5; width: min(34rem, 94vw);
  overflow: auto; outline: none; background: #fff; border-left: 6px solid var(--edge); padding: 1.1rem 1.5rem 2rem;
  box-shadow: -6px 0 24px #24404f44; }
article h2 { margin: 0 2rem .1rem 0; font-size: 1.25rem; line-height: 1.25; }
article h3 { margin: 1.1rem 0 .2rem; font-size: .95rem; } article h3 small { font-weight: 400; color: var(--muted); }
article ul { margin: .2rem 0; padding-left: 1.1rem; } article li { margin: .25rem 0; }
.where { margin: .3rem 0 0; color: var(--muted); font-size: .84rem; }
.close { position: absolute; right: 1rem; top: .7rem; font-size: 1.6rem; line-height: 1; text-decoration: none;
  color: var(--muted); padding: 0 .3rem; }
.word { font-weight: 600; color: var(--dark); }
.examples { border-collapse: collapse; margin: .4rem 0; font-size: .85rem; }
.examples th, .examples td { border: 1px solid var(--line); padding: .15rem .5rem; text-align: left; }
@media print {
  body { display: block; height: auto; } .map { overflow: visible; }
  .map > table > thead, .corner, .increment { position: static; }
  .legend label, .close { display: none; }
  article, article:target { display: block; position: static; width: auto; box-shadow: none; margin: 1rem 0;
    break-inside: avoid; }
}
"""

KINDS = {
    "user": ("User story", "#fff1c2", "#e0a800"),
    "system": ("System story", "#d6e8fc", "#2f7fd0"),
    "technical": ("Technical story", "#e6e0f5", "#7a5cc0"),
}
_FONT = "font-family=\"'Segoe UI', 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif\""
_DARK, _STEP, _INK, _MUTED = "#24404f", "#dbe7ec", "#1d2b33", "#52646e"
_BANDS = ("#f4f7f8", "#eaf0f2")
_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def story_map_svg(graph: Graph) -> str:
    found = lay_out(graph)
    stories = [box for box in found.stories if box.node is not None]
    name = str(graph.get("product") or "Story map")
    increments = sum(1 for band in found.bands if band.number)
    summary = f"{len(found.epics)} epics, {len(stories)} stories, {increments} increments."
    width, height = f"{found.width:.0f}", f"{found.height:.0f}"
    pieces = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-labelledby="map-title map-desc" {_FONT}>',
        f'<title id="map-title">Story map of {clean(name)}</title>',
        f'<desc id="map-desc">{summary} {clean(str(graph.get("goal", "")))}</desc>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *_heading(found),
        *(piece for place, band in enumerate(found.bands) for piece in _band(band, place)),
        *(piece for box in found.epics for piece in _header(box, _DARK, "#ffffff", "#cfdde3")),
        *(piece for box in found.steps for piece in _header(box, _STEP, _INK, _MUTED)),
        *(piece for box in stories for piece in _card(box)),
        "</svg>",
    ]
    return "\n".join(pieces) + "\n"


def clean(text: str) -> str:
    """Escape text for XML and HTML."""
    return escape(_NO_XML.sub("\ufffd", text))


def kind_of(story: Any) -> str:
    """The type of a story; a user story by default."""
    kind = story.get("story_type", "user")
    return kind if kind in KINDS else "user"


def _text(lines: Sequence[str], x: float, y: float, size: float, fill: str, extra: str = "") -> Iterator[str]:
    for index, line in enumerate(lines):
        baseline = y + size + index * size * LINE
        yield f'<text x="{x:.1f}" y="{baseline:.1f}" font-size="{size:g}" fill="{fill}"{extra}>{clean(line)}</text>'


def _rectangle(box: Box, fill: str, *, radius: float = 7, stroke: str = "none") -> str:
    place = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
    return f'<rect {place} rx="{radius:g}" fill="{fill}" stroke="{stroke}"/>'


def _heading(found: StoryMap) -> Iterator[str]:
    title = found.title
    yield from _text(title.lines, title.x, title.y - 4, 24, _INK, ' font-weight="700"')
    yield from _text(title.small, title.x, title.y + 30, TITLE_SIZE, _MUTED)
    x = found.width - MARGIN - 350
    for name, fill, edge in KINDS.values():
        yield f'<rect x="{x:.1f}" y="{title.y + 2:.1f}" width="14" height="14" rx="3" fill="{fill}" stroke="{edge}"/>'
        yield from _text([name], x + 20, title.y + 1, SMALL_SIZE + 1, _INK)
        x += 116
    x = found.width - MARGIN - 350
    yield from _pips((True, True, False, False), x + 4, title.y + 34, _MUTED)
    yield from _text([f"has {', '.join(STAGES)}"], x + 48, title.y + 27, SMALL_SIZE + 1, _INK)


def _band(band: Band, place: int) -> Iterator[str]:
    yield _rectangle(band.box, _BANDS[place % 2], radius=10)
    label = band.label
    indent = 0.0
    if band.number:
        yield f'<circle cx="{label.x + 10:.1f}" cy="{label.y + 10:.1f}" r="10" fill="{_DARK}"/>'
        middle = ' text-anchor="middle" font-weight="700"'
        yield from _text([band.number], label.x + 10, label.y + 2.5, SMALL_SIZE, "#ffffff", middle)
        indent = 26.0
    fill = _INK if band.number else _MUTED
    yield from _text(label.lines, label.x + indent, label.y, TITLE_SIZE, fill, ' font-weight="600"')
    below = label.y + max(24.0, len(label.lines) * TITLE_SIZE * LINE) + 2
    yield from _text(label.small, label.x, below, SMALL_SIZE, _MUTED)


def _header(box: Box, fill: str, ink: str, muted: str) -> Iterator[str]:
    assert box.node is not None
    outcome = str(box.node.value.get("outcome", ""))
    yield f"<g><title>{clean(box.node.name)}{': ' + clean(outcome) if outcome else ''}</title>"
    yield _rectangle(box, fill)
    yield from _text(box.lines, box.x + PADDING, box.y + PADDING - 2, TITLE_SIZE, ink, ' font-weight="700"')
    below = box.y + PADDING + len(box.lines) * TITLE_SIZE * LINE
    yield from _text(box.small, box.x + PADDING, below, SMALL_SIZE, muted)
    yield "</g>"


def _card(box: Box) -> Iterator[str]:
    assert box.node is not None
    kind, fill, edge = KINDS[kind_of(box.node.value)]
    yield "<g>"
    progress = progress_of(box.node.value)
    yield f"<title>{clean(box.node.name)} ({kind.lower()}): {progress}</title>"
    yield _rectangle(box, fill, radius=5, stroke=edge)
    yield f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="5" height="{box.height:.1f}" rx="2.5" fill="{edge}"/>'
    yield from _text(box.lines, box.x + PADDING + 5, box.y + PADDING - 2, TEXT_SIZE, _INK)
    below = box.y + box.height - PADDING - len(box.small) * SMALL_SIZE * LINE + 2
    yield from _text(box.small, box.x + PADDING + 5, below, SMALL_SIZE, _MUTED)
    yield from _pips(progress.reached, box.x + box.width - PIPS, box.y + box.height - PADDING - 4, edge)
    yield "</g>"


def _pips(reached: Sequence[bool], x: float, y: float, edge: str) -> Iterator[str]:
    for place, done in enumerate(reached):
        fill = edge if done else "#ffffff"
        yield f'<circle cx="{x + place * 10.5:.1f}" cy="{y:.1f}" r="3.6" fill="{fill}" stroke="{edge}"/>'


Numbers = Mapping[Pointer, int]


def story_map_html(graph: Graph) -> str:
    """Render the map as an HTML page without scripts and external resources."""
    name = clean(str(graph.get("product") or "Story map"))
    grid = grid_of(graph)
    stories = [story for row in range(len(grid.rows)) for story in _in_row(grid, row)]
    numbers = {story.pointer: number for number, story in enumerate(stories, start=1)}
    pieces = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>Story map of {name}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
        *_top(graph, name, stories),
        *(_table(graph, grid, numbers) if grid.columns else ['<p class="nothing">No epics and stories yet.</p>']),
        '<main id="stories">',
        *(piece for story in stories for piece in _article(story, numbers[story.pointer])),
        "</main>\n</body>\n</html>",
    ]
    return "\n".join(pieces) + "\n"


def _in_row(grid: Grid, row: int) -> list[Node]:
    return [story for column in grid.columns for story in column.rows.get(row, ())]


def _top(graph: Graph, name: str, stories: Sequence[Node]) -> Iterator[str]:
    yield f'<header id="top">\n<div><h1>{name}</h1>'
    if graph.get("goal"):
        yield f'<p class="goal">{clean(str(graph["goal"]))}</p>'
    yield f'<p class="sum">{summary_of(story.value for story in stories)}</p></div>'
    yield '<ul class="legend">'
    for kind, (title, _, _) in KINDS.items():
        yield f'<li><span class="swatch {kind}"></span>{title}</li>'
    yield f"<li>{_pips_page((True, True, False, False))} has {', '.join(STAGES)}</li>"
    yield '<li><label><input type="checkbox" id="small"> small cards</label></li></ul>\n</header>'


def _table(graph: Graph, grid: Grid, numbers: Numbers) -> Iterator[str]:
    yield '<div class="map" tabindex="0" role="region" aria-label="Story map">\n<table>\n<thead>'
    outcomes = {
        node.address: str(node.value.get("outcome", "")) for node in walk(graph) if node.kind in ("epic", "sub_epic")
    }
    for level in range(1, max(len(column.owner.address) for column in grid.columns) + 1):
        yield from _headings(grid.columns, level, outcomes)
    yield "</thead>\n<tbody>"
    for row, increment in enumerate(grid.rows):
        yield from _row(grid, row, increment, numbers)
    yield "</tbody>\n</table>\n</div>"


def _headings(columns: Sequence[Column], level: int, outcomes: Mapping[Address, str]) -> Iterator[str]:
    yield '<tr><td class="corner"></td>'
    for address, group in groupby(columns, key=lambda column: column.owner.address[:level]):
        span = f'colspan="{len(list(group))}"'
        if len(address) < level:
            yield f"<td {span}></td>"
            continue
        outcome = f"<small>{clean(outcomes[address])}</small>" if outcomes.get(address) else ""
        style = "epic" if level == 1 else "step"
        yield f'<th scope="colgroup" {span} class="{style}"><div>{clean(address[-1])}{outcome}</div></th>'
    yield "</tr>"


def _row(grid: Grid, row: int, increment: Mapping[str, Any] | None, numbers: Numbers) -> Iterator[str]:
    name, outcome = _row_texts(increment)
    number = "" if increment is None else f'<b class="number">{row + 1}</b>'
    about = f"<p>{clean(outcome)}</p>" if outcome else ""
    summary = summary_of(story.value for story in _in_row(grid, row))
    yield f'<tr class="{"later" if increment is None else "planned"}">'
    yield f'<th scope="row" class="increment">{number}{clean(name)}{about}<p class="sum">{summary}</p></th>'
    for column in grid.columns:
        cards = "".join(_card_page(story, numbers[story.pointer]) for story in column.rows.get(row, ()))
        yield f'<td class="cell">{cards}</td>'
    yield "</tr>"


def _card_page(story: Node, number: int) -> str:
    users = clean(", ".join(story.value.get("users") or ()))
    progress = progress_of(story.value)
    return (
        f'<a class="card {kind_of(story.value)}" href="#story-{number}" title="{clean(story.name)}: {progress}">'
        f"<span>{clean(story.name)}</span><small>{users}{_pips_page(progress.reached)}</small></a>"
    )


def _pips_page(reached: Sequence[bool]) -> str:
    dots = "".join(f'<i class="{"on" if done else "off"}"></i>' for done in reached)
    return f'<span class="pips" aria-hidden="true">{dots}</span>'


def _article(story: Node, number: int) -> Iterator[str]:
    value: Any = story.value
    kind = kind_of(value)
    yield f'<article id="story-{number}" class="{kind}">'
    yield '<a class="close" href="#top" title="Back to the map">&times;</a>'
    yield f"<h2>{clean(story.name)}</h2>"
    who = f" · {clean(', '.join(value['users']))}" if value.get("users") else ""
    yield f'<p class="where">{clean(" > ".join(story.address[:-1]))} · {KINDS[kind][0]}{who}</p>'
    if value.get("behavior"):
        yield f"<p>{clean(value['behavior'])}</p>"
    yield from _criteria(value.get("acceptance_criteria") or ())
    for scenario in value.get("scenarios") or ():
        yield from _scenario(scenario)
    yield from _sources(value)
    yield "</article>"


def _criteria(criteria: Any) -> Iterator[str]:
    if criteria:
        yield "<h3>Acceptance criteria</h3>"
    yield from _list(
        f'<b class="word">When</b> {clean(each["when"])} <b class="word">then</b> {clean(each["then"])}'
        for each in criteria
    )


def _scenario(scenario: Any) -> Iterator[str]:
    kind = f" <small>({clean(scenario['type'])})</small>" if scenario.get("type") else ""
    yield f"<h3>{clean(scenario['name'])}{kind}</h3>"
    yield from _list(_step(str(step)) for step in scenario.get("steps") or ())
    for table in scenario.get("examples") or ():
        yield '<table class="examples">'
        yield f"<tr>{''.join(f'<th>{clean(str(each))}</th>' for each in table['columns'])}</tr>"
        for row in table["rows"]:
            yield f"<tr>{''.join(f'<td>{clean(str(each))}</td>' for each in row)}</tr>"
        yield "</table>"


def _step(step: str) -> str:
    word, _, rest = step.partition(" ")
    known = word.lower() in ("given", "when", "then", "and", "but")
    return f'<b class="word">{clean(word)}</b> {clean(rest)}' if known else clean(step)


def _sources(story: Any) -> Iterator[str]:
    found = [("Tests", [story.get("test_file")]), ("Code", story.get("code_files")),
             ("Known from", story.get("context_source"))]  # fmt: skip
    for title, entries in found:
        named = [f"<code>{clean(str(each))}</code>" for each in entries or () if each]
        if named:
            yield f'<p class="where">{title}: {", ".join(named)}</p>'


def _list(items: Iterator[str]) -> Iterator[str]:
    lines = [f"<li>{item}</li>" for item in items]
    if lines:
        yield "<ul>\n" + "\n".join(lines) + "\n</ul>"
