"""Document: one piece of content, with what its front matter says of it."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

DocumentType: TypeAlias = Literal["user/information", "agent/information", "agent/instruction", "agent/requirements"]
"""What the reader does with a document: show it to the person, know it, follow it, or be held to it."""

Source: TypeAlias = Literal["file", "stored"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentId:
    """Which document: its category and its name within it, as a path without an ending."""

    category: str
    name: str

    def __str__(self) -> str:
        return f"{self.category}/{self.name}"


def folded(name: str) -> str:
    """A name as it is compared: upper and lower case, and the ways to write an accent, are one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """One piece of content as it lies in its source, before templates and flags are applied."""

    id: DocumentId
    text: str
    """The body, without front matter."""
    first_line: int = 1
    """The line of the source at which the body begins."""
    digest: str
    """sha256 of the whole source, in hexadecimal."""
    source: Source = "file"
    path: str | None = None
    """Where it lies, relative to the guide's folder; None for stored documents."""
    type: DocumentType = "agent/instruction"
    title: str | None = None
    description: str | None = None
    instruction: str | None = None
    """What the agent should do with it, where the document says so itself."""
    tags: frozenset[str] = frozenset()
    topic: str | None = None
    """What it gives directions about; two documents of one topic may contradict one another."""
    stance: str | None = None
    """The direction it gives on its topic, in a word: `tabs`, `spaces`."""
    topic_line: int = 1
    """The line of the source that names the topic."""
    priority: int = 0
    """Higher ones are kept first when a budget is short."""
    requires: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Flags that must have a value before the document is shown: `requires-workflow: true`."""
    includes: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    written_by_agent: str | None = None
    """For whom an agent wrote it, and when, as long as no human has accepted it."""
