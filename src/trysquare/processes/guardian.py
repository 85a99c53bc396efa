"""Guardian: ends what a process has started once that process is gone, however it went.

Run as a program of its own (`python -I -S guardian.py TOKEN PID`) it holds a pipe to its maker. It imports the standard
library only, because it is started before anything else and must cost next to nothing. The pipe brings lines: `+PID
STARTED` for a process that leads a session of its own, `-PID` once it has ended, `!` when the maker has cleaned up by
itself. When the maker dies, even by kill -9, what is left of those sessions is ended, and so is every process that
carries the maker's token in its environment.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

TOKEN_VARIABLE = "TRYSQUARE_STARTED_BY"
"""The variable by which a process is known as ours, and its descendants with it."""
_GRACE = 1.0
_GIVE_UP = 10.0
_STEP = 0.02
_QUIET = 5
"""Looks in a row that must find nothing: a child that has not yet begun its program carries no token yet."""


class Entry(NamedTuple):
    """One process of the system, told from a later one with the same number by the time it started."""

    pid: int
    session: int
    started: int


def processes() -> Iterator[Entry]:
    """Every living process, where the system has a /proc; else none."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if name.isdigit() and (entry := look_up(int(name))) is not None:
            yield entry


def look_up(pid: int) -> Entry | None:
    """The living process with this number, or None. One that has ended and waits to be collected is not living."""
    stat = _contents(f"/proc/{pid}/stat")
    # The program's name stands in brackets and may hold anything, so what counts begins after the last one.
    fields = stat[stat.rfind(b")") + 2 :].split()
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None
    return Entry(pid, int(fields[3]), int(fields[19]))


def carries(entry: Entry, token: str) -> bool:
    """Whether a process was started with a token that begins so."""
    mark = f"{TOKEN_VARIABLE}={token}".encode()
    return any(line.startswith(mark) for line in _contents(f"/proc/{entry.pid}/environ").split(b"\0"))


def send_signal(entry: Entry, number: int) -> None:
    """Signal this very process, and none that has its number by now."""
    try:
        handle = os.pidfd_open(entry.pid)
    except (OSError, AttributeError):
        return
    try:
        if look_up(entry.pid) == entry:
            signal.pidfd_send_signal(handle, number)
    except OSError:
        return
    finally:
        os.close(handle)


def end_all(find: Callable[[], list[Entry]], *, grace: float = _GRACE, quiet: int = 1) -> None:
    """End what is found, politely at first, until nothing is found any more."""
    began, asked, empty = time.monotonic(), set[Entry](), 0
    while empty < quiet and time.monotonic() - began < _GIVE_UP:
        found = find()
        empty = 0 if found else empty + 1
        for entry in found:
            if time.monotonic() - began > grace:
                send_signal(entry, signal.SIGKILL)
            elif entry not in asked:
                send_signal(entry, signal.SIGTERM)
        asked.update(found)
        if empty < quiet:
            time.sleep(_STEP)


def _contents(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


class _Watch:
    """What the maker has told of, and what of it is left."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._sessions: dict[int, int] = {}
        self._rest = b""
        self.dismissed = False

    def hear(self, chunk: bytes) -> None:
        """Take what came over the pipe; what a killed maker left unfinished counts as not said."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            words = line[1:].split()
            if line.startswith(b"+"):
                self._sessions[int(words[0])] = int(words[1])
            elif line.startswith(b"-"):
                self._sessions.pop(int(words[0]), None)
            elif line == b"!":
                self.dismissed = True

    def left(self) -> list[Entry]:
        """The living processes that the maker started, its guardian aside."""
        own = os.getpid()
        return [entry for entry in processes() if entry.pid != own and self._is_ours(entry)]

    def _is_ours(self, entry: Entry) -> bool:
        started = self._sessions.get(entry.session)
        if started is not None and (entry.pid != entry.session or entry.started == started):
            leader = look_up(entry.session)
            # A session keeps its number as long as it has a member; with another leader it is not the one we know.
            if leader is None or leader.started == started:
                return True
        return carries(entry, self._token)


def main(token: str, maker: int) -> None:
    """Wait until the maker is gone, then end what it has left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watch = _Watch(token)
    poll = select.poll()
    poll.register(0, select.POLLIN)
    # The pipe alone does not do: a process that the maker forked may hold its other end open.
    handle = _handle_of(maker)
    if handle is not None:
        poll.register(handle, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if 0 in ready:
            chunk = os.read(0, 65536)
            watch.hear(chunk)
            if chunk:
                continue
        break
    if not watch.dismissed:
        end_all(watch.left, quiet=_QUIET)


def _handle_of(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
