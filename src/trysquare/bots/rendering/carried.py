"""Which parts of a template can be read backwards, and which cannot, with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trysquare.bots.rendering.mustache import Part, Section, Text, Value, parse_template
from trysquare.bots.rendering.template import flag_text, is_inline


@dataclass(frozen=True, kw_only=True, slots=True)
class NotCarried:
    """A place of a template whose edits stay in the page."""

    line: int
    name: str
    why: str

    def __str__(self) -> str:
        return f"line {self.line}: `{self.name}` {self.why}"


def not_carried(template: str) -> list[NotCarried]:
    """The places of a template whose edits are not carried back into the document."""
    return list(_places(parse_template(template), within=None))


def _places(parts: Sequence[Part], *, within: Section | None) -> Iterator[NotCarried]:
    before: Part | None = None
    for part in parts:
        if isinstance(part, Section):
            yield from _in_section(part)
        elif isinstance(part, Value):
            yield from _of_value(part, before, within)
        before = part


def _of_value(value: Value, before: Part | None, within: Section | None) -> Iterator[NotCarried]:
    if value.raw:
        yield NotCarried(line=value.line, name=value.name, why="is inserted with all its lines")
    elif isinstance(before, Value):
        why = f"follows `{before.name}` with nothing between them"
        yield NotCarried(line=value.line, name=value.name, why=why)
    elif value.name == "." and within is not None and is_inline(within):
        yield NotCarried(line=value.line, name=within.name, why="is a list within one line")


def _in_section(section: Section) -> Iterator[NotCarried]:
    if section.inverted:
        # Its texts are the template's own; a value in it would be of an outer item.
        shown = [part.name for part in section.parts if isinstance(part, Value)]
        if shown:
            yield NotCarried(line=section.line, name=shown[0], why="is shown where something else is absent")
        return
    if flag_text(section) is None and not any(isinstance(part, (Value, Section)) for part in section.parts):
        shown_text = any(isinstance(part, Text) and part.text.strip() for part in section.parts)
        if shown_text:
            yield NotCarried(line=section.line, name=section.name, why="shows a text and none of its values")
        return
    yield from _places(section.parts, within=section)
