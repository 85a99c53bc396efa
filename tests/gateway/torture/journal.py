"""What the servers that misbehave tell of themselves, as it happens."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import tempfile
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

_LONGEST = 65536


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One thing that a server did, or was sent."""

    server: str
    pid: int
    what: str
    fields: dict[str, Any] = field(default_factory=dict[str, Any])


class Journal:
    """Everything that happened, and a way to wait for more."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[Entry] = []
        self._news = asyncio.Event()

    def add(self, raw: bytes) -> None:
        """Take what a server tells."""
        told = msgspec.json.decode(raw, type=dict[str, Any])
        entry = Entry(server=told.pop("server"), pid=told.pop("pid"), what=told.pop("what"), fields=told)
        self.entries.append(entry)
        self._news.set()

    def calls(self, server: str, tool: str) -> list[Entry]:
        """The calls of a tool that a server has received."""
        of_server = (entry for entry in self.entries if entry.server == server and entry.what == "tools/call")
        return [entry for entry in of_server if entry.fields["tool"] == tool]

    def happened(self, server: str, what: str) -> list[Entry]:
        """What a server told of one kind."""
        return [entry for entry in self.entries if entry.server == server and entry.what == what]

    async def until(self, found: Callable[[], bool | list[Entry]], seconds: float) -> bool:
        """Wait for something to happen, but not for ever."""
        try:
            async with asyncio.timeout(seconds):
                while not found():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return False
        return True


@contextlib.asynccontextmanager
async def open_journal() -> AsyncGenerator[Journal]:
    """A journal on a socket that servers write to."""
    with tempfile.TemporaryDirectory(prefix="torture") as folder:
        path = Path(folder) / "journal"
        journal = Journal(path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
            receiver.bind(str(path))
            receiver.setblocking(False)
            loop = asyncio.get_running_loop()
            loop.add_reader(receiver, lambda: journal.add(receiver.recv(_LONGEST)))
            try:
                yield journal
            finally:
                loop.remove_reader(receiver)
