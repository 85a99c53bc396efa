"""record_run: one run of a Python target with the recorder in it, and what the recorder wrote down."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.types import JsonObject
from trysquare.debug import recorder
from trysquare.debug.recorder.report import VANISHED
from trysquare.debug.targets import Target
from trysquare.processes.child import Child, Command
from trysquare.processes.nursery import Nursery
from trysquare.wire.pipes import Inlet

TIMEOUT = 60.0
_TAIL = 64_000
"""Bytes of the output that are kept: enough for the words of a crash and the stacks of all threads after them."""
_SHOWN = 2000
_LAST_WORDS = 5.0
"""Seconds that a recorder has to write its report after it gave the program up."""
_LARGEST = 64_000_000
_RECORDER = str(Path(next(iter(recorder.__path__))))


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What recording took: the lines recorded, the seconds of the whole run, and those of the recorder in it."""

    lines: int = 0
    seconds: float = 0.0
    spent: float = 0.0
    full: bool = False
    """Whether the limit of lines was reached."""

    def to_json(self) -> JsonObject:
        own = max(self.seconds - self.spent, 0.001)
        told: JsonObject = {
            "lines": self.lines,
            "seconds": self.seconds,
            "recorder_seconds": self.spent,
            "slow_down": round(max(self.seconds, 0.001) / own, 1),
        }
        return told | ({"limit_reached": True} if self.full else {})

    @property
    def warnings(self) -> tuple[str, ...]:
        if not self.full:
            return ()
        return (f"The recording reached its limit of {self.lines} lines; what came later is not known.",)


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What a recorded run came to."""

    found: JsonObject
    """The recorder's report; empty where the program was killed before it could write one."""
    outcome: str
    """failed, passed, exited, unfinished, or by which signal it was killed."""
    exit_code: int | None
    output: str
    cost: Cost

    @property
    def error(self) -> str | None:
        """The failure in one line, where there was one."""
        failures = cast(list[JsonObject], self.found.get("failures") or [])
        if not failures:
            return None
        message = str(failures[0]["message"]).strip().partition("\n")[0]
        return f"{failures[0]['type']}: {message}"[:200]


async def record_run(
    target: Target,
    root: Path,
    nursery: Nursery,
    watch: JsonObject,
    *,
    timeout: float = TIMEOUT,
    env: Mapping[str, str] | None = None,
) -> Run:
    """Run a Python target with the recorder watching for what `watch` says, and wait for its end."""
    if target.kind == "program" and not (root / target.words[0]).is_file():
        raise InvalidArguments(
            f"There is no file `{target.words[0]}` in `{root}`.", instruction="Name a file that exists, or a test."
        )
    with tempfile.TemporaryDirectory(prefix="trysquare-") as folder:
        report = Path(folder) / "report.json"
        options = {"kind": target.kind, "roots": [str(root)], "timeout": timeout, **watch}
        child = _start(target, root, nursery, report, json.dumps(options), env or {})
        tail = _Tail(child)
        finished = await _finished(child, timeout + _LAST_WORDS)
        status = child.exit_status()
        await nursery.end(child, grace=0.2 if finished else 1.0)
        if not report.exists() or report.stat().st_size > _LARGEST:
            return _without_report(status, tail.text(), finished=finished, timeout=timeout)
        found = cast(JsonObject, json.loads(report.read_text(encoding="utf-8")))
        if found["outcome"] == VANISHED and finished and status is not None and status >= 0:
            return Run(found={}, outcome="exited", exit_code=status, output=tail.text(), cost=Cost())
        if found["outcome"] == VANISHED:
            return _without_report(status, tail.text(), finished=finished, timeout=timeout)
        if problem := found.get("problem"):
            raise _cannot_run(str(problem), tail.text())
        return _run_of(found, tail.text())


def _cannot_run(problem: str, output: str) -> ToolError:
    return ToolError(
        f"It could not be run: {problem}.",
        code=ErrorCode.EXECUTION_FAILED,
        instruction="Install what is missing, or name another Python.",
        fields={"output": output[-_SHOWN:]},
    )


def require_python(target: Target) -> None:
    """Refuse what the recorder cannot run."""
    if not target.is_python:
        raise ToolError(
            f"`{target.words[0]}` is not a Python program, and only those can be recorded.",
            code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
            instruction="Start it with session_start and step through it; explain works for it too.",
        )


def _start(target: Target, root: Path, nursery: Nursery, report: Path, options: str, env: Mapping[str, str]) -> Child:
    command = Command(
        program=target.python,
        arguments=[_RECORDER, str(report), options, *target.words],
        environment={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **env},
        folder=str(root),
    )
    try:
        return nursery.start(command)
    except OSError as error:
        raise ToolError(
            f"`{target.python}` cannot be started: {error.strerror}.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction="Check the folder and the Python that were named.",
        ) from None


async def _finished(child: Child, timeout: float) -> bool:
    try:
        async with asyncio.timeout(timeout):
            await child.exited.wait()
    except TimeoutError:
        return False
    return True


class _Tail:
    """The last of what a program writes; a program that floods its output must not fill our memory."""

    def __init__(self, child: Child) -> None:
        self._kept = bytearray()
        for descriptor in (child.stdout, child.stderr):
            Inlet(descriptor, self._hear).start()

    def text(self) -> str:
        return self._kept.decode(errors="replace")

    def _hear(self, chunk: bytes) -> None:
        self._kept += chunk
        if len(self._kept) > 2 * _TAIL:
            del self._kept[:-_TAIL]


def _run_of(found: JsonObject, output: str) -> Run:
    cost = Cost(
        lines=int(found["lines"]),
        seconds=float(found["seconds"]),
        spent=float(found["spent"]),
        full=bool(found["full"]),
    )
    return Run(found=found, outcome=str(found["outcome"]), exit_code=found["exit_code"], output=output, cost=cost)


def _without_report(status: int | None, output: str, *, finished: bool, timeout: float) -> Run:
    """The program ended without a word to us: it was killed, or the recorder itself could not run."""
    if not finished:
        raise ToolError(
            f"The program still ran after {timeout:g} s and was stopped.",
            code=ErrorCode.EXECUTION_TIMEOUT,
            instruction="Take a smaller part of it. To see where it hangs, pause it in a session, or dump it.",
            fields={"output": output[-_SHOWN:]},
        )
    if status is not None and status < 0:
        return Run(found={}, outcome=f"killed by {_signal_name(-status)}", exit_code=status, output=output, cost=Cost())
    raise ToolError(
        f"The program could not be recorded; it ended with exit code {status}.",
        code=ErrorCode.EXECUTION_FAILED,
        instruction="The output says why. Is this the right Python, and does it have what is needed?",
        fields={"output": output[-_SHOWN:]},
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
