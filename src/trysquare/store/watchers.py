"""Pages that are open, and processes that run tasks: each has a locked file beside the state, so that others know.

The system drops the lock with its process, however that ends, so no entry outlives its page.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from trysquare.store.location import prepare_folder

_FOLDER = "watchers"


def is_watched(folder: Path) -> bool:
    """Whether a page that shows the state of this folder is open."""
    try:
        entries = os.listdir(folder / _FOLDER)
    except OSError:
        return False
    return any(is_held(folder / _FOLDER / name) for name in entries)


def is_held(entry: Path) -> bool:
    """Whether its process lives. Asked for with a shared lock, so that two who ask do not take each other for one."""
    try:
        descriptor = os.open(entry, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        with suppress(OSError):
            entry.unlink()
        return False
    finally:
        os.close(descriptor)


@contextmanager
def watching(folder: Path) -> Generator[None]:
    """Say in a state directory that a page is open, until the block ends."""
    with holding(folder / _FOLDER):
        yield


@contextmanager
def holding(entries: Path) -> Generator[str]:
    """Hold an entry in a directory of a state directory until the block ends, and yield its name."""
    prepare_folder(entries.parent)
    entries.mkdir(mode=0o700, exist_ok=True)
    name = f"{os.getpid()}-{secrets.token_hex(4)}"
    # Locked before it has its name: an entry without a lock is taken for one that was left behind.
    unnamed = entries.parent / f".{name}.watcher"
    descriptor = os.open(unnamed, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        unnamed.rename(entries / name)
        yield name
    finally:
        with suppress(OSError):
            (entries / name).unlink()
        os.close(descriptor)


class Revision:
    """A number that changes whenever a database file was written, by whichever process and connection.

    SQLite counts that for a connection of its own. Reading it takes some microseconds, and needs no lock.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._opened = 0
        self._lock = threading.Lock()

    def read(self) -> tuple[int, int]:
        """The revision now; (0, 0) while there is no file."""
        with self._lock:
            try:
                about = os.stat(self._path)
                if self._connection is None or self._file != (about.st_dev, about.st_ino):
                    self._reopen((about.st_dev, about.st_ino))
                assert self._connection is not None
                return self._opened, int(self._connection.execute("PRAGMA data_version").fetchone()[0])
            except (OSError, sqlite3.Error):
                self._drop()
                return self._opened, 0

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._drop()

    def _reopen(self, file: tuple[int, int]) -> None:
        self._drop()
        self._connection = sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True, check_same_thread=False)
        self._file, self._opened = file, self._opened + 1

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._file = None
