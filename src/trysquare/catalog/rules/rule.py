"""Rule: one thing that `trysquare check` looks for, and what it says when it finds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from trysquare.catalog.profiles import ProfileChoice
from trysquare.core.tool import Tool
from trysquare.core.toolset import Toolset

Severity: TypeAlias = Literal["error", "warning", "advice"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What a rule found: where, what is wrong, and what to do."""

    rule: str
    severity: Severity
    tool: str
    message: str
    fix: str
    field: str | None = None

    def __str__(self) -> str:
        place = self.tool if self.field is None else f"{self.tool}.{self.field}"
        return f"{self.severity}: {place}: {self.message} {self.fix} ({self.rule})"


@dataclass(frozen=True, kw_only=True, slots=True)
class LintOptions:
    """What a project sets: rules that are not applied, and how much is too much."""

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """What a rule says of one place; the rule's name and severity are added by the list of rules."""

    message: str
    fix: str
    field: str | None = None
    tool: str | None = None
    """Which tool it is about, where the rule looks at several."""


ToolCheck: TypeAlias = Callable[[Tool, LintOptions], Iterator[Problem]]
SetCheck: TypeAlias = Callable[[Sequence[Tool], LintOptions], Iterator[Problem]]
ToolsetCheck: TypeAlias = Callable[[Toolset, LintOptions], Iterator[Problem]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A named rule: it looks at each tool by itself, at all of them together, or at what stands beside them."""

    name: str
    severity: Severity
    check_tool: ToolCheck | None = None
    check_set: SetCheck | None = None
    check_toolset: ToolsetCheck | None = None
