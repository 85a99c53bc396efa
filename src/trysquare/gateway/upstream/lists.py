"""Lists of a server (tools, prompts, resources, templates), read page by page and bounded in number and bytes.

A server decides how much it lists, so the reader decides how much it takes: what is over a bound is left out and said
so, and nothing of it is decoded, compared or stored.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import hidden_kinds, one_line
from trysquare.gateway.answers.json_tokens import is_deeper
from trysquare.gateway.server import ServerConfig
from trysquare.gateway.upstream import frames
from trysquare.gateway.upstream.broken_frames import MARK

MAX_PAGES = 1000
_EMPTY_PAGES = 50
"""So many pages without an entry, and the list is taken for endless."""
LONGEST_PAGE = 32 * 1024 * 1024
"""Bytes of a page that is looked into at all; what is not taken of it is skipped over, not read."""
_LARGE = 64 * 1024
_MOST_NAMED, _MOST_TOLD = 5, 20
_MOST_NESTED = 100
"""Levels of one definition: it is compared, shown and checked by functions that call themselves."""
_EMPTY = msgspec.Raw(b"")
_NAME = re.compile(rb'"(?:name|uri|uriTemplate)"\s*:\s*"([^"\\]{1,80})"')

AskPage: TypeAlias = Callable[[JsonObject], Awaitable[bytes]]
"""Sends the request for one page with these parameters, and gives its result in JSON."""


@dataclass(kw_only=True, slots=True)
class BoundedList:
    """What was taken of one list, and what was left out of it."""

    kind: str
    """The method's first part: `tools`, `prompts`, `resources` or `resources/templates`."""
    limits: ServerConfig
    entries: list[JsonObject] = field(default_factory=list[JsonObject])
    size: int = 0
    over: int = 0
    """Entries beyond the number or the bytes of all."""
    too_large: int = 0
    unseen: list[str] = field(default_factory=list[str])
    """Names that hold characters which nobody sees."""
    unreadable: list[str] = field(default_factory=list[str])
    """Each by its name, with what is wrong about it."""
    notes: list[str] = field(default_factory=list[str])

    @property
    def key(self) -> str:
        """The name of the list in a page."""
        return "resourceTemplates" if self.kind == "resources/templates" else self.kind

    @property
    def is_full(self) -> bool:
        """Whether nothing more is taken."""
        return self.over > 0 or len(self.entries) >= self.limits.max_tools

    def add(self, body: bytes) -> str:
        """Take what fits of a page, and return the cursor of the next one."""
        if len(body) > max(LONGEST_PAGE, self.limits.max_catalogue_bytes):
            self.notes.append(f"a page of {len(body)} bytes, more than any page may have")
            return ""
        fields = frames.decode_fields(body)
        for number, raw in enumerate(frames.decode_parts(fields.get(self.key, _EMPTY))):
            if (entry := bytes(raw)).startswith(b"{"):
                self._add(entry, number)
        return frames.decode_text(fields.get("nextCursor", _EMPTY))

    def _add(self, raw: bytes, number: int) -> None:
        size = len(raw)
        if size > self.limits.max_definition_bytes:
            self.too_large += 1
        elif len(self.entries) >= self.limits.max_tools or self.size + size > self.limits.max_catalogue_bytes:
            self.over += 1
        else:
            try:
                if MARK in raw or is_deeper(raw, _MOST_NESTED):
                    raise frames.NotAFrame("it holds what JSON does not have, or is nested too deep")
                entry = frames.decode_object(raw)
            except frames.NotAFrame as error:
                found = _NAME.search(raw)
                called = f"`{one_line(found[1].decode(errors='replace'))}`" if found else f"entry {number + 1}"
                self.unreadable.append(f"{called} ({error})")
                return
            name = entry.get("name")
            if isinstance(name, str) and hidden_kinds(name):
                # It could not be told from another by whoever reads it, and a model could not write it.
                self.unseen.append(one_line(name, 80))
                return
            self.size += size
            self.entries.append(entry)

    def left_out(self) -> tuple[str, ...]:
        """What was left out of the list; empty where all of it was taken."""
        limits, word = self.limits, self.kind.rpartition("/")[2]
        told = [f"{one} of its {word}" for one in self.unreadable[:_MOST_TOLD]] + self.notes
        if len(self.unreadable) > _MOST_TOLD:
            told.append(f"{len(self.unreadable) - _MOST_TOLD} {word} more that cannot be read")
        if self.over:
            bound = f"max_tools={limits.max_tools}, max_catalogue_bytes={limits.max_catalogue_bytes}"
            told.append(f"{self.over} {word} or more beyond {bound}")
        if self.too_large:
            told.append(f"{self.too_large} {word} with more than max_definition_bytes={limits.max_definition_bytes}")
        if self.unseen:
            names = ", ".join(f"`{name}`" for name in self.unseen[:_MOST_NAMED])
            told.append(f"{len(self.unseen)} {word} with invisible characters in the name: {names}")
        return tuple(told)


async def read_list(kind: str, limits: ServerConfig, ask: AskPage) -> BoundedList:
    """All pages of a list, as far as it is taken."""
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
        if found.is_full or empty >= _EMPTY_PAGES or len(cursors) >= MAX_PAGES:
            found.notes.append(f"the pages after the first {len(cursors) + 1}")
            return found
        cursors.add(cursor)
        params = {"cursor": cursor}
