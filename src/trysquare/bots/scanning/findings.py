"""Findings: what a scan has to say, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trysquare.bots.rules import Rule, Severity
from trysquare.core.types import JsonObject

MAX_TEXT = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Selected:
    """One thing that a scanner looks at, and where it stands."""

    value: Any
    file: str
    line: int = 1
    where: str = ""
    """The names of the node from the top of the graph; empty for a file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A scanner found something in one of the things that it was given."""

    index: int
    message: str | None = None
    """What the scanner says itself; the rule's message where it says nothing."""
    line: int = 1
    """Counted within the thing."""
    text: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """A place in an artifact that breaks a rule."""

    rule: str
    severity: Severity
    file: str
    line: int
    message: str
    text: str
    where: str = ""
    example: Any = None
    """How the rule would have it."""

    def to_json(self) -> JsonObject:
        """The violation as a tool's result holds it."""
        told: JsonObject = {"rule": self.rule, "severity": self.severity, "file": self.file, "line": self.line}
        told |= {"message": self.message, "text": self.text}
        for name, value in (("where", self.where), ("example", self.example)):
            if value:
                told[name] = value
        return told

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message} [{self.rule}]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """A rule that could not do its work, or does not do what its examples say."""

    rule: str
    file: str
    """The rule's own file."""
    message: str

    def __str__(self) -> str:
        return f"{self.file}: {self.message}"


class ScannerFailed(Exception):
    """A scanner that could not be run to its end; turned into a `Problem` where the rule is known."""


def violation(rule: Rule, selected: Selected, hit: Hit, message: str) -> Violation:
    """A hit as the reader of the rule sees it."""
    return Violation(
        rule=rule.name,
        severity=rule.severity,
        file=selected.file,
        line=selected.line + hit.line - 1,
        message=hit.message or message,
        text=shortened(hit.text if hit.text is not None else selected.value),
        where=selected.where,
        example=rule.do.examples[0] if rule.do.examples else None,
    )


def shortened(value: Any) -> str:
    """A value as one short line."""
    text = value if isinstance(value, str) else str(value.get("name", value) if isinstance(value, dict) else value)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT else line[: MAX_TEXT - 1] + "…"
