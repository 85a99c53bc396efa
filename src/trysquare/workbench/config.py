"""What a user sets for the workbench."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkbenchConfig:
    """Where the tools work, and what their commands may use."""

    root: Path
    """The workspace: the one folder that is read and written."""
    project: Path | None = None
    """The project whose state no command may see, where it is another folder."""
    prefix: str = ""
    """What the tools' names begin with."""
    seconds: float = 120.0
    """How long a command or a test run may take where its call does not say."""
    processes: int = 512
    """Processes and threads that one command may have at a time."""
    sandboxes: tuple[str, ...] = ("bubblewrap", "landlock")
    """The ways to hold a command, the first that works here is taken; without one, no command runs."""
    passed: tuple[str, ...] = ()
    """Names of further variables of our environment that commands get."""
