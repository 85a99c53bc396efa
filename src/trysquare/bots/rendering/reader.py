"""Reader of rendered text: back into records, with the template as the grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from trysquare.bots.rendering.template import Part, Section, Text, Value, parse_template

Record: TypeAlias = dict[str, Any]
"""Values of one item: strings by name, and lists of records by section."""

_KINDS = {"heading": "#+", "number": r"\d*", "priority": r"\d*(?:\.\d+)?", "depth": r"\d*"}
_PARAGRAPH = re.compile(r"(?!#|\s*[-*+]\s|\s*\d+[.)]\s|\s*>|\s*\|)\S.*")


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of the template as a pattern, with its sections."""

    pattern: re.Pattern[str]
    names: tuple[str, ...]
    sections: tuple[str, ...]
    first: bool
    """Whether it starts an item of its section."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    record: Record
    unread: tuple[tuple[int, str], ...] = ()
    """Lines that match no line of the template, with their numbers."""


def read_back(template: str, text: str) -> Reading:
    """Read the records of a rendered and perhaps edited text.

    A line matches the first pattern that may follow the previous one: further down in the same section, at its start
    for the next item, or after it.
    """
    lines = _Layout().lay_out(parse_template(template))
    record: Record = {}
    unread: list[tuple[int, str]] = []
    current: int | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        matched = _match(lines, current, line.rstrip())
        if matched is None:
            unread.append((number, line.strip()))
            continue
        current, match = matched
        _put(record, lines[current], match)
    return Reading(record=record, unread=tuple(unread))


def _match(lines: Sequence[Line], current: int | None, text: str) -> tuple[int, re.Match[str]] | None:
    for candidate in _following(lines, current):
        if match := lines[candidate].pattern.fullmatch(text):
            return candidate, match
    return None


def _following(lines: Sequence[Line], current: int | None) -> Iterator[int]:
    """Template lines that may follow one, the nearest first."""
    if current is None:
        yield from range(len(lines))
        return
    sections = lines[current].sections
    for depth in range(len(sections), -1, -1):
        around = sections[:depth]
        inside = [index for index, line in enumerate(lines) if line.sections[:depth] == around]
        yield from (index for index in inside if index > current)
        # The next item of this section; text outside of all sections occurs once.
        yield from (index for index in inside if index <= current and depth)


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
    """Converts the parts of a template to lines."""

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
                self.pattern += f"({_KINDS.get(part.name, '.*?')})"
                self.names.append(part.name)
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

    def _add_section(self, section: Section) -> None:
        self._end_line()
        before, fresh = self.sections, self.fresh
        # An inverted section, or one that shows its own value, has no items.
        if not section.inverted and Value(section.name) not in section.parts:
            self.sections, self.fresh = (*before, section.name), True
        self._add(section.parts)
        self._end_line()
        if self.sections != before:
            self.sections, self.fresh = before, fresh

    def _end_line(self) -> None:
        if self.pattern.strip():
            # A line with a single value is any text but a heading or a list item.
            paragraph = f"({_PARAGRAPH.pattern})" if self.names else "(?!)"
            pattern = re.compile(self.pattern if self.words or len(self.names) > 1 else paragraph)
            line = Line(pattern=pattern, names=tuple(self.names), sections=self.sections, first=self.fresh)
            self.lines.append(line)
            self.fresh = False
        self.pattern, self.names, self.words = "", [], False


def _is_inline(section: Section) -> bool:
    return not any(
        ("\n" in part.text) if isinstance(part, Text) else isinstance(part, Section) and not _is_inline(part)
        for part in section.parts
    )
