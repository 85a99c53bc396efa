"""Texts of documents as values, with the line of every value: JSON, YAML and Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from trysquare.bots.graph import line_numbers
from trysquare.core.json import JsonObject
from trysquare.files.front_matter import FrontMatterError, split_front_matter
from trysquare.files.yaml import YamlError, YamlText, as_scalar, has_comments, read_yaml, write_yaml

Pointer: TypeAlias = tuple[str | int, ...]


class DocumentError(ValueError):
    """A text that cannot be read as its format; `line` counts from 1."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


def parse(form: str, text: str) -> Any:
    """The value of a text in a format."""
    if form != "markdown" and not text.strip():
        raise DocumentError("the document is empty")
    if form == "yaml":
        return _yaml(text).value
    return read_markdown(text).value if form == "markdown" else _json(text)


def lines(form: str, text: str) -> Mapping[Pointer, int]:
    """The line of every value of a text that could be parsed."""
    if form == "yaml":
        return _yaml(text).lines
    return read_markdown(text).lines if form == "markdown" else line_numbers(text)


def dump(form: str, value: Any, text: str) -> str:
    """The text of a value that was changed since it was read from `text`."""
    if form == "yaml":
        return _dump_yaml(value, text)
    if form == "markdown":
        raise DocumentError("a Markdown document is edited in its own file")
    made = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    try:
        made.encode()
    except UnicodeEncodeError:
        # JSON allows a lone surrogate only as an escape.
        return json.dumps(value, indent=2) + "\n"
    return made


class RepeatedKeyError(Exception):
    """An object has a key twice; the argument is the key."""


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of its pairs, as a hook of `json.loads`; raises `RepeatedKeyError`."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise RepeatedKeyError(next(name for name in names if names.count(name) > 1))
    return made


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=without_repeats)
    except json.JSONDecodeError as error:
        raise DocumentError(f"this is not JSON: {error.msg}", error.lineno) from None
    except RepeatedKeyError as error:
        name = str(error.args[0])
        at = text.rfind(json.dumps(name, ensure_ascii=False))
        raise DocumentError(f"the key `{name}` is there twice", text.count("\n", 0, max(at, 0)) + 1) from None
    except RecursionError:
        raise DocumentError("the document is nested too deeply") from None


def _yaml(text: str) -> YamlText:
    try:
        return read_yaml(text)
    except YamlError as error:
        raise DocumentError(f"this is not YAML that JSON can say: {error}", error.line) from None


def _dump_yaml(value: Any, text: str) -> str:
    """Replace single values in place; for a new structure write the text anew, unless that would lose comments."""
    before = _yaml(text)
    changed = list(_changes(before.value, value, ()))
    if all(pointer in before.scalars and before.scalars[pointer].style not in ("|", ">") for pointer, _ in changed):
        for pointer, new in sorted(changed, key=lambda each: -before.scalars[each[0]].start):
            place = before.scalars[pointer]
            text = text[: place.start] + as_scalar(new) + text[place.end :]
        if _yaml(text).value != value:
            raise DocumentError("this change cannot be written in its place; make it in the document itself")
        return text
    if has_comments(text):
        raise DocumentError("writing it anew would lose its comments; make this change in the document itself")
    return write_yaml(value)


def _changes(old: Any, new: Any, pointer: Pointer) -> Iterator[tuple[Pointer, Any]]:
    if isinstance(old, dict) and isinstance(new, dict) and list(old) == list(new):  # pyright: ignore[reportUnknownArgumentType]
        for name in new:  # pyright: ignore[reportUnknownVariableType]
            yield from _changes(old[name], new[name], (*pointer, str(name)))  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):  # pyright: ignore[reportUnknownArgumentType]
        for index, each in enumerate(new):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            yield from _changes(old[index], each, (*pointer, index))
    elif old != new or type(old) is not type(new):  # pyright: ignore[reportUnknownArgumentType]
        single = not isinstance(new, (dict, list))
        yield (pointer if single else (*pointer, ""), new)


_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*$")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?:\[(?P<box>[ xX])\]\s+)?(?P<text>\S.*?)\s*$")
_FENCE = re.compile(r"\s*(```|~~~)")


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkdownText:
    """A Markdown text as a value: front matter, title and sections in order, each with its text and list items."""

    value: JsonObject
    lines: dict[Pointer, int]


def read_markdown(text: str) -> MarkdownText:
    """Read the structure of a Markdown text."""
    try:
        file = split_front_matter(text)
    except FrontMatterError as error:
        raise DocumentError(error.message) from None
    reader = _MarkdownReader(lines={(): 1, ("text",): file.first_line, ("sections",): file.first_line})
    reader.lines[("front_matter",)] = 1
    for number, line in enumerate(file.head_text.splitlines(), start=2):
        if line[:1].strip() and ":" in line:
            reader.lines[("front_matter", line.partition(":")[0].strip())] = number
    reader.read(file.body, file.first_line)
    value = {"front_matter": dict(file.head), "title": reader.title, "text": reader.joined(reader.preamble)}
    return MarkdownText(value={**value, "sections": reader.sections}, lines=reader.lines)


@dataclass(slots=True)
class _MarkdownReader:
    lines: dict[Pointer, int]
    title: str | None = None
    preamble: list[str] = field(default_factory=list[str])
    sections: list[JsonObject] = field(default_factory=list[JsonObject])
    texts: list[list[str]] = field(default_factory=list[list[str]])
    fenced: bool = False

    def read(self, body: str, first_line: int) -> None:
        for number, line in enumerate(body.splitlines(), start=first_line):
            self.fenced ^= bool(_FENCE.match(line))
            found = None if self.fenced else _HEADING.match(line)
            if found is None:
                self._add_line(line, number)
            elif self.title is None and len(found[1]) == 1 and not self.sections:
                self.title = found[2]
                self.lines[("title",)] = number
            else:
                self._add_section(found[2], len(found[1]), number)
        for section, text in zip(self.sections, self.texts, strict=True):
            section["text"] = self.joined(text)

    @staticmethod
    def joined(text: list[str]) -> str:
        return "\n".join(text).strip()

    def _add_section(self, heading: str, level: int, number: int) -> None:
        at = ("sections", len(self.sections))
        self.lines |= {at: number, (*at, "heading"): number, (*at, "text"): number, (*at, "items"): number}
        self.sections.append({"heading": heading, "level": level, "text": "", "items": []})
        self.texts.append([])

    def _add_line(self, line: str, number: int) -> None:
        (self.texts[-1] if self.texts else self.preamble).append(line)
        if not self.sections:
            return
        at: Pointer = ("sections", len(self.sections) - 1)
        if len(self.texts[-1]) == 1 or not any(each.strip() for each in self.texts[-1][:-1]):
            self.lines[(*at, "text")] = number
        item = None if self.fenced else _ITEM.match(line)
        if item is not None:
            items: list[JsonObject] = self.sections[-1]["items"]
            self.lines[(*at, "items", len(items))] = number
            items.append({"text": item["text"], "done": None if item["box"] is None else item["box"] != " "})
