"""Templates in Mustache: parsing with every mistake and its line, partials, and rendering."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, TypeAlias, cast

from trysquare.core.errors import ErrorCode, ToolError

MAX_RENDERED = 4_000_000
MAX_EXPANDED = 1_000_000
_DEEPEST_PARTIAL = 20

_TAG = re.compile(
    r"\{\{(?:\{\s*(?P<raw>[^{}]*?)\s*\}\}\}|!(?P<comment>.*?)\}\}|(?P<sign>[#^/>&=]?)\s*(?P<name>[^{}]*?)\s*\}\})",
    re.DOTALL,
)
_NAME = re.compile(r"\.|[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*")
_PARTIAL = re.compile(r"[\w][\w./-]*")
_BLANK = re.compile(r"[ \t\r]*")


class TemplateError(ToolError):
    """An invalid template, with the line."""

    default_code = ErrorCode.CONFIG_INVALID


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Value:
    name: str
    raw: bool = False
    """Whether it is inserted as it is, with its lines and without escapes."""
    line: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Section:
    """A part for each item of a list, for a value, or for its absence."""

    name: str
    parts: tuple[Part, ...]
    inverted: bool = False
    line: int = field(default=1, compare=False)


Part: TypeAlias = Text | Value | Section


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tag:
    sign: str
    name: str
    line: int
    start: int
    """Where the text before it ends; of a tag alone on its line, the line's start."""
    end: int
    indent: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TemplateProblem:
    line: int
    message: str


@dataclass(slots=True)
class _Open:
    name: str
    inverted: bool
    line: int
    parts: list[Part] = field(default_factory=list[Part])


def parse_template(template: str) -> tuple[Part, ...]:
    """Parse a template, or raise its first mistake.

    `{{name}}` is a value, `{{a.b}}` one within another, `{{.}}` the item itself; `{{{name}}}` and `{{&name}}` insert it
    as it is. `{{#list}}…{{/list}}` repeats for each item (or once for a value), `{{^list}}…{{/list}}` applies where
    there is none; `{{>name}}` is a partial, `{{! … }}` a comment. Names are looked up outwards. A tag alone on its
    line, except a value, takes the line with it. Values are inserted on one line.
    """
    parts, problems = _parse(template)
    if problems:
        raise TemplateError(f"Line {problems[0].line}: {problems[0].message}.")
    return parts


def template_problems(template: str) -> list[TemplateProblem]:
    """Every mistake of a template, by line."""
    return sorted(_parse(template, partials=True)[1], key=lambda each: each.line)


def partials_of(template: str) -> list[tuple[str, int]]:
    """The partials that a template names, with their lines."""
    return [(tag.name, tag.line) for tag in _tags(template) if tag.sign == ">"]


def expand_partials(template: str, partials: Mapping[str, str], *, depth: int = 0) -> str:
    """The template with its partials in their places, indented as their tags are. Each must be known."""
    if depth > _DEEPEST_PARTIAL:
        raise TemplateError("The partials include one another without an end.")
    pieces: list[str] = []
    end = 0
    for tag in _tags(template):
        if tag.sign != ">":
            continue
        pieces.append(template[end : tag.start])
        inner = expand_partials(partials[tag.name], partials, depth=depth + 1)
        pieces.append(re.sub(r"^(?=.)", tag.indent, inner, flags=re.MULTILINE) if tag.indent else inner)
        end = tag.end
    expanded = "".join((*pieces, template[end:]))
    if len(expanded) > MAX_EXPANDED:
        raise TemplateError(f"The template with its partials is longer than {MAX_EXPANDED:,} characters.")
    return expanded


def _tags(template: str) -> Iterator[_Tag]:
    for found in _TAG.finditer(template):
        raw, comment = found["raw"], found["comment"]
        sign = "&" if raw is not None else "!" if comment is not None else found["sign"]
        name = raw if raw is not None else comment if comment is not None else found["name"]
        line = template.count("\n", 0, found.start()) + 1
        start, end, indent = found.start(), found.end(), ""
        if sign not in ("", "&"):
            start, end, indent = _alone(template, start, end)
        yield _Tag(sign=sign, name=name, line=line, start=start, end=end, indent=indent)


def _alone(template: str, start: int, end: int) -> tuple[int, int, str]:
    """The whole line of a tag that has nothing beside it, and its indentation."""
    first = template.rfind("\n", 0, start) + 1
    rest = _BLANK.match(template, end)
    last = end if rest is None else rest.end()
    if template[first:start].strip(" \t") or template[last : last + 1] not in ("", "\n"):
        return start, end, ""
    return first, min(last + 1, len(template)), template[first:start]


def _parse(template: str, *, partials: bool = False) -> tuple[tuple[Part, ...], list[TemplateProblem]]:
    """The parts of a template, and its mistakes; `partials` says that known ones are put in later."""
    stack = [_Open("", False, 1)]
    problems: list[TemplateProblem] = []
    end = 0
    for tag in _tags(template):
        _add_text(template, end, tag.start, stack, problems)
        # Of two tags that share a line, the second one alone takes nothing twice.
        end = max(end, tag.end)
        if (problem := _add_tag(tag, stack, partials)) is not None:
            problems.append(TemplateProblem(line=tag.line, message=problem))
    _add_text(template, end, len(template), stack, problems)
    while len(stack) > 1:
        left = stack.pop()
        problems.append(TemplateProblem(line=left.line, message=f"the section `{left.name}` is not closed"))
        stack[-1].parts.append(Section(left.name, tuple(left.parts), left.inverted, left.line))
    return tuple(stack[0].parts), problems


def _add_text(template: str, start: int, end: int, stack: list[_Open], problems: list[TemplateProblem]) -> None:
    text = template[start:end]
    if not text:
        return
    stack[-1].parts.append(Text(text))
    if (at := text.find("{{")) >= 0:
        line = template.count("\n", 0, start + at) + 1
        problems.append(TemplateProblem(line=line, message="`{{` has no `}}`"))


def _add_tag(tag: _Tag, stack: list[_Open], partials: bool) -> str | None:
    """Add a tag to the innermost section; returns a problem."""
    if tag.sign == "!":
        return None
    if tag.sign == "=":
        return "other delimiters are not supported"
    if tag.sign == ">":
        wrong = _PARTIAL.fullmatch(tag.name) is None or ".." in tag.name
        return f"`{tag.name}` is not a name of a partial" if wrong else None if partials else f"no partial `{tag.name}`"
    if not _NAME.fullmatch(tag.name):
        return f"`{tag.name}` is not a valid name"
    if tag.sign in ("#", "^"):
        stack.append(_Open(tag.name, tag.sign == "^", tag.line))
    elif tag.sign == "/":
        return _close(tag, stack)
    else:
        stack[-1].parts.append(Value(tag.name, tag.sign == "&", tag.line))
    return None


def _close(tag: _Tag, stack: list[_Open]) -> str | None:
    if not any(each.name == tag.name for each in stack[1:]):
        return f"`{tag.name}` is closed but not open"
    left = stack.pop()
    if left.name != tag.name:
        # The outer one is closed too, so that one mistake is reported once.
        while stack[-1].name != tag.name:
            stack.pop()
        stack.pop()
        return f"`{tag.name}` is closed, but `{left.name}` of line {left.line} is still open"
    stack[-1].parts.append(Section(left.name, tuple(left.parts), left.inverted, left.line))
    return None


@dataclass(slots=True)
class _Output:
    html: bool
    pieces: list[str] = field(default_factory=list[str])
    size: int = 0

    def add(self, piece: str) -> None:
        self.size += len(piece)
        if self.size > MAX_RENDERED:
            raise TemplateError(f"The rendered text is longer than {MAX_RENDERED:,} characters.")
        self.pieces.append(piece)


def render_template(template: str, *scopes: Any, html: bool = False) -> str:
    """Render a template. Three or more newlines become two, so that absent parts leave no gaps."""
    output = _Output(html)
    _render(parse_template(template), scopes, output)
    return re.sub(r"\n{3,}", "\n\n", "".join(output.pieces)).strip("\n") + "\n"


def _render(parts: Sequence[Part], scopes: tuple[Any, ...], output: _Output) -> None:
    for part in parts:
        if isinstance(part, Section):
            for scope in _scopes(part, scopes):
                _render(part.parts, scope, output)
        elif isinstance(part, Text):
            output.add(part.text)
        else:
            output.add(_inserted(part, look_up(part.name, scopes), html=output.html))


def _inserted(part: Value, value: Any, *, html: bool) -> str:
    if part.raw:
        return value.strip("\n") if isinstance(value, str) else as_line(value)
    line = as_line(value)
    return escape(line) if html else line


def _scopes(section: Section, scopes: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    value = look_up(section.name, scopes)
    # Zero is a value, and false is none.
    exists = bool(value) or (not isinstance(value, bool) and value == 0)
    if section.inverted:
        return [] if exists else [scopes]
    if isinstance(value, list):
        return [(*scopes, item) for item in cast("list[Any]", value)]
    return [(*scopes, value)] if exists else []


def look_up(name: str, scopes: tuple[Any, ...]) -> Any:
    """Look up a name from the innermost scope outwards."""
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
    """A single value on one line; nothing for a list or an object."""
    if value is None or isinstance(value, (list, dict)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return " ".join(str(value).split())
