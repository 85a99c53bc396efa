"""C, C++ and Rust debug adapter: lldb-dap."""

from __future__ import annotations

import re
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

from trysquare.core.json import JsonObject
from trysquare.debug.adapters import base
from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.debugger import Event, Exited, Listener, Output, Stopped
from trysquare.debug.expressions import ExpressionRules
from trysquare.debug.sessions.launch import AttachSpec, LaunchedProgram, LaunchEnvironment, LaunchSpec, SessionSpec

PACKAGE = base.AdapterPackage(
    name="lldb-dap",
    programs=("lldb-dap", *(f"lldb-dap-{release}" for release in (21, 20, 19, 18)), "lldb-vscode-14", "lldb-vscode"),
    install=base.debian("lldb-19"),
)
EXPRESSIONS = (
    # A program of C may have parts in C++, where operators can be overloaded: the file decides.
    ExpressionRules(calls=frozenset({"sizeof"}), suffixes=(".c",)),
    ExpressionRules(suffixes=(".rs",)),
)
_COMPILERS = {
    "c": (("cc", "gcc", "clang"), ("-g", "-O0", "-o")),
    "cpp": (("c++", "g++", "clang++"), ("-g", "-O0", "-o")),
    "rust": (("rustc",), ("-g", "-C", "opt-level=0", "-o")),
}
_SOURCES = {".c": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".rs": "rust"}
_SIGNAL = re.compile(r"signal (SIG[A-Z0-9]+)")
_WITHOUT_STOP = frozenset({signal.SIGKILL, signal.SIGALRM, signal.SIGPROF})
"""Signals that end a program without a stop before. lldb reports them like an exit code of the same number."""
_OWN_OUTPUT = re.compile(r"Process \d+ (exited with status|launched)|\s*$")


async def launch(spec: LaunchSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    adapter = PACKAGE.program()
    program, remove = await _build(spec)
    arguments: JsonObject = {
        "program": program,
        "args": list(spec.target.words[1:]),
        "cwd": str(spec.root),
        "env": [f"{name}={value}" for name, value in spec.env.items()],
    }
    try:
        return await _begin(adapter, arguments, spec, environment, close=remove)
    except BaseException:
        remove()
        raise


async def attach(spec: AttachSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    if spec.pid is None:
        raise base.cannot_attach(environment.session.language, "a port", "Give the `pid` of a local process.")
    base.require_own_process(spec.pid)
    launched = await _begin(PACKAGE.program(), {"pid": spec.pid}, spec, environment)
    environment.session.watch(base.report_exit(spec.pid, environment.session))
    return launched


async def _build(spec: LaunchSpec) -> tuple[str, Callable[[], None]]:
    """The program to run, and a function that removes its build directory."""
    path = (spec.root / spec.target.words[0]).resolve()
    language = _SOURCES.get(path.suffix)
    if language is None:
        return str(path), lambda: None
    compilers, options = _COMPILERS[language]
    compiler = base.find_program(compilers, hint=f"apt-get install {'rustc' if language == 'rust' else 'gcc g++'}")
    directory = tempfile.TemporaryDirectory(prefix="trysquare-")
    program = Path(directory.name) / path.stem
    try:
        await base.compile_source([compiler, str(path), *options, str(program)], spec.root)
    except BaseException:
        directory.cleanup()
        raise
    return str(program), directory.cleanup


async def _begin(
    adapter: str,
    arguments: JsonObject,
    spec: SessionSpec,
    environment: LaunchEnvironment,
    *,
    close: Callable[[], None] = lambda: None,
) -> LaunchedProgram:
    child = base.start_child(adapter, (), spec, environment)
    listener = _SignalListener(environment.session.receive)
    debugger = DapDebugger(listener, adapter_id="lldb-dap", expressions=EXPRESSIONS)
    arguments = {**arguments, "stopOnEntry": False, "timeout": spec.timeout}
    return await base.begin_over_pipes(debugger, child, arguments, spec, environment, close=close)


class _SignalListener:
    """lldb's events without its own output, and with the signals that it reports as exit codes."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._signal: int | None = None
        """The signal at which the program stopped, and of which it dies if it continues."""

    def __call__(self, event: Event) -> None:
        match event:
            case Output(stream="console", text=text) if _OWN_OUTPUT.match(text):
                return
            case Stopped():
                found = _SIGNAL.search(event.text)
                self._signal = None if found is None else getattr(signal, found[1], None)
                self._listener(event)
            case Exited(code=int(code)) if code == self._signal:
                self._listener(Exited(signal=code))
            case Exited(code=int(code)) if code in _WITHOUT_STOP:
                self._listener(Exited(code=code, signal=code))
            case _:
                self._listener(event)
