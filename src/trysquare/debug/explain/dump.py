"""Dump of all threads and asyncio tasks of a running Python process, which continues afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import cast

from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.json import JsonObject
from trysquare.debug import recorder

_TIMEOUT = 20.0
_RECORDER = Path(next(iter(recorder.__path__)))


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
    values, dump = str(_RECORDER / "values.py"), str(_RECORDER / "dump.py")
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
        async with asyncio.timeout(_TIMEOUT):
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
