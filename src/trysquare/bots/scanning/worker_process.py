"""Processes that scan: started with a deadline, without a shell, and ended with everything that they started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trysquare.bots.scanning.findings import ScannerFailed

MAX_OUTPUT = 4_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """What a process left behind."""

    code: int
    output: str
    errors: str


def ask_matcher(task: Mapping[str, Any], *, seconds: float) -> list[Any]:
    """Where a pattern matches, found out by a process that can be ended."""
    command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("matching.py"))]
    return _ask(command, task, seconds, "the pattern", None)


def ask_worker(task: Mapping[str, Any], *, seconds: float, what: str) -> list[Any]:
    """What a Python scanner finds, run in a process of its own with the modules that can be imported here."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return _ask([sys.executable, "-P", "-m", "trysquare.bots.scanning.worker"], task, seconds, what, environment)


def _ask(
    command: list[str], task: Mapping[str, Any], seconds: float, what: str, environment: Mapping[str, str] | None
) -> list[Any]:
    ended = run_process(command, text=json.dumps(task), seconds=seconds, what=what, environment=environment)
    if ended.code != 0:
        last = ended.errors.strip().splitlines()[-1:] or [f"exit code {ended.code}"]
        raise ScannerFailed(f"{what} failed: {last[0]}")
    return json.loads(ended.output)


def run_process(
    command: Sequence[str],
    *,
    seconds: float,
    what: str,
    text: str = "",
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program to its end, or end it at the deadline."""
    # Files instead of pipes: a program that prints without end fills the disk's quota of one file, not our memory,
    # and one that leaves a child behind does not keep us waiting for the child.
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        given.write(text.encode("utf-8", "replace"))
        given.seek(0)
        try:
            process = subprocess.Popen(
                command,
                stdin=given,
                stdout=output,
                stderr=errors,
                cwd=folder,
                env=None if environment is None else dict(environment),
                start_new_session=True,
            )
        except OSError as error:
            raise ScannerFailed(f"{what} cannot be started: `{command[0]}`: {error.strerror}") from None
        code = _wait(process, seconds, what)
        return Ended(code=code, output=_read(output), errors=_read(errors))


def _wait(process: subprocess.Popen[bytes], seconds: float, what: str) -> int:
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise ScannerFailed(f"{what} took longer than {seconds:g} seconds and was ended") from None
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is not None:
        return
    # The process leads a group of its own, and it has not been waited for, so the number is still its own.
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(file: Any) -> str:
    file.seek(0)
    return file.read(MAX_OUTPUT).decode("utf-8", "replace")
