"""What a user sets for the workbench."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trysquare.files.globs import matches
from trysquare.store.location import FOLDER

GUARDED = frozenset({".git", FOLDER})
"""Folders that only their owners write: what is in them decides what git and Trysquare run and allow."""


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
    hidden: tuple[str, ...] = ()
    """Paths that no tool reads or names, as `[TOOL=]GLOB` relative to the workspace, or absolute for commands alone."""

    def hidden_from(self, tool: str) -> tuple[str, ...]:
        """The patterns of the paths that are hidden from a tool.

        `.git` and the state folder are left out: the workbench guards them in ways of its own.
        """
        own = [pattern for name, pattern in map(_named, self.hidden) if matches(tool, name)]
        return tuple(each for each in own if each.startswith("/") or not GUARDED & set(each.casefold().split("/")))


def _named(entry: str) -> tuple[str, str]:
    """The tool and the pattern of an entry; one without a tool holds for all."""
    tool, separator, pattern = entry.partition("=")
    return (tool, pattern) if separator else ("*", entry)
