"""BotConfig: what the person who starts a server decides about a bot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class BotConfig:
    """Which bot is served, for which project, and how much its gates ask for."""

    folder: Path
    """The bot's folder."""
    project: Path
    """Where the work is done, unless a call names another folder."""
    project_from: str = "the working directory"
    """Where the project's folder was taken from, for people to read."""
    project_named: bool = False
    """Whether somebody named the project; a working directory that nobody named is only proposed."""
    strict: bool = False
    """Whether every close needs proof, and only what was delivered can be closed."""
    watch: bool = True
    """Whether changes of the bot's folder are taken over while the server runs."""
