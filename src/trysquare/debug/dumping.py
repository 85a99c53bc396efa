"""dump_process: what all threads and asyncio tasks of a running Python process are doing, which goes on unharmed."""

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
from trysquare.core.types import JsonObject
from trysquare.debug import recorder

TIMEOUT = 20.0
_RECORDER = Path(next(iter(recorder.__path__)))
_INSTALL = "apt-get install gdb"


async def dump_process(pid: int, *, timeout: float = TIMEOUT) -> JsonObject:
    """Stop a process for a moment, let it write down what it is doing, and let it go on."""
    require_own_process(pid)
    debugger = shutil.which("gdb")
    if debugger is None:
        raise ToolError(
            "`gdb` is not installed; it is needed to look into a process that was not started for debugging.",
            code=ErrorCode.ADAPTER_NOT_FOUND,
            instruction=f"Ask the person to run: {_INSTALL}",
        )
    with tempfile.TemporaryDirectory(prefix="trysquare-") as folder:
        file = Path(folder) / "dump.json"
        said = await _injected(debugger, pid, _script(file), timeout)
        if not file.exists():
            raise _not_told(pid, said)
        return cast(JsonObject, json.loads(file.read_text(encoding="utf-8")))


def require_own_process(pid: int) -> None:
    """Refuse a process that is not there, or that is somebody else's."""
    if pid == os.getpid():
        raise InvalidArguments("That is the server's own process.")
    try:
        owner = Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        raise InvalidArguments(
            f"There is no process {pid}.",
            code=ErrorCode.SESSION_NOT_FOUND,
            instruction="Look its number up again, such as with `ps`.",
        ) from None
    if owner != os.geteuid():
        raise ToolError(
            f"Process {pid} belongs to another user.",
            code=ErrorCode.EXECUTION_NOT_ALLOWED,
            instruction="Only processes of the user who runs the server can be looked into.",
        )


def _script(file: Path) -> str:
    """What the process is made to run: our own files, without importing anything under our name."""
    shown, dump = str(_RECORDER / "shown.py"), str(_RECORDER / "dump.py")
    return ";".join(
        (
            "s=dict(__name__='shown')",
            f"d=dict(__name__='dump',__file__={dump!r})",
            f"exec(compile(open({shown!r}).read(),{shown!r},'exec'),s)",
            f"exec(compile(open({dump!r}).read(),{dump!r},'exec'),d)",
            f"d['dump']({str(file)!r},s['show'])",
        )
    )


async def _injected(debugger: str, pid: int, script: str, timeout: float) -> str:
    """Let gdb run the script in the process, and detach whatever comes of it."""
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
        async with asyncio.timeout(timeout):
            said, _ = await process.communicate()
    except TimeoutError:
        # An interrupt makes gdb unwind what it called and detach; a kill would leave the process in the middle of it.
        process.send_signal(signal.SIGINT)
        said, _ = await process.communicate()
    return said.decode(errors="replace")


def _not_told(pid: int, said: str) -> ToolError:
    if "No symbol" in said:
        reason, how = "it is no Python process, or its Python has no symbols", "Only Python processes can be dumped."
    elif "not permitted" in said or "ptrace" in said:
        reason, how = "the system does not permit it", "Allow ptrace: /proc/sys/kernel/yama/ptrace_scope must be 0."
    else:
        reason, how = "it did not answer", "It may hang in code that never gives Python's lock away."
    return ToolError(
        f"Process {pid} could not be looked into: {reason}. It goes on as before.",
        code=ErrorCode.EXECUTION_FAILED,
        instruction=how,
        fields={"output": said[-600:]},
    )
