"""Paginated lists of a server, bounded in number and bytes; entries over a limit are skipped undecoded and reported."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from trysquare.core.json import JsonObject
from trysquare.core.threads import run_in_thread
from trysquare.core.untrusted import hidden_kinds, one_line
from trysquare.gateway.models import ServerConfig
from trysquare.gateway.upstream import codec
from trysquare.gateway.upstream.codec import MARK, is_deeper

MAX_PAGES = 1000
_EMPTY_PAGES = 50
"""Consecutive empty pages after which a list counts as endless."""
MAX_PAGE_BYTES = 32 * 1024 * 1024
"""Maximum bytes of a page."""
_LARGE = 64 * 1024
_MAX_NAMES, _MAX_REPORTED = 5, 20
_MAX_NESTING = 100
"""Levels of one definition, which is processed by recursive functions."""
_EMPTY = msgspec.Raw(b"")
_NAME = re.compile(rb'"(?:name|uri|uriTemplate)"\s*:\s*"([^"\\]{1,80})"')

AskPage: TypeAlias = Callable[[JsonObject], Awaitable[bytes]]
"""Request of one page with these parameters -> its result in JSON."""


@dataclass(kw_only=True, slots=True)
class BoundedList:
    """The accepted entries of one list, and what was left out."""

    kind: str
    """The prefix of the method: `tools`, `prompts`, `resources` or `resources/templates`."""
    limits: ServerConfig
    entries: list[JsonObject] = field(default_factory=list[JsonObject])
    size: int = 0
    over: int = 0
    """Number of entries over `max_tools` or `max_catalogue_bytes`."""
    too_large: int = 0
    hidden: list[str] = field(default_factory=list[str])
    """Names with hidden characters."""
    unreadable: list[str] = field(default_factory=list[str])
    """Each by name, with its problem."""
    notes: list[str] = field(default_factory=list[str])

    def add(self, body: bytes) -> str:
        """Add the entries of a page within the limits, and return the next cursor."""
        if len(body) > max(MAX_PAGE_BYTES, self.limits.max_catalogue_bytes):
            self.notes.append(f"a page of {len(body)} bytes, over the limit")
            return ""
        fields = codec.decode_fields(body)
        key = "resourceTemplates" if self.kind == "resources/templates" else self.kind
        for number, raw in enumerate(codec.decode_parts(fields.get(key, _EMPTY))):
            if (entry := bytes(raw)).startswith(b"{"):
                self._add(entry, number)
        return codec.decode_text(fields.get("nextCursor", _EMPTY))

    def _add(self, raw: bytes, number: int) -> None:
        size = len(raw)
        if size > self.limits.max_definition_bytes:
            self.too_large += 1
        elif len(self.entries) >= self.limits.max_tools or self.size + size > self.limits.max_catalogue_bytes:
            self.over += 1
        else:
            try:
                if MARK in raw or is_deeper(raw, _MAX_NESTING):
                    raise codec.InvalidFrame("invalid JSON, or nested too deep")
                entry = codec.decode_object(raw)
            except codec.InvalidFrame as error:
                found = _NAME.search(raw)
                called = f"`{one_line(found[1].decode(errors='replace'))}`" if found else f"entry {number + 1}"
                self.unreadable.append(f"{called} ({error})")
                return
            name = entry.get("name")
            if isinstance(name, str) and hidden_kinds(name):
                # It looks like another name, and a model could not write it.
                self.hidden.append(one_line(name, 80))
                return
            self.size += size
            self.entries.append(entry)

    def left_out(self) -> tuple[str, ...]:
        limits, word = self.limits, self.kind.rpartition("/")[2]
        notes = [f"{one} of its {word}" for one in self.unreadable[:_MAX_REPORTED]] + self.notes
        if len(self.unreadable) > _MAX_REPORTED:
            notes.append(f"{len(self.unreadable) - _MAX_REPORTED} more invalid {word}")
        if self.over:
            bound = f"max_tools={limits.max_tools}, max_catalogue_bytes={limits.max_catalogue_bytes}"
            notes.append(f"{self.over} {word} or more beyond {bound}")
        if self.too_large:
            notes.append(f"{self.too_large} {word} with more than max_definition_bytes={limits.max_definition_bytes}")
        if self.hidden:
            names = ", ".join(f"`{name}`" for name in self.hidden[:_MAX_NAMES])
            notes.append(f"{len(self.hidden)} {word} with invisible characters in the name: {names}")
        return tuple(notes)


async def read_list(kind: str, limits: ServerConfig, ask: AskPage) -> BoundedList:
    found = BoundedList(kind=kind, limits=limits)
    cursors: set[str] = set()
    params: JsonObject = {}
    empty = 0
    while True:
        body = await ask(params)
        before = len(found.entries)
        cursor = await run_in_thread(lambda body=body: found.add(body)) if len(body) > _LARGE else found.add(body)
        empty = 0 if len(found.entries) > before else empty + 1
        if not cursor or cursor in cursors:
            return found
        is_full = found.over > 0 or len(found.entries) >= limits.max_tools
        if is_full or empty >= _EMPTY_PAGES or len(cursors) >= MAX_PAGES:
            found.notes.append(f"the pages after the first {len(cursors) + 1}")
            return found
        cursors.add(cursor)
        params = {"cursor": cursor}
