"""Edits of a page, and a document into which they were merged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from trysquare.bots.graph import LARGE
from trysquare.bots.rendering.template import Record

Pointer: TypeAlias = tuple[str | int, ...]
Problem: TypeAlias = tuple[Pointer, str]
"""Where in a value something is wrong, and what."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Merged:
    """A document with the edits of a page, what changed, and what could not be merged."""

    value: Any
    changes: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Edits:
    """A page before and after it was edited, read back with its template."""

    before: Record
    after: Record
    confirmed: bool = False
    """Whether a large deletion was confirmed."""
    confirm_from: int = LARGE


def with_problems(made: Merged, problems: Iterable[Problem], value: Any) -> Merged:
    """The merge, or the unchanged value where the edits would make the document invalid."""
    found = tuple(f"The edits cannot be merged: {message}" for _, message in problems)
    return replace(made, value=value, changes=(), conflicts=(*made.conflicts, *found)) if found else made
