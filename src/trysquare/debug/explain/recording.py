"""The recorder in a Python process: record one run of a target, or dump the stacks of a process that runs on."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.json import JsonObject
from trysquare.debug import recorder
from trysquare.debug.debugger import unsupported
from trysquare.debug.recorder.report import VANISHED
from trysquare.debug.responses import signal_name
from trysquare.debug.sessions.launch import Target
from trysquare.processes.pipes import PipeReader
from trysquare.processes.supervisor import ChildProcess, Command, ProcessSupervisor

TIMEOUT = 60.0
TAIL = 64_000
"""Bytes of the output to keep: enough for the message of a crash and the stacks of all threads after it."""
_SHOWN = 2000
_REPORT_SECONDS = 5.0
"""Time that a recorder has to write its report after a timeout."""
_MAX_REPORT = 64_000_000
_DUMP_SECONDS = 20.0
_MAX_CUT = 5
_RECORDER = str(Path(next(iter(recorder.__path__))))


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Cost of recording: lines recorded, seconds of the whole run, and of the recorder in it."""

    lines: int = 0
    seconds: float = 0.0
    spent: float = 0.0
    full: bool = False
    """Whether the limit of lines was reached."""
    cut: tuple[str, ...] = ()
    """The functions of which only the first lines were recorded."""

    def to_json(self) -> JsonObject:
        own = max(self.seconds - self.spent, 0.001)
        found: JsonObject = {
            "lines": self.lines,
            "seconds": self.seconds,
            "recorder_seconds": self.spent,
            "slow_down": round(max(self.seconds, 0.001) / own, 1),
        }
        return found | ({"limit_reached": True} if self.full else {}) | ({"cut": list(self.cut)} if self.cut else {})

    @property
    def warnings(self) -> tuple[str, ...]:
        warnings: list[str] = []
        if self.full:
            warnings.append(f"The recording reached its limit of {self.lines} lines; later lines were not recorded.")
        if self.cut:
            names = ", ".join(self.cut[:_MAX_CUT]) + (
                f" and {left} more" if (left := len(self.cut) - _MAX_CUT) > 0 else ""
            )
            warnings.append(
                f"Only the first lines of these functions were recorded, since they ran too often: {names}."
            )
        return tuple(warnings)


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    found: JsonObject
    """The recorder's report; empty if the program was killed before it could write one."""
    outcome: str
    """failed, passed, exited, unfinished, or the signal that killed it."""
    exit_code: int | None
    output: str
    cost: Cost = Cost()

    @property
    def error(self) -> str | None:
        """The first failure in one line."""
        failures = cast(list[JsonObject], self.found.get("failures") or [])
        if not failures:
            return None
        message = str(failures[0]["message"]).strip().partition("\n")[0]
        return f"{failures[0]['type']}: {message}"[:200]


async def record_run(
    target: Target, root: Path, supervisor: ProcessSupervisor, watch: JsonObject, *, timeout: float = TIMEOUT,
    env: Mapping[str, str] | None = None,
) -> Run:  # fmt: skip
    """Run a Python target under the recorder with the options `watch`, and wait for its end."""
    if target.kind == "program" and not (root / target.words[0]).is_file():
        raise InvalidArguments(
            f"File `{target.words[0]}` not found in `{root}`.", instruction="Name a file that exists, or a test."
        )
    with tempfile.TemporaryDirectory(prefix="trysquare-") as folder:
        report = Path(folder) / "report.json"
        options = {"kind": target.kind, "roots": [str(root)], "timeout": timeout, **watch}
        child = _start(target, root, supervisor, report, json.dumps(options), env or {})
        tail = OutputTail(child)
        finished = await child.exits_within(timeout + _REPORT_SECONDS)
        status = child.exit_status()
        await supervisor.end(child, grace=0.2 if finished else 1.0)
        if not report.exists() or report.stat().st_size > _MAX_REPORT:
            return _run_without_report(status, tail.text(), finished=finished, timeout=timeout)
        found = cast(JsonObject, json.loads(report.read_text(encoding="utf-8")))
    output = tail.text()
    if found["outcome"] == VANISHED:
        if finished and status is not None and status >= 0:
            return Run(found={}, outcome="exited", exit_code=status, output=output)
        return _run_without_report(status, output, finished=finished, timeout=timeout)
    if problem := found.get("problem"):
        instruction = "Install what is missing, or give another Python with runtime_path (--python)."
        raise _error(f"The target could not be run: {problem}.", instruction, output)
    cost = Cost(
        lines=int(found["lines"]), seconds=float(found["seconds"]), spent=float(found["spent"]),
        full=bool(found["full"]), cut=tuple(cast(list[str], found.get("cut") or [])),
    )  # fmt: skip
    return Run(found=found, outcome=str(found["outcome"]), exit_code=found["exit_code"], output=output, cost=cost)


def require_python(target: Target) -> None:
    if not target.is_python:
        raise unsupported(
            f"`{target.words[0]}` is not a Python program, and only those can be recorded.",
            "Start it with session_start and step through it; explain works for it too.",
        )


def _start(
    target: Target, root: Path, supervisor: ProcessSupervisor, report: Path, options: str, env: Mapping[str, str]
) -> ChildProcess:
    command = Command(
        program=target.python,
        arguments=[*target.options, _RECORDER, str(report), options, *target.words],
        environment={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **env},
        folder=str(root),
    )
    try:
        return supervisor.start(command)
    except OSError as error:
        raise ToolError(
            f"`{target.python}` failed to start: {error.strerror}.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction="Check workspace_root (--project) and runtime_path (--python).",
        ) from None


class OutputTail:
    """The last bytes of a program's output; bounded, since a program may write without end."""

    def __init__(self, child: ChildProcess, *, limit: int = TAIL) -> None:
        self._bytes = bytearray()
        self._limit = limit
        for descriptor in (child.stdout, child.stderr):
            PipeReader(descriptor, self._receive).start()

    def text(self) -> str:
        return self._bytes.decode(errors="replace")

    def _receive(self, chunk: bytes) -> None:
        self._bytes += chunk
        if len(self._bytes) > 2 * self._limit:
            del self._bytes[: -self._limit]


def _run_without_report(status: int | None, output: str, *, finished: bool, timeout: float) -> Run:
    """The run of a program that was killed; an error if it timed out, or if the recorder itself failed."""
    if not finished:
        instruction = "Run a smaller part of it. To see where it hangs, pause it in a session, or dump it."
        message = f"Timeout: the program still ran after {timeout:g} s and was stopped."
        raise _error(message, instruction, output, code=ErrorCode.EXECUTION_TIMEOUT)
    if status is not None and status < 0:
        return Run(found={}, outcome=f"killed by {signal_name(-status)}", exit_code=status, output=output)
    instruction = "Read `output`; check that this is the right Python and that its packages are installed."
    raise _error(f"The program could not be recorded; it ended with exit code {status}.", instruction, output)


def _error(message: str, instruction: str, output: str, code: ErrorCode = ErrorCode.EXECUTION_FAILED) -> ToolError:
    return ToolError(message, code=code, instruction=instruction, fields={"output": output[-_SHOWN:]})


async def dump_process(pid: int) -> JsonObject:
    """Interrupt a process for a moment, and have it write its stacks to a file."""
    _require_own_process(pid)
    debugger = shutil.which("gdb")
    if debugger is None:
        raise ToolError(
            "`gdb` is not installed; it is required to dump a process that was not started for debugging.",
            code=ErrorCode.ADAPTER_NOT_FOUND,
            instruction="Ask the user to run: apt-get install gdb",
        )
    with tempfile.TemporaryDirectory(prefix="trysquare-") as folder:
        file = Path(folder) / "dump.json"
        output = await _inject(debugger, pid, _script(file))
        if not file.exists():
            raise _dump_error(pid, output)
        return cast(JsonObject, json.loads(file.read_text(encoding="utf-8")))


def _require_own_process(pid: int) -> None:
    if pid == os.getpid():
        raise InvalidArguments(f"Process {pid} is the server itself.")
    try:
        owner = Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        raise InvalidArguments(
            f"Process {pid} not found.", code=ErrorCode.SESSION_NOT_FOUND, instruction="Check its id with `ps`."
        ) from None
    if owner != os.geteuid():
        raise ToolError(
            f"Process {pid} belongs to another user.",
            code=ErrorCode.EXECUTION_NOT_ALLOWED,
            instruction="Only processes of the user who runs the server can be dumped.",
        )


def _script(file: Path) -> str:
    """Code that runs the recorder's files in the process, without importing anything named `trysquare` there."""
    values, dump = f"{_RECORDER}/values.py", f"{_RECORDER}/dump.py"
    lines = [
        "v=dict(__name__='values')",
        f"d=dict(__name__='dump',__file__={dump!r})",
        f"exec(compile(open({values!r}).read(),{values!r},'exec'),v)",
        f"exec(compile(open({dump!r}).read(),{dump!r},'exec'),d)",
        f"d['dump']({str(file)!r},v['show'])",
    ]
    return ";".join(lines)


async def _inject(debugger: str, pid: int, script: str) -> str:
    """Have gdb run the script in the process and detach; return what gdb wrote."""
    quoted = f"exec({script!r},{{}})".replace("\\", "\\\\").replace('"', '\\"')
    commands = [
        "set unwindonsignal on",
        "set $gil = (int)PyGILState_Ensure()",
        f'call (int)PyRun_SimpleString("{quoted}")',
        "call (void)PyGILState_Release($gil)",
        "detach",
    ]
    words = [word for command in commands for word in ("-ex", command)]
    process = await asyncio.create_subprocess_exec(
        debugger, "-nx", "-nh", "-batch", "-p", str(pid), *words,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    try:
        async with asyncio.timeout(_DUMP_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        # An interrupt makes gdb unwind what it called and detach; a kill would leave the process in the middle of it.
        process.send_signal(signal.SIGINT)
        output, _ = await process.communicate()
    return output.decode(errors="replace")


def _dump_error(pid: int, output: str) -> ToolError:
    if "No symbol" in output:
        reason, instruction = "not a Python process, or its Python has no symbols", "Choose a Python process."
    elif "not permitted" in output or "ptrace" in output:
        reason = "permission denied"
        instruction = "Ask the user to allow ptrace: /proc/sys/kernel/yama/ptrace_scope must be 0."
    else:
        reason, instruction = "timeout", "It may hang in code that never releases Python's global lock."
    return ToolError(
        f"Process {pid} could not be dumped: {reason}. It still runs.",
        code=ErrorCode.EXECUTION_FAILED,
        instruction=instruction,
        fields={"output": output[-600:]},
    )
