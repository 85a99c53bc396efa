"""A journal: lines that stand in a file as soon as they are written, whatever becomes of the process.

Each process has its own, and holds a lock on it for as long as it lives. A process that is killed leaves its journal
behind unlocked, and the next one takes it over. Lines go to one of two files in turn: while those of the one are
carried into the database, new ones go to the other, so that neither grows for ever.

A line that was written survives the end of the process, `kill -9` included. The disk is not waited for, so that the
last moments before a power failure can be lost.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_FLAGS = os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC


class Journal:
    """The journal of this process. Whoever uses it from several threads holds a lock of their own around it."""

    def __init__(self, folder: Path, owner: str) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._paths = tuple(folder / f"{owner}.{number}" for number in (0, 1))
        # Locked before it has its name: nobody can take it for one that was left behind.
        unnamed = folder / f"{owner}.new"
        first = os.open(unnamed, _FLAGS, 0o600)
        fcntl.flock(first, fcntl.LOCK_EX)
        unnamed.rename(self._paths[0])
        self._files = (first, os.open(self._paths[1], _FLAGS, 0o600))
        self._current = 0
        self._torn = False
        self.other_holds_lines = False

    def append(self, line: bytes) -> None:
        """Write one line, which must hold no line break. Raises `OSError` where it could not be written whole."""
        whole = b"\n" + line + b"\n" if self._torn else line + b"\n"
        written = os.write(self._files[self._current], whole)
        # What was cut off is no line; the next one must not be glued to it.
        self._torn = written < len(whole)
        if self._torn:
            raise OSError("the journal's disk took only a part of the line")

    def turn(self) -> None:
        """Write the following lines to the other file, which must be clear."""
        self._current = 1 - self._current
        self.other_holds_lines = True

    def clear_other(self) -> None:
        """Empty the file that is not being written to: its lines are kept elsewhere by now."""
        os.ftruncate(self._files[1 - self._current], 0)
        self.other_holds_lines = False

    def remove(self) -> None:
        """Remove the journal: all its lines are kept elsewhere."""
        _remove(self._paths)
        self.close()

    def close(self) -> None:
        """Leave the journal as it is, to whoever takes it over."""
        for file in self._files:
            os.close(file)


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftJournal:
    """The journal of a process that has ended without carrying it over."""

    owner: str
    lines: list[bytes]


@contextmanager
def left_journals(folder: Path) -> Generator[list[LeftJournal]]:
    """The journals that were left behind. They are removed at the end of the block, if it ends well."""
    held: list[int] = []
    try:
        paths = sorted(folder.glob("*.0"))
        owners = [path.stem for path in paths if _taken(path, held)]
        yield [LeftJournal(owner=owner, lines=_lines(folder, owner)) for owner in owners]
        for owner in owners:
            _remove(tuple(folder / f"{owner}.{number}" for number in (1, 0)))
    finally:
        for file in held:
            os.close(file)


def _taken(path: Path, held: list[int]) -> bool:
    """Take a journal that nobody holds, and say whether it was there to be taken."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    held.append(file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    # Another process may have taken it over and removed it before we had the lock.
    return path.exists()


def _lines(folder: Path, owner: str) -> list[bytes]:
    paths = [folder / f"{owner}.{number}" for number in (0, 1)]
    return [line for path in paths if path.exists() for line in path.read_bytes().split(b"\n") if line]


def _remove(paths: tuple[Path, ...]) -> None:
    # The one that carries the lock last: until then, the rest is known to belong to it.
    for path in sorted(paths, reverse=True):
        path.unlink(missing_ok=True)
