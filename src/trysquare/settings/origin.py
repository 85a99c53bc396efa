"""Origin: where a value came from, so that a wrong one can be found and a right one explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Source = Literal["default", "file", "environment", "option"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where a value came from: the kind of place, and the place itself (`trysquare.toml:3`, `--prefix`)."""

    source: Source
    place: str


DEFAULT = Origin(source="default", place="default")


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """A value as somebody wrote it, and where."""

    value: Any
    origin: Origin


Layer = Mapping[str, Given]
"""What one source says, by the settings' full names."""
