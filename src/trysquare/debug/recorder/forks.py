"""Runs in a copy of this process: isolated from one another, with a limit of time and, for changed code, of effects."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

BUSY = 8
"""Seconds that may pass for each of processor time."""
_MAX_FILE = 64_000_000
_MAX_MEMORY = 2_000_000_000
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = frozenset(
    f"os.{name}"
    for name in (
        "remove", "rename", "rmdir", "mkdir", "link", "symlink", "truncate", "chmod", "chown", "lchown", "utime",
        "setxattr", "removexattr",
    )
)  # fmt: skip
"""Audit events whose texts are the paths that are changed."""
STARTING = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn"}
)
"""Audit events of starting a process."""
_FORBIDDEN = STARTING | {
    "os.kill", "os.killpg", "os.startfile", "socket.connect", "socket.sendto", "socket.sendmsg", "syslog.syslog",
    "ctypes.dlopen",
}  # fmt: skip

can_fork = hasattr(os, "fork")


class Forked:
    """The messages that a copy sent, and how it ended."""

    def __init__(self, messages: list[Any], *, timed_out: bool, status: int, seconds: float) -> None:
        self.messages = messages
        self.timed_out = timed_out
        self.status = status
        """The exit code; of one that a signal ended, the negative number of the signal."""
        self.seconds = seconds


def run_forked(
    work: Callable[[Callable[[Any], None]], None], *, seconds: float, is_processor_time: bool = False
) -> Forked:
    """Run a function in a copy of this process; it is given a function that sends a message as JSON.

    A limit of processor time is the same on a busy machine as on a quiet one.
    """
    reader, writer = os.pipe()
    begun = time.monotonic()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # Python warns of threads that are not copied: the copy needs none of them.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        if is_processor_time:
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, seconds)
        _work(work, reader, writer)
    os.close(writer)
    text, timed_out = _read(reader, begun + seconds * (BUSY if is_processor_time else 1))
    os.close(reader)
    if timed_out:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    lines = text.split(b"\n")[:-1]
    code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    timed_out = timed_out or (is_processor_time and code == -signal.SIGPROF)
    taken = time.monotonic() - begun
    return Forked([json.loads(line) for line in lines], timed_out=timed_out, status=code, seconds=taken)


def _work(work: Callable[[Callable[[Any], None]], None], reader: int, writer: int) -> None:
    """The life of the copy. It never returns, and leaves without what runs at the end of a program."""
    leave = getattr(os, "_exit")  # noqa: B009 - ends the copy without running what its original registered
    status = 1
    try:
        os.close(reader)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)

        def send(message: Any) -> None:
            data = json.dumps(message, default=str).encode() + b"\n"
            while data:
                data = data[os.write(writer, data) :]

        work(send)
        status = 0
    finally:
        leave(status)


def _read(reader: int, deadline: float) -> tuple[bytes, bool]:
    """What the copy wrote until it ended, and whether it did not end in time."""
    parts: list[bytes] = []
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            return b"".join(parts), True
        part = os.read(reader, 1 << 16)
        if not part:
            return b"".join(parts), False
        parts.append(part)


class Guard:
    """Refuses what changed code may not do: write outside of a directory, start processes, use the network."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.realpath(folder) + os.sep
        self.refused = ""
        """What was refused first; a run in which something was refused proves nothing."""

    def set(self) -> None:
        """Guard this process until it ends."""
        limit_resources()
        sys.addaudithook(self._check)

    def _check(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _FORBIDDEN:
            self._refuse(event)
        elif event == "open":
            path, mode, flags = arguments
            is_writing = any(letter in (mode or "") for letter in "wax+") or bool((flags or 0) & _WRITING)
            if is_writing and not self._is_free(path):
                self._refuse(f"open {path!r}")
        elif event in _CHANGES:
            self._check_paths(event, arguments)
        elif event == "sqlite3.connect" and arguments[0] != ":memory:" and not self._is_free(arguments[0]):
            self._refuse(event)

    def _check_paths(self, event: str, arguments: tuple[Any, ...]) -> None:
        folder = next((each for each in reversed(arguments) if isinstance(each, int) and each > 2), None)
        paths: list[Any] = [each for each in arguments if not isinstance(each, (int, float, tuple, type(None)))]
        if not all(self._is_free(each, folder) for each in paths):
            self._refuse(event)

    def _is_free(self, path: Any, folder: int | None = None) -> bool:
        if isinstance(path, int):
            return True
        try:
            text = os.fsdecode(path)
            if text == os.devnull:
                return True
            if folder is not None and not os.path.isabs(text):
                text = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), text)
            return (os.path.realpath(text) + os.sep).startswith(self._folder)
        except (OSError, TypeError, ValueError):
            return False

    def _refuse(self, what: str) -> None:
        self.refused = self.refused or what
        raise PermissionError(f"refused while a changed program is tried: {what}")


def limit_resources() -> None:
    """Bound the memory and the size of files of this process."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + _MAX_MEMORY, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (_MAX_FILE, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        pass  # a system without such limits still has the limit of time


def private_folder() -> str:
    """A directory for all that tests write, in place of the shared one for temporary files."""
    folder = tempfile.mkdtemp(prefix="trysquare-")
    tempfile.tempdir = folder
    os.environ["TMPDIR"] = folder
    return folder
