"""The window: the state file that lies in a project for people to read, edit, copy and delete.

This file knows how the window is read, written and moved; what its contents mean for the state is decided elsewhere.
It is written whole or not at all, by one process at a time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
import time
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from trysquare.bots.state_file import Pieces, is_foreign
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.files.sealed_folder import SealedFolder
from trysquare.store.location import FOLDER, prepare_folder

NAME = "workflow_state.json"
MAX_BYTES = 64 * 1024 * 1024
LOCK_SECONDS = 2.0
_TICK_NS = 20_000_000
"""A file changed within this time may change again without its time showing it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What lay at the window's place."""

    digest: str | None = None
    """The hash of its contents; None where there is no file."""
    data: bytes | None = None
    """The contents, where they were read for this look."""
    problem: str | None = None
    """Why a file that is there could not be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Look:
    signature: tuple[int, ...]
    seen: Seen


class Hash(Protocol):
    """A hash that goes on with what it is given."""

    def update(self, data: bytes | bytearray, /) -> None:
        """Take more in."""
        ...

    def digest(self) -> bytes:
        """The hash of all that was taken in."""
        ...

    def copy(self) -> Hash:
        """Another one that goes on from here."""
        ...


class ProjectWindow:
    """The state files of one bot in one project."""

    def __init__(
        self,
        project: Path,
        bot: str,
        *,
        legacy: Path | None = None,
        open_folder: Callable[[Path], SealedFolder] = SealedFolder,
    ) -> None:
        self.project = project
        self.bot = bot
        self._legacy = legacy
        self._open_folder = open_folder
        self._looks: dict[str, _Look] = {}
        self._turn = threading.Lock()

    def choose(self, taken: Collection[str]) -> str:
        """The place of a bot's window: the plain one for the first bot of a project, else one of its own."""
        data = None if NAME in taken else self.look(NAME, contents=True).data
        foreign = data is not None and is_foreign(text_of(data), self.bot)
        return f"{FOLDER}/{self.bot}/{NAME}" if NAME in taken or foreign else NAME

    def look(self, path: str, *, contents: bool = False) -> Seen:
        """What lies there now. Without its contents, a file that has not changed since the last look is not read."""
        signature = self._signature(path)
        if signature is None:
            return Seen()
        kept = self._looks.get(path)
        if kept is not None and kept.signature == signature and not contents:
            return kept.seen
        now = time.time_ns()
        seen = self._looked(path)
        if now - signature[2] > _TICK_NS and self._signature(path) == signature:
            self._looks[path] = _Look(signature=signature, seen=replace(seen, data=None))
        return seen

    def read_legacy(self) -> tuple[str, str] | None:
        """Path and text of a state file that lies in the bot's own folder, where it was kept once."""
        if self._legacy is None:
            return None
        try:
            with SealedFolder(self._legacy) as folder:
                return str(self._legacy / NAME), folder.read_text(NAME, limit=MAX_BYTES)
        except (ToolError, OSError):
            return None

    def write(self, path: str, pieces: Pieces, digest: str) -> None:
        """Replace the window whole. Call it inside `locked`."""
        # Older than any change that comes after it, so that the time of the file tells our own writing from all others.
        written = time.time_ns() - 2 * _TICK_NS
        with self._open_folder(self.project) as folder:
            folder.write_bytes(path, pieces, modified_ns=written)
        signature = self._signature(path)
        if signature is not None and signature[1:3] == (sum(map(len, pieces)), written):
            self._looks[path] = _Look(signature=signature, seen=Seen(digest=digest))

    def set_aside(self, path: str) -> str:
        """Move what cannot be read out of the way, under a name that tells when; returns the name."""
        place = self.project / path
        aside = place.with_name(f"{NAME}.corrupt-{_stamp()}")
        os.rename(place, aside)
        return aside.name

    def keep_refused(self, path: str, data: bytes) -> None:
        """Keep a copy of an edit that was not taken over, before the file is written over."""
        with self._open_folder(self.project) as folder:
            folder.write_bytes(f"{path}.refused-{_stamp()}", data)

    def damaged_databases(self) -> tuple[str, ...]:
        """The copies of damaged databases that were set aside in this project, oldest first."""
        found = (self.project / FOLDER).glob("state.db.corrupt-*")
        return tuple(sorted(f"{FOLDER}/{each.name}" for each in found if not each.name.endswith(("-wal", "-shm"))))

    def sweep(self, path: str) -> None:
        """Remove what a killed process left half-written. Call it inside `locked`: nobody else is writing then."""
        place = self.project / path
        for left in place.parent.glob(f".{NAME}.*.tmp") if place.parent.is_dir() else ():
            left.unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Generator[None]:
        """Only one call at a time exports; a killed process lets go by itself."""
        end = time.monotonic() + LOCK_SECONDS
        # Threads of this process wait for one another here, so that only one of them asks the system again and again.
        if not self._turn.acquire(timeout=LOCK_SECONDS):
            raise _too_long()
        try:
            lock = self._open_lock()
            try:
                _take(lock, end)
                yield
            finally:
                os.close(lock)
        finally:
            self._turn.release()

    def _open_lock(self) -> int:
        place = self.project / FOLDER / "window.lock"
        flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
        try:
            return os.open(place, flags, 0o600)
        except FileNotFoundError:
            prepare_folder(place.parent)
            return os.open(place, flags, 0o600)

    def _signature(self, path: str) -> tuple[int, ...] | None:
        try:
            found = os.stat(self.project / path, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode)

    def _looked(self, path: str) -> Seen:
        try:
            with self._open_folder(self.project) as folder:
                data = folder.read_bytes(path, limit=MAX_BYTES)
        except NotFound:
            return Seen()
        except (ToolError, OSError) as error:
            return Seen(digest="", problem=str(error))
        return Seen(digest=digest_of(data), data=data)


def text_of(data: bytes) -> str:
    """Contents as text; bytes that are no text are marked, and make it unreadable."""
    return data.decode("utf-8-sig", "replace")


def digest_of(data: bytes) -> str:
    """The hash by which contents of a window are known again.

    What stands before the first history is hashed by itself. It changes with every move, and what comes after it is
    long and only grows: whoever writes it can go on from the hash of what was there before.
    """
    cut = data.find(b"[") + 1
    return joined_digest(data[:cut], hashlib.sha256(memoryview(data)[cut:]))


def joined_digest(head: bytes, rest: Hash) -> str:
    """The hash of contents whose head ends with the first bracket."""
    return hashlib.sha256(hashlib.sha256(head).digest() + rest.digest()).hexdigest()


def _stamp() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")


def _take(lock: int, end: float) -> None:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise _too_long() from None
            time.sleep(0.002)
        else:
            return


def _too_long() -> ToolError:
    return ToolError("others have been writing the state file for too long", code=ErrorCode.STATE_UNAVAILABLE)
