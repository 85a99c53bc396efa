"""Reading, writing and locking of `workflow_state.json` in a project."""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
import time
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from trysquare.bots.workflow.state_file import is_foreign
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.files.root import DirectoryRoot
from trysquare.store.location import FOLDER, prepare_folder

NAME = "workflow_state.json"
MAX_BYTES = 64 * 1024 * 1024
LOCK_SECONDS = 2.0
_TICK_NS = 20_000_000
"""A file changed within this time may change again without a new modification time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StateFileVersion:
    digest: str | None = None
    """None without a file."""
    data: bytes | None = None
    """The contents, if they were read."""
    problem: str | None = None
    """Why an existing file could not be read."""


class StateFileSync:
    """The state files of one bot in one project. A file is written whole or not at all, by one process at a time."""

    def __init__(self, project: Path, bot: str, *, legacy: Path | None = None) -> None:
        self.project = project
        self.bot = bot
        self._legacy = legacy
        self._cache: dict[str, tuple[tuple[int, ...], StateFileVersion]] = {}
        self._thread_lock = threading.Lock()

    def choose(self, taken: Collection[str]) -> str:
        """The path of a bot's state file: the plain one for the first bot of a project, else one of its own."""
        data = None if NAME in taken else self.read(NAME, contents=True).data
        foreign = data is not None and is_foreign(text_of(data), self.bot)
        return f"{FOLDER}/{self.bot}/{NAME}" if NAME in taken or foreign else NAME

    def read(self, path: str, *, contents: bool = False) -> StateFileVersion:
        """The present version. Without `contents`, a file that has not changed is not read again."""
        signature = self._signature(path)
        if signature is None:
            return StateFileVersion()
        cached = self._cache.get(path)
        if cached is not None and cached[0] == signature and not contents:
            return cached[1]
        now = time.time_ns()
        version = self._read(path)
        if now - signature[2] > _TICK_NS and self._signature(path) == signature:
            self._cache[path] = signature, replace(version, data=None)
        return version

    def read_legacy(self) -> tuple[str, str] | None:
        """Path and text of a state file in the bot's own directory, its former location."""
        if self._legacy is None:
            return None
        try:
            with DirectoryRoot(self._legacy) as folder:
                return str(self._legacy / NAME), folder.read_text(NAME, limit=MAX_BYTES)
        except (ToolError, OSError):
            return None

    def write(self, path: str, data: bytes, digest: str) -> None:
        """Replace the file. Call it inside `locked`."""
        # Older than any later change, so that the modification time tells our own write from all others.
        written = time.time_ns() - 2 * _TICK_NS
        with DirectoryRoot(self.project) as folder:
            folder.write_bytes(path, data, modified_ns=written)
        signature = self._signature(path)
        if signature is not None and signature[1:3] == (len(data), written):
            self._cache[path] = signature, StateFileVersion(digest=digest)

    def quarantine(self, path: str) -> str:
        """Rename an unreadable file, with the time in its name; returns the name."""
        file = self.project / path
        renamed = file.with_name(f"{NAME}.corrupt-{_stamp()}")
        os.rename(file, renamed)
        return renamed.name

    def save_refused(self, path: str, data: bytes) -> None:
        """Store a copy of a refused edit before the file is overwritten."""
        with DirectoryRoot(self.project) as folder:
            folder.write_bytes(f"{path}.refused-{_stamp()}", data)

    def damaged_databases(self) -> tuple[str, ...]:
        """Quarantined copies of damaged databases in this project, oldest first."""
        found = (self.project / FOLDER).glob("state.db.corrupt-*")
        return tuple(sorted(f"{FOLDER}/{each.name}" for each in found if not each.name.endswith(("-wal", "-shm"))))

    def sweep(self, path: str) -> None:
        """Remove the temporary files of killed processes. Call it inside `locked`."""
        for left in (self.project / path).parent.glob(f".{NAME}.*.tmp"):
            left.unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Generator[None]:
        """Lock against exports of other threads and processes; a killed process releases it."""
        end = time.monotonic() + LOCK_SECONDS
        # Threads of this process queue here, so that only one of them polls the file lock.
        if not self._thread_lock.acquire(timeout=LOCK_SECONDS):
            raise _lock_timeout()
        try:
            lock = self._open_lock()
            try:
                _acquire(lock, end)
                yield
            finally:
                os.close(lock)
        finally:
            self._thread_lock.release()

    def _open_lock(self) -> int:
        file, flags = self.project / FOLDER / "window.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
        try:
            return os.open(file, flags, 0o600)
        except FileNotFoundError:
            prepare_folder(file.parent)
            return os.open(file, flags, 0o600)

    def _signature(self, path: str) -> tuple[int, ...] | None:
        try:
            found = os.stat(self.project / path, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode)

    def _read(self, path: str) -> StateFileVersion:
        try:
            with DirectoryRoot(self.project) as folder:
                data = folder.read_bytes(path, limit=MAX_BYTES)
        except NotFound:
            return StateFileVersion()
        except (ToolError, OSError) as error:
            return StateFileVersion(digest="", problem=str(error))
        return StateFileVersion(digest=digest_of(data), data=data)


def text_of(data: bytes) -> str:
    """Contents as text; invalid bytes are replaced, which makes the text unreadable."""
    return data.decode("utf-8-sig", "replace")


def digest_of(data: bytes) -> str:
    """The hash of a state file, as it was always recorded: of its head up to the first bracket, and of the rest."""
    cut = data.find(b"[") + 1
    head, rest = hashlib.sha256(data[:cut]), hashlib.sha256(memoryview(data)[cut:])
    return hashlib.sha256(head.digest() + rest.digest()).hexdigest()


def _stamp() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")


def _acquire(lock: int, end: float) -> None:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise _lock_timeout() from None
            time.sleep(0.002)
        else:
            return


def _lock_timeout() -> ToolError:
    return ToolError("timeout while waiting for other writers of the state file", code=ErrorCode.STATE_UNAVAILABLE)
