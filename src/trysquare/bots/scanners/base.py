"""Rules, scanners and their findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from trysquare.core.json import JsonObject

Severity: TypeAlias = Literal["error", "warning"]
PATH = "path"
"""The kind of a target that is a JSONPath."""
FILE = "file"
"""The kind of a target that is the text of a file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What a scanner reads: what a JSONPath selects, each node of a kind or one field of it, or files."""

    kind: str
    field: str | None = None
    """The field of a node, or the JSONPath."""
    document: str | None = None
    """The name of the document's config; None for every document of the behavior."""

    def __str__(self) -> str:
        if self.kind == PATH and self.field is not None:
            return self.field
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
    """A Python callable, named `package.module:attribute`, or `scanners/file.py:attribute` of the bot's folder."""

    callable: str
    target: Target
    message: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    files: tuple[str, ...] = ()
    bot: Path | None = None
    """The bot's folder."""
    digest: str = ""
    """Of the code in the bot's folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandScanner:
    """A program that runs over files; `{files}` in its arguments is replaced by them."""

    argv: tuple[str, ...]
    target: Target
    message: str
    files: tuple[str, ...] = ()
    bot: Path | None = None
    """The bot's folder, for arguments that begin with `{bot}/`."""
    digest: str = ""


Scanner: TypeAlias = RegexScanner | SchemaScanner | PythonScanner | CommandScanner


@dataclass(frozen=True, kw_only=True, slots=True)
class Examples:
    """One side of a rule: what to do or not to do."""

    description: str = ""
    examples: tuple[Any, ...] = ()
    """Each is what the scanner's target selects: a string for a field or a file, an object for a node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    name: str
    file: str
    description: str
    do: Examples = field(default_factory=Examples)
    dont: Examples = field(default_factory=Examples)
    scanner: Scanner | None = None
    severity: Severity = "error"
    priority: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Selected:
    value: Any
    file: str
    line: int = 1
    where: str = ""
    """Names from the top of the graph; empty for a file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    index: int
    message: str | None = None
    """None for the rule's own message."""
    line: int = 1
    text: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """A location in an artifact that breaks a rule."""

    rule: str
    severity: Severity
    file: str
    line: int
    message: str
    text: str
    where: str = ""
    example: Any = None
    whole: bool = False
    """Whether it is about a document itself, whatever the scope."""

    def to_json(self) -> JsonObject:
        fields: JsonObject = {"rule": self.rule, "severity": self.severity, "file": self.file, "line": self.line}
        fields |= {"message": self.message, "text": self.text}
        return fields | {name: value for name in ("where", "example") if (value := getattr(self, name))}

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message} [{self.rule}]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """A rule that could not run, or fails its own examples."""

    rule: str
    file: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}: {self.message}"


class ScannerFailed(Exception):
    """A scanner could not run to its end."""
