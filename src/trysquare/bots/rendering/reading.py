"""Reading: a rendered text back into records, line by line, with the template as the grammar.

Every line of the template is a pattern with a place in the tree of sections. A line of the text is taken by the first
pattern that may follow the one before it: further down in the same section, at its beginning for the next item, or
after it. What no pattern takes is reported as unread, and reading goes on with the next line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from trysquare.bots.rendering.template import Part, Section, Text, Value, parse_template

Record: TypeAlias = dict[str, Any]
"""The values of one item: texts by their names, and lists of records or texts by the names of sections."""

_KINDS = {"heading": "#+", "number": r"\d*", "priority": r"\d*(?:\.\d+)?", "depth": r"\d*"}
_PARAGRAPH = re.compile(r"(?!#|\s*[-*+]\s|\s*\d+[.)]\s|\s*>|\s*\|)\S.*")


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of the template: what it looks like in the text, and in which sections it stands."""

    pattern: re.Pattern[str]
    names: tuple[str, ...]
    """The values in the order of the pattern's groups."""
    sections: tuple[str, ...]
    first: bool
    """Whether it begins an item of its section."""
    literal: bool
    """Whether it says nothing but the template's own words."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a text holds."""

    record: Record
    unread: tuple[tuple[int, str], ...] = ()
    """Lines that no part of the template explains, with their numbers."""


def read_back(template: str, text: str) -> Reading:
    """The records of a text that was rendered by a template and perhaps edited since."""
    lines = _Layout().lay_out(parse_template(template))
    record: Record = {}
    unread: list[tuple[int, str]] = []
    place: int | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        taken = _taken_by(lines, place, line.rstrip())
        if taken is None:
            unread.append((number, line.strip()))
            continue
        place, match = taken
        _put(record, lines[place], match)
    return Reading(record=record, unread=tuple(unread))


def _taken_by(lines: Sequence[Line], place: int | None, text: str) -> tuple[int, re.Match[str]] | None:
    for candidate in _following(lines, place):
        if match := lines[candidate].pattern.fullmatch(text):
            return candidate, match
    return None


def _following(lines: Sequence[Line], place: int | None) -> Iterator[int]:
    """The lines that may come after one, the nearest first."""
    if place is None:
        yield from range(len(lines))
        return
    sections = lines[place].sections
    for depth in range(len(sections), -1, -1):
        around = sections[:depth]
        inside = [index for index, line in enumerate(lines) if line.sections[:depth] == around]
        yield from (index for index in inside if index > place)
        # The next item of this section; the text outside of all sections comes once.
        yield from (index for index in inside if index <= place and depth)


def _put(record: Record, line: Line, match: re.Match[str]) -> None:
    target: Any = record
    for depth, name in enumerate(line.sections):
        items: list[Any] = target.setdefault(name, [])
        if not items or (depth == len(line.sections) - 1 and line.first):
            items.append({})
        target = items[-1]
    for name, value in zip(line.names, match.groups(), strict=True):
        if value is not None:
            target[name] = value.strip()


@dataclass
class _Layout:
    """Turns the parts of a template into lines."""

    lines: list[Line] = field(default_factory=list[Line])
    sections: tuple[str, ...] = ()
    fresh: bool = False
    pattern: str = ""
    names: list[str] = field(default_factory=list[str])
    words: bool = False

    def lay_out(self, parts: Sequence[Part]) -> list[Line]:
        self._add(parts)
        self._end_line()
        return self.lines

    def _add(self, parts: Sequence[Part]) -> None:
        for part in parts:
            if isinstance(part, Text):
                self._add_text(part.text)
            elif isinstance(part, Value):
                self._add_value(part.name)
            elif _is_inline(part):
                self.pattern += "(?:"
                self._add(part.parts)
                self.pattern += ")?"
            else:
                self._add_section(part)

    def _add_text(self, text: str) -> None:
        first, *rest = text.split("\n")
        self._add_words(first)
        for line in rest:
            self._end_line()
            self._add_words(line)

    def _add_words(self, words: str) -> None:
        self.pattern += re.escape(words)
        self.words = self.words or bool(words.strip())

    def _add_value(self, name: str) -> None:
        self.pattern += f"({_KINDS.get(name, '.*?')})"
        self.names.append(name)

    def _add_section(self, section: Section) -> None:
        self._end_line()
        before, fresh = self.sections, self.fresh
        # A section about a value that it shows itself, or about nothing, has no items of its own.
        if not section.inverted and not _shows(section.parts, section.name):
            self.sections, self.fresh = (*before, section.name), True
        self._add(section.parts)
        self._end_line()
        if self.sections != before:
            self.sections, self.fresh = before, fresh

    def _end_line(self) -> None:
        if self.pattern.strip():
            pattern = re.compile(self.pattern) if self.words or len(self.names) > 1 else _paragraph(self.names)
            self.lines.append(
                Line(
                    pattern=pattern,
                    names=tuple(self.names),
                    sections=self.sections,
                    first=self.fresh,
                    literal=not self.names,
                )
            )
            self.fresh = False
        self.pattern, self.names, self.words = "", [], False


def _paragraph(names: list[str]) -> re.Pattern[str]:
    """A line that is a value and nothing else: any text that is no heading and no item of a list."""
    return re.compile(f"({_PARAGRAPH.pattern})") if names else re.compile(r"(?!)")


def _is_inline(section: Section) -> bool:
    return not any(
        ("\n" in part.text) if isinstance(part, Text) else isinstance(part, Section) and not _is_inline(part)
        for part in section.parts
    )


def _shows(parts: Sequence[Part], name: str) -> bool:
    return any(isinstance(part, Value) and part.name == name for part in parts)
