"""What a user sets for the debugger."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class DebugConfig:
    """Where programs are debugged, and what is allowed."""

    root: Path
    """The workspace where a call names none."""
    timeout: float = 60.0
    """Seconds that a program may run before it has to stop or end."""
    shows_secrets: bool = False
    """Whether values whose names say that they are secret are shown all the same."""
    prefix: str = "debug"
    """What the tools' names begin with; answers name the tools as clients call them."""
