"""What is measured of a server process, and what came of a load."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.peers.known import ROOT, Start

_LIBC = ctypes.CDLL(None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """What a server did under load: how many calls, in how much wall time, for how much CPU."""

    calls: int
    seconds: float
    cpu: float

    @property
    def cpu_per_call(self) -> float:
        """Microseconds of CPU a call."""
        return self.cpu / self.calls * 1e6

    @property
    def rate(self) -> float:
        """Calls a second."""
        return self.calls / self.seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Cold:
    """What a start cost until the tools were listed, in milliseconds."""

    cpu: float
    wall: float


def cpu_seconds(process: int) -> float:
    """The CPU time that a process has used, in user and in system mode, all its threads together.

    By the process's own clock: `/proc/PID/stat` counts in ticks of 10 ms, and `schedstat` forgets threads that ended.
    """
    clock = ctypes.c_int()
    problem = _LIBC.clock_getcpuclockid(process, ctypes.byref(clock))
    if problem:
        raise OSError(problem, os.strerror(problem))
    return time.clock_gettime(clock.value)


@contextmanager
def running(start: Start, *, piped: bool) -> Generator[subprocess.Popen[bytes]]:
    """A server process, ended at the end of the block."""
    pipe = subprocess.PIPE if piped else subprocess.DEVNULL
    process = subprocess.Popen(
        start.command, stdin=pipe, stdout=pipe, stderr=subprocess.PIPE, env=start.environment, cwd=ROOT, bufsize=0
    )
    try:
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
