"""Templates: texts with places for values. A small part of Mustache, so that a template can only say, never do.

`{{name}}` is a value, `{{a.b}}` one within another, `{{.}}` the item itself; `{{#list}}…{{/list}}` repeats for each
item (or once for a value that is there), `{{^list}}…{{/list}}` stands where there is none; `{{! … }}` says nothing.
Names are looked up outwards. A section's tag alone on its line takes the line with it. Values are put in as they are,
on one line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from trysquare.core.errors import ErrorCode, ToolError

MAX_RENDERED = 4_000_000

_TAG = re.compile(r"\{\{(?P<sign>[#^/!]?)\s*(?P<name>[^{}]*?)\s*\}\}")
_ALONE = re.compile(r"^[ \t]*(\{\{[#^/!][^{}]*\}\})[ \t]*(?:\n|\Z)", re.MULTILINE)
_NAME = re.compile(r"\.|[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*")


class TemplateError(ToolError):
    """A template that cannot be used, with the line that is wrong."""

    default_code = ErrorCode.CONFIG_INVALID


@dataclass(frozen=True, slots=True)
class Text:
    """Words that stand in the template."""

    text: str


@dataclass(frozen=True, slots=True)
class Value:
    """A place for a value."""

    name: str


@dataclass(frozen=True, slots=True)
class Section:
    """A part that is there for each item of a list, for a value, or for its absence."""

    name: str
    parts: tuple[Part, ...]
    inverted: bool = False


Part: TypeAlias = Text | Value | Section


def parse_template(template: str) -> tuple[Part, ...]:
    """The parts of a template; the error names the line."""
    text = _ALONE.sub(r"\1", template)
    stack: list[tuple[str, bool, list[Part]]] = [("", False, [])]
    seen = 0
    for tag in _TAG.finditer(text):
        _add_text(stack[-1][2], text[seen : tag.start()])
        seen = tag.end()
        _take(tag["sign"], tag["name"], stack, lambda at=tag: _line_of(template, at.group()))
    _add_text(stack[-1][2], text[seen:])
    if len(stack) > 1:
        raise TemplateError(f"The section `{stack[-1][0]}` of the template is not closed.")
    return tuple(stack[0][2])


def _take(sign: str, name: str, stack: list[tuple[str, bool, list[Part]]], line: Any) -> None:
    if sign == "!":
        return
    if not _NAME.fullmatch(name):
        raise TemplateError(f"Line {line()}: `{name}` is no name of a value.")
    if sign in ("#", "^"):
        stack.append((name, sign == "^", []))
    elif sign == "/":
        if len(stack) == 1 or stack[-1][0] != name:
            raise TemplateError(f"Line {line()}: `{name}` is closed here and was not opened.")
        opened, inverted, parts = stack.pop()
        stack[-1][2].append(Section(opened, tuple(parts), inverted))
    else:
        stack[-1][2].append(Value(name))


def _add_text(parts: list[Part], text: str) -> None:
    if text:
        parts.append(Text(text))


def _line_of(template: str, tag: str) -> int:
    return template.count("\n", 0, max(0, template.find(tag))) + 1


def render_template(template: str, values: Mapping[str, Any]) -> str:
    """A template with its values. Three empty lines in a row become one, so that absent parts leave no holes."""
    pieces: list[str] = []
    _render(parse_template(template), (values,), pieces, [0])
    return re.sub(r"\n{3,}", "\n\n", "".join(pieces)).strip("\n") + "\n"


def _render(parts: Sequence[Part], scopes: tuple[Any, ...], pieces: list[str], size: list[int]) -> None:
    for part in parts:
        if isinstance(part, Section):
            for scope in _scopes(part, scopes):
                _render(part.parts, scope, pieces, size)
            continue
        piece = part.text if isinstance(part, Text) else as_line(look_up(part.name, scopes))
        size[0] += len(piece)
        if size[0] > MAX_RENDERED:
            raise TemplateError(f"The rendered text is longer than {MAX_RENDERED:,} characters.")
        pieces.append(piece)


def _scopes(section: Section, scopes: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    value = look_up(section.name, scopes)
    there = bool(value) or value == 0
    if section.inverted:
        return [] if there else [scopes]
    if isinstance(value, list):
        return [(*scopes, item) for item in cast("list[Any]", value)]
    return [(*scopes, value)] if there else []


def look_up(name: str, scopes: tuple[Any, ...]) -> Any:
    """A value by its name, from the innermost scope outwards; None where there is none."""
    if name == ".":
        return scopes[-1]
    first, *rest = name.split(".")
    for scope in reversed(scopes):
        if isinstance(scope, Mapping) and first in scope:
            value: Any = cast("Mapping[str, Any]", scope)[first]
            for piece in rest:
                value = cast("Mapping[str, Any]", value).get(piece) if isinstance(value, Mapping) else None
            return value
    return None


def as_line(value: Any) -> str:
    """A value as it stands in a line of text."""
    if value is None or isinstance(value, (list, dict)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return " ".join(str(value).split())
