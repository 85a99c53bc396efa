"""The story map as an SVG picture: no scripts, nothing from elsewhere, and a text for everything that is drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from trysquare.bots.graph.nodes import Graph
from trysquare.bots.rendering.layout import (
    LINE,
    MARGIN,
    PADDING,
    PIPS,
    SMALL_SIZE,
    TEXT_SIZE,
    TITLE_SIZE,
    Band,
    Box,
    StoryMap,
    lay_out,
)
from trysquare.bots.rendering.progress import STAGES, progress_of

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
    """The map of a graph as a picture of its own."""
    found = lay_out(graph)
    stories = [box for box in found.stories if box.node is not None]
    name = str(graph.get("product") or "Story map")
    told = (
        f"{len(found.epics)} epics, {len(stories)} stories, {sum(1 for band in found.bands if band.number)} increments."
    )
    width, height = f"{found.width:.0f}", f"{found.height:.0f}"
    pieces = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-labelledby="map-title map-desc" {_FONT}>',
        f'<title id="map-title">Story map of {clean(name)}</title>',
        f'<desc id="map-desc">{told} {clean(str(graph.get("goal", "")))}</desc>',
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
    """A text as it may stand in XML and HTML."""
    return escape(_NO_XML.sub("\ufffd", text))


def kind_of(story: Any) -> str:
    """The type of a story; one that says nothing is a user story."""
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
