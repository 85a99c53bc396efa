"""Reaper: a separate program that ends the children of a process once that process is gone.

Run as `python -I -S reaper.py TOKEN PID`, it imports the standard library only, because it is started before anything
else. Its stdin brings lines: `+PID STARTED` for a process that leads a session, `-PID` once it has ended, `!` when the
parent has cleaned up. When the parent dies, even by kill -9, the rest of those sessions is ended, and so is every
process with the parent's token in its environment.
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
"""Variable that marks a process and its descendants."""
_GRACE = 1.0
_GIVE_UP = 10.0
_STEP = 0.02
_QUIET = 5
"""Scans in a row that must find nothing: a child before its exec has no token yet."""


class Entry(NamedTuple):
    """A process; its start time distinguishes it from a later one with the same number."""

    pid: int
    session: int
    started: int


def processes() -> Iterator[Entry]:
    """All running processes, if the system has /proc."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if name.isdigit() and (entry := look_up(int(name))) is not None:
            yield entry


def look_up(pid: int) -> Entry | None:
    """Running process with this number, or None; a zombie does not count."""
    stat = _contents(f"/proc/{pid}/stat")
    # The program's name is in brackets and may contain anything, so the fields begin after the last one.
    fields = stat[stat.rfind(b")") + 2 :].split()
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None
    return Entry(pid, int(fields[3]), int(fields[19]))


def carries(entry: Entry, token: str) -> bool:
    """Whether the environment of a process has a token with this prefix."""
    mark = f"{TOKEN_VARIABLE}={token}".encode()
    return any(line.startswith(mark) for line in _contents(f"/proc/{entry.pid}/environ").split(b"\0"))


def handle_of(pid: int) -> int | None:
    """Descriptor of a process, readable once it has ended; None if it is gone or the system has no such thing."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None


def send_signal(entry: Entry, number: int) -> None:
    """Signal exactly this process, and not a later one with its number."""
    handle = handle_of(entry.pid)
    if handle is None:
        return
    try:
        if look_up(entry.pid) == entry:
            signal.pidfd_send_signal(handle, number)
    except OSError:
        return
    finally:
        os.close(handle)


def end_all(find: Callable[[], list[Entry]], *, grace: float = _GRACE, quiet: int = 1) -> None:
    """Terminate what is found, then kill it, until nothing is found."""
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
    """Sessions reported by the parent."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._sessions: dict[int, int] = {}
        self._rest = b""
        self.dismissed = False

    def receive(self, chunk: bytes) -> None:
        """Read lines of the pipe; an incomplete one does not count."""
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
        """Running processes of the parent, without this one."""
        own = os.getpid()
        return [entry for entry in processes() if entry.pid != own and self._is_ours(entry)]

    def _is_ours(self, entry: Entry) -> bool:
        started = self._sessions.get(entry.session)
        if started is not None and (entry.pid != entry.session or entry.started == started):
            leader = look_up(entry.session)
            # A session keeps its number while it has members; with another leader it is a different one.
            if leader is None or leader.started == started:
                return True
        return carries(entry, self._token)


def main(token: str, parent: int) -> None:
    """Wait until the parent is gone, then end its processes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watch = _Watch(token)
    poll = select.poll()
    poll.register(0, select.POLLIN)
    # Not the pipe alone: a forked process may hold its other end open.
    handle = handle_of(parent)
    if handle is not None:
        poll.register(handle, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if 0 in ready:
            chunk = os.read(0, 65536)
            watch.receive(chunk)
            if chunk:
                continue
        break
    if not watch.dismissed:
        end_all(watch.left, quiet=_QUIET)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
