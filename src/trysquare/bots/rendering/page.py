"""The story map as a page: a map whose headings stay in sight, and each story's details beside it, all in one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from trysquare.bots.graph.nodes import Address, Graph, Node, walk
from trysquare.bots.rendering.layout import UNPLANNED, Column, Grid, grid_of
from trysquare.bots.rendering.page_style import STYLE
from trysquare.bots.rendering.picture import KINDS, clean, kind_of
from trysquare.bots.rendering.progress import STAGES, progress_of, summary_of

Numbers = Mapping[tuple[str | int, ...], int]
"""The number of each story on the page, by where it stands in the graph."""


def story_map_html(graph: Graph) -> str:
    """The page of a graph. It loads nothing and runs nothing."""
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
        *(_table(graph, grid, numbers) if grid.columns else _nothing()),
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
    for kind, (told, _, _) in KINDS.items():
        yield f'<li><span class="swatch {kind}"></span>{told}</li>'
    yield f"<li>{_pips((True, True, False, False))} has {', '.join(STAGES)}</li>"
    yield '<li><label><input type="checkbox" id="small"> small cards</label></li></ul>\n</header>'


def _nothing() -> Iterator[str]:
    yield '<p class="nothing">There is no epic and no story yet. The map grows with the story graph.</p>'


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
        told = f"<small>{clean(outcomes[address])}</small>" if outcomes.get(address) else ""
        style = "epic" if level == 1 else "step"
        yield f'<th scope="colgroup" {span} class="{style}"><div>{clean(address[-1])}{told}</div></th>'
    yield "</tr>"


def _row(grid: Grid, row: int, increment: Mapping[str, Any] | None, numbers: Numbers) -> Iterator[str]:
    name = UNPLANNED if increment is None else str(increment["name"])
    number = "" if increment is None else f'<b class="number">{row + 1}</b>'
    outcome = "" if increment is None or not increment.get("outcome") else f"<p>{clean(str(increment['outcome']))}</p>"
    summary = summary_of(story.value for story in _in_row(grid, row))
    yield f'<tr class="{"later" if increment is None else "planned"}">'
    yield f'<th scope="row" class="increment">{number}{clean(name)}{outcome}<p class="sum">{summary}</p></th>'
    for column in grid.columns:
        cards = "".join(_card(story, numbers[story.pointer]) for story in column.rows.get(row, ()))
        yield f'<td class="cell">{cards}</td>'
    yield "</tr>"


def _card(story: Node, number: int) -> str:
    users = clean(", ".join(story.value.get("users") or ()))
    progress = progress_of(story.value)
    return (
        f'<a class="card {kind_of(story.value)}" href="#story-{number}" title="{clean(story.name)}: {progress}">'
        f"<span>{clean(story.name)}</span><small>{users}{_pips(progress.reached)}</small></a>"
    )


def _pips(reached: Sequence[bool]) -> str:
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
    for told, entries in found:
        named = [f"<code>{clean(str(each))}</code>" for each in entries or () if each]
        if named:
            yield f'<p class="where">{told}: {", ".join(named)}</p>'


def _list(items: Iterator[str]) -> Iterator[str]:
    lines = [f"<li>{item}</li>" for item in items]
    if lines:
        yield "<ul>\n" + "\n".join(lines) + "\n</ul>"
