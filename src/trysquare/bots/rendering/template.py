"""What a template sees of a story graph, and rendered pages read back into records by their templates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from trysquare.bots.graph import Graph, Node, children, stories_of, top_node
from trysquare.bots.rendering.mustache import Part, Section, Text, Value, parse_template
from trysquare.core.json import JsonObject

FLAG = "?"
"""Before the name of a value that a page shows by the presence of a text, such as the `x` of a ticked box."""

_DEEPEST_HEADING = 6


def view_of(graph: Graph) -> JsonObject:
    """Values for a template: the graph, `outline` (every epic and sub-epic) and `stories` (every story)."""
    outline = [each for epic in children(top_node(graph)) for each in _sections(epic)]
    return {
        **graph,
        "increments": [
            {**each, "number": number, "stories": list(each.get("stories", ()))}
            for number, each in enumerate(in_priority(graph), start=1)
        ],
        "outline": outline,
        "stories": [story for section in outline for story in section["stories"]],
    }


def in_priority(graph: Graph) -> list[Mapping[str, Any]]:
    """Increments by priority; without one last."""
    return sorted(graph.get("increments") or (), key=lambda each: _order(each.get("priority")))


def in_order(stories: list[Node]) -> list[Node]:
    """Stories by `sequential_order`; without one last."""
    return sorted(stories, key=lambda each: _order(each.value.get("sequential_order")))


def _order(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else float("inf")


def _sections(epic: Node) -> list[JsonObject]:
    depth = len(epic.address)
    stories = in_order(stories_of(epic))
    section: JsonObject = {
        **epic.value,
        "heading": "#" * min(_DEEPEST_HEADING, depth + 1),
        "depth": depth,
        "path": " > ".join(epic.address),
        "stories": [_story(story, index) for index, story in enumerate(stories)],
    }
    below = [each for child in children(epic) if child.kind == "sub_epic" for each in _sections(child)]
    return [section, *below]


def _story(story: Node, index: int) -> JsonObject:
    return {
        # A missing field must not be looked up in an outer scope.
        **dict.fromkeys(
            ("users", "acceptance_criteria", "scenarios", "test_file", "code_files", "connector", "outcome")
        ),
        **story.value,
        "scenarios": [
            {"test_method": None, "type": None, "steps": [], **each, "number": number + 1}
            for number, each in enumerate(story.value.get("scenarios") or ())
        ],
        "number": index + 1,
        "epic": " > ".join(story.address[:-1]),
    }


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


def read_back(template: str, text: str) -> tuple[Record, list[tuple[int, str]]]:
    """Read the records of a rendered and perhaps edited text, and its lines that match no line of the template.

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
    return record, unread


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
        if name.startswith(FLAG):
            target[name] = value is not None
        elif value is not None:
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
            elif is_inline(part):
                self._add_inline(part)
            else:
                self._add_section(part)

    def _add_inline(self, section: Section) -> None:
        if (text := flag_text(section)) is not None:
            self.pattern += f"((?i:{re.escape(text)}))?"
            self.names.append(f"{FLAG}{section.name}")
            return
        self.pattern += "(?:"
        self._add(section.parts)
        self.pattern += ")?"

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


def flag_text(section: Section) -> str | None:
    """The text by which a section within a line shows that its value is there; None where it shows more."""
    if section.inverted or section.name == "." or len(section.parts) != 1 or not is_inline(section):
        return None
    (only,) = section.parts
    return only.text if isinstance(only, Text) and only.text.strip() else None


def is_inline(section: Section) -> bool:
    """Whether a section begins and ends within one line."""
    return not any(
        ("\n" in part.text) if isinstance(part, Text) else isinstance(part, Section) and not is_inline(part)
        for part in section.parts
    )
