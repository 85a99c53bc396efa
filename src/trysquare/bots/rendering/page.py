"""The story map as a page: the picture, and below it what each story says, all in one file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trysquare.bots.graph.nodes import Graph
from trysquare.bots.rendering.layout import Box, lay_out
from trysquare.bots.rendering.picture import KINDS, clean, draw, kind_of

_STYLE = """
:root { color-scheme: light; }
body { margin: 0; font: 15px/1.5 "Segoe UI", "Helvetica Neue", Helvetica, Arial, sans-serif; color: #1d2b33; }
.map { overflow: auto; border-bottom: 1px solid #d5dfe3; }
.map svg { display: block; }
.map a:hover rect:first-of-type, .map a:focus rect:first-of-type { stroke-width: 2.5; }
main { max-width: 52rem; margin: 0 auto; padding: 1rem 1.5rem 4rem; }
article { border-left: 4px solid var(--edge); padding: .1rem 0 .1rem 1rem; margin: 1.2rem 0; scroll-margin-top: 1rem; }
article:target { background: #fdf9ec; }
h3 { margin: 0; font-size: 1.05rem; } h4 { margin: .8rem 0 .2rem; font-size: .95rem; }
p.where { margin: 0; color: #52646e; font-size: .85rem; } ul { margin: .3rem 0; padding-left: 1.2rem; }
b.word { font-weight: 600; color: #24404f; }
@media print { .map { overflow: visible; } .map svg { width: 100%; height: auto; } }
"""


def story_map_html(graph: Graph) -> str:
    """The page of a graph. It loads nothing and runs nothing."""
    name = clean(str(graph.get("product") or "Story map"))
    stories = [box for box in lay_out(graph).stories if box.node is not None]
    pieces = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>Story map of {name}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
        f'<div class="map" tabindex="0" aria-label="Story map">\n{draw(graph, links=True)}</div>',
        "<main>\n<h2>Stories</h2>",
        *(piece for number, box in enumerate(stories, start=1) for piece in _article(box, number)),
        "</main>\n</body>\n</html>",
    ]
    return "\n".join(pieces) + "\n"


def _article(box: Box, number: int) -> Iterator[str]:
    assert box.node is not None
    story: Any = box.node.value
    kind, _, edge = KINDS[kind_of(story)]
    yield f'<article id="story-{number}" style="--edge: {edge}">\n<h3>{clean(box.node.name)}</h3>'
    who = f" · {clean(', '.join(story['users']))}" if story.get("users") else ""
    yield f'<p class="where">{clean(" > ".join(box.node.address[:-1]))} · {kind}{who}</p>'
    if story.get("behavior"):
        yield f"<p>{clean(story['behavior'])}</p>"
    yield from _criteria(story.get("acceptance_criteria") or ())
    for scenario in story.get("scenarios") or ():
        kind_told = f" ({clean(scenario['type'])})" if scenario.get("type") else ""
        yield f"<h4>{clean(scenario['name'])}{kind_told}</h4>"
        yield from _list(clean(step) for step in scenario.get("steps") or ())
    yield "</article>"


def _criteria(criteria: Any) -> Iterator[str]:
    yield from _list(
        f'<b class="word">When</b> {clean(each["when"])} <b class="word">then</b> {clean(each["then"])}'
        for each in criteria
    )


def _list(items: Iterator[str]) -> Iterator[str]:
    lines = [f"<li>{item}</li>" for item in items]
    if lines:
        yield "<ul>\n" + "\n".join(lines) + "\n</ul>"
