"""Findings of a check: what is wrong in a bot's folder, where, and what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from trysquare.core.errors import ConfigurationError
from trysquare.core.json import JsonObject

FindingSeverity: TypeAlias = Literal["error", "warning"]
_CORRECT = "Correct it."


class DefinitionError(ConfigurationError):
    """A mistake in a bot's folder, of a kind that programs can tell."""

    def __init__(self, message: str, *, code: str, where: str, hint: str | None = None) -> None:
        super().__init__(message, where=where, hint=hint)
        self.code = code


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One mistake: an error keeps the bot from being loaded, a warning makes a part of it useless."""

    code: str
    file: str
    line: int
    message: str
    remedy: str
    severity: FindingSeverity = "error"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message} {self.remedy}"

    def to_json(self) -> JsonObject:
        names = ("code", "severity", "file", "line", "message", "remedy")
        return {name: getattr(self, name) for name in names}


def finding_of(error: ConfigurationError, root: Path) -> Finding:
    """The finding that an error says, with its place in the folder."""
    where = error.where or ""
    found = re.fullmatch(r"(.*?)(?::(\d+))?", where, re.DOTALL)
    path, line = (where, None) if found is None else (found[1], found[2])
    return Finding(
        code=getattr(error, "code", "invalid"),
        file=path.removeprefix(str(root)).lstrip("/") or "bot_config.json",
        line=int(line or 1),
        message=error.message,
        remedy=error.hint or _CORRECT,
    )
