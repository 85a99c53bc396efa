"""Rules and their decorators, findings, options, and the parts of a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, Literal, TypeAlias, cast

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


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding of a rule, without the rule's name and severity."""

    message: str
    fix: str
    field: str | None = None
    tool: str = "*"
    """The tool that it is about; `*` for all of them."""


ToolCheck: TypeAlias = Callable[[Tool, LintOptions], Iterator[Problem]]
ToolsetCheck: TypeAlias = Callable[[Toolset, LintOptions], Iterator[Problem]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A named rule over a toolset."""

    name: str
    severity: Severity
    check: ToolsetCheck


def toolset_rule(severity: Severity) -> Callable[[ToolsetCheck], Rule]:
    """Make the decorated function a rule over the whole toolset. Its name is the function's, with hyphens."""
    return lambda check: Rule(name=check.__name__.replace("_", "-"), severity=severity, check=check)


def tool_rule(severity: Severity) -> Callable[[ToolCheck], Rule]:
    """Make the decorated function a rule over each tool."""

    def register(check: ToolCheck) -> Rule:
        @wraps(check)
        def check_each(toolset: Toolset, options: LintOptions) -> Iterator[Problem]:
            for tool in toolset.tools():
                for problem in check(tool, options):
                    yield replace(problem, tool=tool.name)

        return toolset_rule(severity)(cast(ToolsetCheck, check_each))

    return register


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
    yield from _below(Node(schema=schema, path="", keyword="", depth=0))


def fields(schema: JsonObject) -> Iterator[Node]:
    """The parts that are named properties, at any depth."""
    return (node for node in nodes(schema) if node.keyword == "properties")


def _below(parent: Node) -> Iterator[Node]:
    if parent.depth > _DEEPEST:
        return
    for child in _children(parent.keywords, parent):
        yield child
        yield from _below(child)


def _children(schema: JsonObject, parent: Node) -> Iterator[Node]:
    for keyword in _MAPS:
        for name, part in as_object(schema.get(keyword)).items():
            yield Node(
                schema=part,
                path=f"{parent.path}.{name}" if parent.path else name,
                keyword=keyword,
                depth=parent.depth + 1,
            )
    for keyword in _LISTS:
        for part in as_list(schema.get(keyword)):
            yield Node(schema=part, path=parent.path, keyword=keyword, depth=parent.depth)
    for keyword in _SINGLES:
        if keyword in schema:
            path = f"{parent.path}[]" if keyword == "items" else parent.path
            yield Node(schema=schema[keyword], path=path, keyword=keyword, depth=parent.depth)
