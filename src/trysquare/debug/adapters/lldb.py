"""C, C++ and Rust debug adapter: lldb-dap."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from trysquare.core.json import JsonObject
from trysquare.core.threads import run_in_thread
from trysquare.debug.adapters import base
from trysquare.debug.dap.native import LldbDebugger
from trysquare.debug.debugger import Event, Exited, Listener, Output, Stopped
from trysquare.debug.expressions import ExpressionRules
from trysquare.debug.sessions.launch import AttachSpec, LaunchedProgram, LaunchEnvironment, LaunchSpec, SessionSpec

PACKAGE = base.AdapterPackage(
    name="lldb-dap",
    programs=("lldb-dap", *(f"lldb-dap-{release}" for release in (21, 20, 19, 18)), "lldb-vscode-14", "lldb-vscode"),
    install=base.debian("lldb-19"),
    versioned=base.debian("lldb-VERSION"),
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
_OWN_OUTPUT = re.compile(r"Process \d+ (exited with status|launched)|error: \S+ 0x[0-9a-f]+: DW_TAG_|\s*$")
_RUST_SYMBOL = b"rust_panic"
_RUST_MAIN = re.compile(rb"(?:_ZN|_RNvC(?:s[0-9A-Za-z]*_)?)(\d+)(\w+?)4main(?:17h[0-9a-f]{16}E)?(?=\x00)")


async def launch(spec: LaunchSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    adapter = PACKAGE.program(environment.chosen)
    program, remove = await _build(spec)
    given = base.InputFile(spec.stdin)
    symbols = await _symbols(program)
    arguments: JsonObject = {
        "program": program,
        "args": list(spec.target.words[1:]),
        "cwd": str(spec.root),
        "env": [f"{name}={value}" for name, value in spec.env.items()],
        "initCommands": await _formatters(symbols),
        "preRunCommands": [f"?settings set target.input-path {shlex.quote(given.path)}"],
    }

    def close() -> None:
        remove()
        given.close()

    try:
        entry = _entry(symbols) if spec.stop_on_entry else None
        launched = await _begin(adapter, arguments, spec, environment, close=close, entry=entry)
    except BaseException:
        close()
        raise
    return replace(launched, send_input=given.send)


async def attach(spec: AttachSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    if spec.pid is None:
        raise base.cannot_attach(environment.session.language, "a port", "Give the `pid` of a local process.")
    base.require_own_process(spec.pid)
    arguments: JsonObject = {
        "pid": spec.pid,
        "initCommands": await _formatters(await _symbols(f"/proc/{spec.pid}/exe")),
    }
    launched = await _begin(PACKAGE.program(environment.chosen), arguments, spec, environment)
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
    entry: str | None = None,
) -> LaunchedProgram:
    child = base.start_child(adapter, (), spec, environment)
    listener = _SignalListener(environment.session.receive)
    output = environment.session.output
    debugger = LldbDebugger(listener, expressions=EXPRESSIONS, recent_output=output.tail)
    arguments = {**arguments, "stopOnEntry": False, "timeout": spec.timeout}
    launched = await base.begin_over_pipes(
        debugger, child, arguments, spec, environment, close=close, exceptions=("panic",),
        clean=base.without_lines(_OWN_OUTPUT),
    )  # fmt: skip
    if entry is not None:
        await debugger.set_own_function(entry, "entry")
    return launched


async def _symbols(program: str) -> bytes:
    """The program file, which has the names of its functions."""
    try:
        return await run_in_thread(Path(program).read_bytes)
    except OSError:
        return b""


def _entry(symbols: bytes) -> str:
    """The name of the function where the user's code begins: lldb does not find that of Rust by `main`."""
    for found in _RUST_MAIN.finditer(symbols):
        # Of the crate itself: the number is the length of the one name before.
        if int(found[1]) == len(found[2]):
            return found[0].decode()
    return "main"


async def _formatters(symbols: bytes) -> list[str]:
    """Commands of lldb that load rustc's formatters, where the program is Rust and its toolchain is installed."""
    is_rust = _RUST_SYMBOL in symbols
    rustc = shutil.which("rustc") if is_rust else None
    if rustc is None:
        return []
    folder = Path(await base.output_of([rustc, "--print", "sysroot"])) / "lib" / "rustlib" / "etc"
    if not (folder / "lldb_commands").is_file():
        return []
    lookup, commands = (shlex.quote(str(folder / name)) for name in ("lldb_lookup.py", "lldb_commands"))
    return [f"?command script import {lookup}", f"?command source -s 1 {commands}"]


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
