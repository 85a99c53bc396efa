"""explain_failure: run a failing test or program once, recorded from inside, and say why it failed."""

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

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.debug import recorder
from trysquare.debug.explaining import Explanation, explain
from trysquare.debug.targets import Target
from trysquare.processes.child import Child, Command
from trysquare.processes.nursery import Nursery
from trysquare.wire.pipes import Inlet

TIMEOUT = 60.0
_TAIL = 4000
_RECORDER = str(Path(next(iter(recorder.__path__))))


@dataclass(frozen=True, kw_only=True, slots=True)
class Explained:
    """What a recorded run came to."""

    outcome: str
    """failed, passed, exited, killed or unfinished."""
    exit_code: int | None
    failures: tuple[tuple[str, Explanation], ...]
    """The name of each failing test or program, and why it failed."""
    output: str
    seconds: float = 0.0
    lines: int = 0
    full: bool = False


async def explain_failure(
    target: Target, root: Path, nursery: Nursery, *, timeout: float = TIMEOUT, env: Mapping[str, str] | None = None
) -> Explained:
    """Run a Python target recorded, wait for its end, and explain each failure."""
    with tempfile.TemporaryDirectory(prefix="trysquare-") as folder:
        report = Path(folder) / "report.json"
        child = _start(target, root, nursery, report, env or {})
        tail = _Tail(child)
        finished = await _finished(child, timeout)
        status = child.exit_status()
        await nursery.end(child, grace=0.2 if finished else 1.0)
        if not report.exists():
            return _without_report(status, tail.text(), finished=finished, timeout=timeout)
        found = cast(JsonObject, json.loads(report.read_text(encoding="utf-8")))
        return _explained(found, tail.text())


def _start(target: Target, root: Path, nursery: Nursery, report: Path, env: Mapping[str, str]) -> Child:
    options = json.dumps({"kind": target.kind, "roots": [str(root)]})
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
            instruction="Check workspace_root and runtime_path.",
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


def _explained(found: JsonObject, output: str) -> Explained:
    failures = cast(list[JsonObject], found["failures"])
    return Explained(
        outcome=str(found["outcome"]),
        exit_code=found["exit_code"],
        failures=tuple((str(each["name"]), explain(each)) for each in failures),
        output=output,
        seconds=float(found["seconds"]),
        lines=int(found["lines"]),
        full=bool(found["full"]),
    )


def _without_report(status: int | None, output: str, *, finished: bool, timeout: float) -> Explained:
    """The program ended without a word to us: it was killed, or the recorder itself could not run."""
    if not finished:
        raise ToolError(
            f"The program still ran after {timeout:g} s and was stopped.",
            code=ErrorCode.EXECUTION_TIMEOUT,
            instruction="Give a longer timeout, or a smaller test. To see where it hangs, pause it in a session.",
            fields={"output": output[-_TAIL // 2 :]},
        )
    if status is not None and status < 0:
        return Explained(outcome=f"killed by {_signal_name(-status)}", exit_code=status, failures=(), output=output)
    raise ToolError(
        f"The program could not be recorded; it ended with exit code {status}.",
        code=ErrorCode.EXECUTION_FAILED,
        instruction="The output says why. Is this the right Python (runtime_path), and does it have what is needed?",
        fields={"output": output[-_TAIL // 2 :]},
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
