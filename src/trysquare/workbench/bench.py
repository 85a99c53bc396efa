"""Bench: what the tools of one workspace share."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from trysquare.workbench.config import WorkbenchConfig
from trysquare.workbench.finding.grep import Grep
from trysquare.workbench.seen import Seen
from trysquare.workbench.shell.sandbox import Sandbox
from trysquare.workbench.undo_journal import UndoJournal
from trysquare.workbench.workspace import Workspace


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """A workspace, with what is known of it and what is kept for it."""

    config: WorkbenchConfig
    workspace: Workspace
    sandbox: Sandbox
    grep: Grep
    undo: UndoJournal
    seen: Seen = field(default_factory=Seen)
    writing: threading.Lock = field(default_factory=threading.Lock)
    """One change at a time: what is checked before a change must still hold when it is made."""
