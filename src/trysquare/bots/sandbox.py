"""Sandbox for programs and Python code that a bot names: read-only, without network, bounded in time and memory."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trysquare.core.errors import ToolError
from trysquare.core.json import JsonObject
from trysquare.processes.sandbox.backends import BACKENDS, available_sandbox, sandbox_unavailable
from trysquare.processes.sandbox.isolation import bubblewrap_command, landlock_command
from trysquare.processes.sandbox.job import Confinement, SandboxJob, clean_environment
from trysquare.processes.sandbox.runner import process_group
from trysquare.processes.worker import WorkerResult, run_worker
from trysquare.store.location import hidden_paths

SECONDS = 10.0
MAX_OUTPUT = 4_000_000
MAX_MEMORY = 1024 * 1024 * 1024
MAX_PROCESSES = 64
_GRACE = 1.0
"""Seconds for the Landlock program to kill what a program has started; with bubblewrap the kernel does it."""


class ProgramFailed(Exception):
    """A program could not run to its end, or its Python code failed at a line of the bot's file."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


def run_confined(
    command: Sequence[str],
    *,
    root: Path,
    seconds: float,
    what: str,
    given: str = "",
    readable: Iterable[Path] = (),
    environment: Mapping[str, str] | None = None,
) -> WorkerResult:
    """Run a program in a directory that it reads and cannot write; without a sandbox it is refused."""
    if shutil.which(str(root / command[0]) if "/" in command[0] else command[0]) is None:
        raise ProgramFailed(f"{what} cannot be started: `{command[0]}` is not an executable file")
    try:
        return _run(command, root.resolve(), seconds, given, [path.resolve() for path in readable], environment or {})
    except ToolError as error:
        raise ProgramFailed(f"{what} was not started. {error.message}") from None
    except TimeoutError:
        raise ProgramFailed(f"{what} timed out after {seconds:g} seconds") from None
    except OSError as error:
        raise ProgramFailed(f"{what} cannot be started: `{command[0]}`: {error.strerror}") from None


def _run(
    command: Sequence[str],
    root: Path,
    seconds: float,
    given: str,
    readable: Sequence[Path],
    environment: Mapping[str, str],
) -> WorkerResult:
    backend = available_sandbox(BACKENDS)
    if backend is None:
        raise sandbox_unavailable(BACKENDS)
    job = SandboxJob(
        command=command,
        seconds=seconds,
        merged=False,
        writes=False,
        reads_input=True,
        memory_bytes=MAX_MEMORY,
        file_bytes=MAX_OUTPUT,
    )
    inside = Confinement(root=root, hidden=hidden_paths(root, None), readable=readable, processes=MAX_PROCESSES)
    group = process_group(MAX_PROCESSES)
    with tempfile.TemporaryDirectory(prefix="trysquare-") as temporary:
        own = {**clean_environment(), **environment}
        if backend == "bubblewrap":
            line = bubblewrap_command(shutil.which("bwrap") or "bwrap", job, inside)
        else:
            line = landlock_command(job, inside, temporary=Path(temporary))
            own |= {"TMPDIR": temporary, "HOME": temporary}
        try:
            return run_worker(
                line if group is None else group.entering(line),
                seconds=seconds,
                given=given.encode("utf-8", "replace"),
                limit=MAX_OUTPUT,
                folder=root,
                environment=own,
                grace=_GRACE if backend == "landlock" else 0.0,
            )
        finally:
            if group is not None:
                group.remove_blocking()


def ask_worker(
    task: Mapping[str, Any], *, what: str, root: Path | None = None, bot: Path | None = None, seconds: float = SECONDS
) -> Any:
    """The result of a task of `trysquare.bots.worker`; with a root or a bot's folder, it runs in the sandbox."""
    command = [sys.executable, "-P", "-m", "trysquare.bots.worker"]
    paths = [path for path in sys.path if path]
    environment = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    text = json.dumps(task)
    if root is None and bot is None:
        ended = _run_own(command, text, seconds, what, {**os.environ, **environment})
    else:
        readable = [Path(path) for path in paths] + ([] if bot is None else [bot])
        place = root if root is not None else bot
        assert place is not None
        ended = run_confined(
            command, root=place, seconds=seconds, what=what, given=text, readable=readable, environment=environment
        )
    return _answer(ended, what)


def _run_own(
    command: Sequence[str], text: str, seconds: float, what: str, environment: Mapping[str, str]
) -> WorkerResult:
    """A task with no code of a bot, such as a schema with a costly pattern, needs a timeout only."""
    try:
        return run_worker(command, seconds=seconds, given=text.encode(), limit=MAX_OUTPUT, environment=environment)
    except TimeoutError:
        raise ProgramFailed(f"{what} timed out after {seconds:g} seconds") from None


def _answer(ended: WorkerResult, what: str) -> Any:
    try:
        answer: JsonObject = json.loads(ended.output)
    except ValueError:
        last = ended.errors.decode("utf-8", "replace").strip().splitlines()[-1:] or [f"exit code {ended.status}"]
        raise ProgramFailed(f"{what} failed: {last[0][:500]}") from None
    if "failed" in answer:
        raise ProgramFailed(f"{what} failed: {answer['failed']}", answer["line"])
    return answer["result"]
