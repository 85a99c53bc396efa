"""Rules: what the work of a behavior is held to, with examples that the rule itself is tested with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning"]
NodeKind: TypeAlias = Literal[
    "graph", "epic", "sub_epic", "story", "increment", "criterion", "scenario", "step", "file"
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What a scanner looks at: each node of a kind, or one field of it."""

    kind: NodeKind
    field: str | None = None

    def __str__(self) -> str:
        return self.kind if self.field is None else f"{self.kind}.{self.field}"


@dataclass(frozen=True, kw_only=True, slots=True)
class RegexScanner:
    """A pattern that a text must not match, or must match."""

    pattern: str
    target: Target
    message: str
    match: Literal["forbid", "require"] = "forbid"
    ignore_case: bool = False
    files: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemaScanner:
    """A JSON Schema that a node must satisfy."""

    schema: Mapping[str, Any]
    target: Target
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonScanner:
    """A Python callable, named `package.module:attribute`."""

    callable: str
    target: Target
    message: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    files: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandScanner:
    """A program that is run over files; `{files}` in its arguments stands for them."""

    argv: tuple[str, ...]
    target: Target
    message: str
    files: tuple[str, ...] = ()


Scanner: TypeAlias = RegexScanner | SchemaScanner | PythonScanner | CommandScanner


@dataclass(frozen=True, kw_only=True, slots=True)
class Examples:
    """One side of a rule: what to do or not to do, in words and in examples."""

    description: str = ""
    examples: tuple[Any, ...] = ()
    """Each is what the scanner's target selects: a text for a field or a file, an object for a node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One rule: a sentence, examples for and against, and what finds a violation."""

    name: str
    file: str
    description: str
    do: Examples = field(default_factory=Examples)
    dont: Examples = field(default_factory=Examples)
    scanner: Scanner | None = None
    severity: Severity = "error"
    priority: int = 0
