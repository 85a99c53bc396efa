"""Job: one command in the sandbox, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Ended: TypeAlias = Literal["by itself", "deadline", "output", "processes"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A command, and what it may do beside reading."""

    command: Sequence[str]
    seconds: float
    merged: bool = True
    """Whether errors go where the output goes, in the order in which they were written."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    network: bool = False
    git_folders: Sequence[str] = ()
    """The repository's own folders that may be written; what makes git run programs stays read-only in them."""
    shows_home: bool = False
    """Whether it sees the user's own home and what is kept secret in it, as a push does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a command ended, and what it wrote, as much as is kept."""

    status: int | None
    ended: Ended
    output: str
    errors: str = ""
    left_out: int = 0
    """Bytes of output that are not shown."""

    @property
    def ok(self) -> bool:
        """Whether the command says that it did what it should."""
        return self.ended == "by itself" and self.status == 0
