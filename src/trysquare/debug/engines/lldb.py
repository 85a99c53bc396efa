"""The engine for C, C++ and Rust: lldb-dap."""

from __future__ import annotations

import re
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from trysquare.core.types import JsonObject
from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.debugger import Event, Exited, Listener, Output, Stopped
from trysquare.debug.engines.adapter import begun, built, environment_list, found_program, speak_over_pipes, start_child
from trysquare.debug.engines.attaching import cannot_attach, hear_end_of, require_own_process, require_pid_or_port
from trysquare.debug.launching import AttachSpec, Launched, LaunchSpec, SessionSpec, Surroundings
from trysquare.debug.session import Session

ADAPTERS = ("lldb-dap", "lldb-dap-21", "lldb-dap-20", "lldb-dap-19", "lldb-dap-18", "lldb-vscode-14", "lldb-vscode")
INSTALL = "apt-get install lldb-19"
_COMPILERS = {
    "c": (("cc", "gcc", "clang"), ("-g", "-O0", "-o")),
    "cpp": (("c++", "g++", "clang++"), ("-g", "-O0", "-o")),
    "rust": (("rustc",), ("-g", "-C", "opt-level=0", "-o")),
}
_SOURCES = {".c": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".rs": "rust"}


_SIGNAL = re.compile(r"signal (SIG[A-Z0-9]+)")
_UNSEEN = frozenset({signal.SIGKILL, signal.SIGALRM, signal.SIGPROF})
"""Signals that end a program without a stop before. lldb tells them as it tells an exit code of the same number."""
_OWN_WORDS = re.compile(r"Process \d+ (exited with status|launched)|\s*$")


class _Heard:
    """lldb's events without its own words about the end, and with the signal that it tells as an exit code."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._signal: int | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case Output(stream="console", text=text) if _OWN_WORDS.match(text):
                return
            case Stopped():
                self._signal = _signal_of(event)
                self._listener(event)
            case Exited(code=int(code)) if code == self._signal:
                self._listener(Exited(signal=code))
            case Exited(code=int(code)) if code in _UNSEEN:
                self._listener(Exited(code=code, signal=code))
            case _:
                self._listener(event)


def _signal_of(stop: Stopped) -> int | None:
    """The signal at which a program stands, and of which it dies if it is let go."""
    found = _SIGNAL.search(stop.text)
    return None if found is None else getattr(signal, found[1], None)


class LldbEngine:
    """Starts compiled programs under lldb-dap; a single source file is compiled first."""

    def __init__(self, language: str) -> None:
        self.language = language

    async def launch(self, spec: LaunchSpec, session: Session, around: Surroundings) -> Launched:
        adapter = found_program(ADAPTERS, hint=INSTALL)
        program, built_in = await self._program(spec)
        wanted: JsonObject = {
            "program": program,
            "args": list(spec.target.words[1:]),
            "cwd": str(spec.root),
            "env": environment_list(spec.env),
            "stopOnEntry": False,
            "timeout": spec.timeout,
        }
        try:
            return await _begun(adapter, "launch", wanted, session, around, spec, close=built_in)
        except BaseException:
            built_in()
            raise

    async def attach(self, spec: AttachSpec, session: Session, around: Surroundings) -> Launched:
        require_pid_or_port(spec)
        if spec.pid is None:
            raise cannot_attach(self.language, "a port", "Give the `pid` of a process on this machine.")
        require_own_process(spec.pid)
        adapter = found_program(ADAPTERS, hint=INSTALL)
        wanted: JsonObject = {"pid": spec.pid, "stopOnEntry": False, "timeout": spec.timeout}
        launched = await _begun(adapter, "attach", wanted, session, around, spec)
        session.watch(hear_end_of(spec.pid, session))
        return launched

    async def _program(self, spec: LaunchSpec) -> tuple[str, Callable[[], None]]:
        """The program to run, and what takes away the folder that it was built in."""
        named = (spec.root / spec.target.words[0]).resolve()
        language = _SOURCES.get(named.suffix)
        if language is None:
            return str(named), lambda: None
        compilers, options = _COMPILERS[language]
        folder = tempfile.TemporaryDirectory(prefix="trysquare-")
        program = Path(folder.name) / named.stem
        compiler = found_program(compilers, hint=f"apt-get install {'rustc' if language == 'rust' else 'gcc g++'}")
        try:
            await built([compiler, str(named), *options, str(program)], spec.root)
        except BaseException:
            folder.cleanup()
            raise
        return str(program), folder.cleanup


async def _begun(
    adapter: str,
    command: Literal["launch", "attach"],
    wanted: JsonObject,
    session: Session,
    around: Surroundings,
    spec: SessionSpec,
    *,
    close: Callable[[], None] = lambda: None,
) -> Launched:
    child = start_child(adapter, (), spec, around)
    debugger = DapDebugger(_Heard(session.hear), adapter_id="lldb-dap", language="c")
    stop_hearing = speak_over_pipes(debugger, child, session)

    def close_all() -> None:
        stop_hearing()
        close()

    try:
        await begun(debugger, command, wanted, session, child, spec)
    except BaseException:
        stop_hearing()
        await around.nursery.end(child, grace=0.2)
        raise
    return Launched(debugger=debugger, child=child, close=close_all)
