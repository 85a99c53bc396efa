"""Rules and their decorator, findings, options, and the parts of a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from trysquare.catalog.toolset import ProfileChoice
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.core.tool import Tool
from trysquare.core.toolset import Toolset

Severity: TypeAlias = Literal["error", "warning", "advice"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A problem of a tool: location, message, and fix."""

    rule: str
    severity: Severity
    tool: str
    message: str
    fix: str
    field: str | None = None

    def __str__(self) -> str:
        location = self.tool if self.field is None else f"{self.tool}.{self.field}"
        return f"{self.severity}: {location}: {self.message} {self.fix} ({self.rule})"


@dataclass(frozen=True, kw_only=True, slots=True)
class LintOptions:
    """Ignored rules and limits."""

    ignore: frozenset[str] = frozenset()
    profiles: ProfileChoice = field(default_factory=ProfileChoice)
    """The profiles whose listing is measured."""
    first_line: int = 50
    description_characters: int = 1_024
    tool_tokens: int = 700
    profile_tokens: int = 20_000
    listed_tools: int = 128
    parameters: int = 12
    depth: int = 3
    name_length: int = 50
    confusable: float = 0.85


class Problem(NamedTuple):
    """What a check yields where the message alone does not say it all: another fix, another place."""

    message: str
    fix: str = ""
    field: str | None = None
    tool: str | None = None


S = TypeVar("S")
Subjects: TypeAlias = Callable[[Toolset], Iterable[tuple[str, str | None, S]]]
"""What a rule looks at, each with its tool (`*` for all of them) and its place there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A named rule over a toolset."""

    name: str
    severity: Severity
    findings: Callable[[Toolset, LintOptions], Iterator[Finding]]


def rule(
    severity: Severity, subjects: Subjects[S], fix: str = ""
) -> Callable[[Callable[[S, LintOptions], Iterator[str | Problem]]], Rule]:
    """Make the decorated function a rule over each of the subjects. Its name is the function's, with hyphens."""

    def register(check: Callable[[S, LintOptions], Iterator[str | Problem]]) -> Rule:
        name = check.__name__.replace("_", "-")

        def findings(toolset: Toolset, options: LintOptions) -> Iterator[Finding]:
            for tool, place, subject in subjects(toolset):
                for found in check(subject, options):
                    own = Problem(found) if isinstance(found, str) else found
                    yield Finding(
                        rule=name, severity=severity, tool=own.tool or tool, message=own.message, fix=own.fix or fix,
                        field=own.field or place,
                    )  # fmt: skip

        return Rule(name=name, severity=severity, findings=findings)

    return register


def whole_toolset(toolset: Toolset) -> Iterator[tuple[str, str | None, Toolset]]:
    yield "*", None, toolset


def each_tool(toolset: Toolset) -> Iterator[tuple[str, str | None, Tool]]:
    return ((tool.name, None, tool) for tool in toolset.tools())


def each_field(toolset: Toolset) -> Iterator[tuple[str, str | None, Node]]:
    return ((tool.name, node.path, node) for tool in toolset.tools() for node in fields(tool.input_schema))


_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLES = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_DEEPEST = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One part of a schema. `depth` counts the objects and lists around it."""

    schema: Any
    path: str
    keyword: str
    depth: int

    @property
    def keywords(self) -> JsonObject:
        """The schema's keywords; none of a bare `true` or `false`, or of an invalid schema."""
        return as_object(self.schema)

    def text(self, key: str) -> str:
        """A string of the schema, or an empty one."""
        value = self.keywords.get(key)
        return value.strip() if isinstance(value, str) else ""


def nodes(schema: JsonObject) -> Iterator[Node]:
    """The parts of a schema below its top, outermost first."""
    return _below(Node(schema=schema, path="", keyword="", depth=0))


def fields(schema: JsonObject) -> Iterator[Node]:
    """The parts that are named properties, at any depth."""
    return (node for node in nodes(schema) if node.keyword == "properties")


def _below(parent: Node) -> Iterator[Node]:
    if parent.depth > _DEEPEST:
        return
    for child in _children(parent.keywords, parent.path, parent.depth):
        yield child
        yield from _below(child)


def _children(schema: JsonObject, path: str, depth: int) -> Iterator[Node]:
    for keyword in _MAPS:
        for name, part in as_object(schema.get(keyword)).items():
            yield Node(schema=part, path=f"{path}.{name}" if path else name, keyword=keyword, depth=depth + 1)
    for keyword in _LISTS:
        for part in as_list(schema.get(keyword)):
            yield Node(schema=part, path=path, keyword=keyword, depth=depth)
    for keyword in _SINGLES:
        if keyword in schema:
            inner = f"{path}[]" if keyword == "items" else path
            yield Node(schema=schema[keyword], path=inner, keyword=keyword, depth=depth)
