"""Resource: something to read at an address; and templates, which stand for many addresses."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias
from urllib.parse import unquote

from trysquare.core.content import ResourceContents
from trysquare.core.context import CallContext
from trysquare.core.prompt import Complete

Read: TypeAlias = Callable[[str, dict[str, str], CallContext], Awaitable[Sequence[ResourceContents]]]
"""Read an address: the address, the template's values in it, the context."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """Something to read at one address."""

    uri: str
    name: str
    read: Read
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None


@dataclass(frozen=True, kw_only=True)
class ResourceTemplate:
    """Many addresses of one form: `{name}` stands for one part, `{name*}` for the rest of a path."""

    uri_template: str
    name: str
    read: Read
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    complete: Complete | None = field(default=None)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = re.split(r"\{(\w+)(\*?)\}", self.uri_template)
        text = re.escape(parts[0])
        for name, rest, literal in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            text += f"(?P<{name}>{'.+' if rest else '[^/]+'})" + re.escape(literal)
        return re.compile(text)

    def match(self, uri: str) -> dict[str, str] | None:
        """The values in an address of this form, or None."""
        found = self._pattern.fullmatch(uri)
        return None if found is None else {name: unquote(value) for name, value in found.groupdict().items()}
