"""Origin: the label that every result of a server behind the gateway carries in its `_meta`."""

from __future__ import annotations

from typing import NamedTuple

from trysquare.core.types import JsonObject

ORIGIN = "trysquare/origin"
"""The name of our label in the `_meta` of a result."""


class Origin(NamedTuple):
    """Where a result comes from, and what was done to it on the way."""

    server: str
    tool: str
    outcome: str = "done"
    notes: tuple[str, ...] = ()
    replayed: bool = False

    def label(self, *, cleaned: int = 0, handle: str | None = None) -> JsonObject:
        """The label for `_meta`."""
        about: JsonObject = {"server": self.server, "tool": self.tool, "outcome": self.outcome}
        if not self.tool:
            del about["tool"]
        if self.notes:
            about["notes"] = list(self.notes)
        if self.replayed:
            about["replayed"] = True
        if cleaned:
            about["hidden_characters_removed"] = cleaned
        if handle is not None:
            about["handle"] = handle
        return {ORIGIN: about}
