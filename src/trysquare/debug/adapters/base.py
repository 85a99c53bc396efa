"""Base of the debug adapters: install, start, attach, output streams, child sessions."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from trysquare.core.concurrency import BackgroundTasks
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.core.json import JsonObject
from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.debugger import (
    DEBUGGER_ERRORS,
    ChildStarted,
    Debugger,
    Disconnected,
    Event,
    Exited,
    Listener,
    Output,
    OutputStream,
    unsupported,
)
from trysquare.debug.sessions.launch import AttachSpec, LaunchedProgram, LaunchEnvironment, LaunchSpec, SessionSpec
from trysquare.debug.sessions.session import DebugSession
from trysquare.processes.pipes import PipeReader, PipeWriter
from trysquare.processes.reaper import look_up
from trysquare.processes.supervisor import ChildProcess, Command

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")
_VERSION_TEXT = re.compile(r"\d+(?:\.\d+){0,3}")
_SUFFIX = re.compile(r"-?\d+(?:\.\d+)*$")


@dataclass(frozen=True, kw_only=True, slots=True)
class AdapterPackage:
    """A debugger to install: its possible program names and the install command."""

    name: str
    install: tuple[str, ...]
    programs: tuple[str, ...] = ()
    """Any one of these; empty for a Python package."""
    version: tuple[str, ...] = ("--version",)
    versioned: tuple[str, ...] = ()
    """The command that installs a version, with VERSION in its place; empty where there is none."""

    @property
    def install_command(self) -> str:
        return " ".join(self.install)

    def program(self, chosen: Mapping[str, str]) -> str:
        """The installed program, or an error with the command that installs it. `chosen` has versions and paths."""
        wanted = chosen.get(self.name)
        if wanted is None:
            return find_program(self.programs, hint=self.install_command)
        if (found := self._chosen_program(wanted)) is not None:
            return found
        raise ToolError(
            f"`{self.name}` {wanted}, which the setting debug_adapters chooses, is not installed.",
            code=ErrorCode.ADAPTER_NOT_FOUND,
            instruction=f"Ask the user to install it or to change the setting. Installed: {self._installed()}.",
        )

    def _chosen_program(self, wanted: str) -> str | None:
        if "/" in wanted:
            return shutil.which(wanted)
        return _which([f"{name}{dash}{wanted}" for name in self._names() for dash in ("-", "")])

    def _names(self) -> list[str]:
        """The names of the program without versions."""
        return list(dict.fromkeys(_SUFFIX.sub("", name) for name in self.programs))

    def _installed(self) -> str:
        return ", ".join(name for name in self.programs if shutil.which(name)) or "none"

    def install_of(self, version: str) -> AdapterPackage:
        """The package with the command that installs one version of it."""
        if not self.versioned:
            raise unsupported(
                f"A version of {self.name} cannot be chosen; the package index's current one is installed.",
                "Omit `version`, or ask the user to install that version and to set debug_adapters.",
            )
        if not _VERSION_TEXT.fullmatch(version):
            raise InvalidArguments(f"Invalid version `{version}`.", instruction="Write it like 18 or 1.8.16.")
        return replace(self, install=tuple(word.replace("VERSION", version) for word in self.versioned))

    async def check(self, languages: tuple[str, ...], chosen: Mapping[str, str] | None = None) -> AdapterStatus:
        wanted = (chosen or {}).get(self.name)
        if self.programs:
            path = _which(self.programs) if wanted is None else self._chosen_program(wanted)
            return AdapterStatus(self, languages, path, version=path and await self._program_version(path))
        version = package_version("debugpy", wanted)
        return AdapterStatus(self, languages, path=version and (wanted or sys.executable), version=version)

    async def run_install(self, *, timeout: float = 600.0) -> tuple[int, str]:
        """Run the install command; return its exit code and the end of its output."""
        code, output = await _run(self.install, timeout=timeout)
        return code, output[-1500:]

    async def _program_version(self, path: str) -> str | None:
        try:
            _, output = await _run((path, *self.version), timeout=10)
        except (OSError, TimeoutError):
            return None
        return found[0] if (found := _VERSION.search(output)) else None


@dataclass(frozen=True, slots=True)
class AdapterStatus:
    """A debugger on this machine: its path and version, if it is installed."""

    package: AdapterPackage
    languages: tuple[str, ...]
    path: str | None
    version: str | None

    def to_json(self) -> JsonObject:
        about: JsonObject = {"adapter": self.package.name, "languages": list(self.languages)}
        if self.path is None:
            return {**about, "installed": False, "install": self.package.install_command}
        return {**about, "installed": True, "version": self.version, "path": self.path}


def package_version(name: str, folder: str | None = None) -> str | None:
    """The version of a Python package: of the running Python, or in a directory."""
    if folder is None:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return None
    found = importlib.metadata.distributions(name=name, path=[folder])
    return next((each.version for each in found), None)


def debian(packages: str) -> tuple[str, ...]:
    return ("apt-get", "install", "-y", "--no-install-recommends", *packages.split())


async def _run(command: Sequence[str], *, timeout: float, cwd: Path | None = None) -> tuple[int, str]:
    """Run a command without input; return its exit code and all of its output."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(timeout):
        output, _ = await process.communicate()
    return process.returncode or 0, output.decode(errors="replace")


async def output_of(command: Sequence[str], *, timeout: float = 30.0) -> str:
    """The output of a short command; empty where it fails."""
    try:
        code, output = await _run(command, timeout=timeout)
    except (OSError, TimeoutError):
        return ""
    return "" if code else output.strip()


def find_program(names: Sequence[str], *, hint: str) -> str:
    """The first of these programs that is installed, or an error with the command that installs it."""
    if (found := _which(names)) is not None:
        return found
    raise not_installed(names[0], hint)


def not_installed(name: str, hint: str) -> ToolError:
    return ToolError(
        f"`{name}` is not installed.", code=ErrorCode.ADAPTER_NOT_FOUND, instruction=f"Ask the user to run: {hint}"
    )


def _which(names: Sequence[str]) -> str | None:
    return next((found for name in names if (found := shutil.which(name)) is not None), None)


def start_child(
    program: str, arguments: Sequence[str], spec: SessionSpec, environment: LaunchEnvironment, **variables: str
) -> ChildProcess:
    """Start a debugger, or a program under one, in the directory of the session."""
    all_variables = {**os.environ, **variables, **(spec.env if isinstance(spec, LaunchSpec) else {})}
    command = Command(program=program, arguments=arguments, environment=all_variables, folder=str(spec.root))
    try:
        return environment.supervisor.start(command)
    except OSError as error:
        raise ToolError(
            f"`{program}` failed to start: {error.strerror}.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction="Check runtime_path and cwd.",
        ) from None


@asynccontextmanager
async def end_on_error(
    child: ChildProcess, environment: LaunchEnvironment, close: Callable[[], object]
) -> AsyncGenerator[None]:
    """End a child process, and close what reads from it, where the block fails."""
    try:
        yield
    except BaseException:
        close()
        await environment.supervisor.end(child, grace=0.2)
        raise


def not_started(session: DebugSession, reason: object, child: ChildProcess | None = None) -> ToolError:
    """Error for a program that did not start under its debugger, with its output."""
    status = None if child is None else child.exit_status()
    ended = "" if status is None else f" The process ended with exit code {status}."
    return ToolError(
        f"The program failed to start under the debugger: {str(reason) or 'timeout'}.{ended}",
        code=ErrorCode.SESSION_START_FAILED,
        instruction="Read `output`, then check target, runtime_path and cwd.",
        fields={"output": session.output.tail()},
    )


def open_input(child: ChildProcess, spec: LaunchSpec, session: DebugSession) -> Callable[[str], None] | None:
    """Write the given input of a program and end it, or return a function that writes to it later."""
    writer = PipeWriter(child.stdin, lambda: None)
    if spec.stdin is None:
        return lambda text: writer.write(text.encode())
    writer.write(spec.stdin.encode())

    async def finish() -> None:
        await writer.drain(below=1)
        writer.close()
        child.close_input()

    session.watch(finish())
    return None


class InputFile:
    """Standard input of a program that another process starts: a file with the given text, or a named pipe."""

    def __init__(self, given: str | None) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="trysquare-")
        self.path = str(Path(self._directory.name) / "stdin")
        self.send: Callable[[str], None] | None = None
        self._descriptor: int | None = None
        if given is not None:
            Path(self.path).write_text(given, encoding="utf-8")
            return
        os.mkfifo(self.path, mode=0o600)
        # For reading as well: a named pipe cannot be opened for writing before the program reads from it.
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        self._writer = PipeWriter(self._descriptor, lambda: None)
        self.send = lambda text: self._writer.write(text.encode())

    def close(self) -> None:
        if self._descriptor is not None:
            self._writer.close()
            os.close(self._descriptor)
            self._descriptor = None
        self._directory.cleanup()


def connect_pipes(
    debugger: DapDebugger, child: ChildProcess, session: DebugSession, *,
    clean: Callable[[str], str] = lambda text: text,
) -> Callable[[], None]:  # fmt: skip
    """Connect to an adapter over its standard input and output; the returned function stops reading.

    `clean` removes the adapter's own lines from its error output.
    """
    writer = PipeWriter(child.stdin, lambda: None)
    debugger.client.use_pipes(writer.write, writer.close)

    def on_output(chunk: bytes) -> None:
        if chunk:
            debugger.client.data_received(chunk)
        else:
            debugger.client.connection_lost(None)

    def on_error(chunk: bytes) -> None:
        if chunk and (text := clean(chunk.decode(errors="replace"))):
            session.receive(Output(stream="console", text=text))

    return _read(PipeReader(child.stdout, on_output), PipeReader(child.stderr, on_error))


def _read(*readers: PipeReader) -> Callable[[], None]:
    for reader in readers:
        reader.start()

    def stop() -> None:
        for reader in readers:
            reader.stop()

    return stop


async def begin(
    debugger: DapDebugger, arguments: JsonObject, child: ChildProcess, spec: SessionSpec, session: DebugSession, *,
    command: Literal["launch", "attach"] | None = None,
) -> None:  # fmt: skip
    """Launch or attach through an adapter, up to the point where breakpoints can be set."""
    try:
        await debugger.initialize(timeout=spec.timeout)
        usual = "attach" if isinstance(spec, AttachSpec) else "launch"
        await debugger.begin(command or usual, arguments, timeout=spec.timeout)
    except DEBUGGER_ERRORS as error:
        raise not_started(session, error, child) from None


async def begin_over_pipes(
    debugger: DapDebugger,
    child: ChildProcess,
    arguments: JsonObject,
    spec: SessionSpec,
    environment: LaunchEnvironment,
    *,
    close: Callable[[], None] = lambda: None,
    exceptions: Sequence[str] = (),
    clean: Callable[[str], str] = lambda text: text,
) -> LaunchedProgram:
    """Launch a program, or attach to one, through an adapter on its standard input and output."""
    stop = connect_pipes(debugger, child, environment.session, clean=clean)
    async with end_on_error(child, environment, stop):
        await begin(debugger, arguments, child, spec, environment.session)
        if exceptions:
            await debugger.set_exception_breakpoints(exceptions)
    return LaunchedProgram(debugger=debugger, child=child, close=lambda: (stop(), close()))


async def attach_over_socket(debugger: DapDebugger, arguments: JsonObject, spec: AttachSpec) -> LaunchedProgram:
    await connect(debugger, spec)
    try:
        await debugger.initialize(timeout=spec.timeout)
        await debugger.begin("attach", arguments, timeout=spec.timeout)
    except BaseException:
        debugger.client.close()
        raise
    return LaunchedProgram(debugger=debugger, child=None, close=debugger.client.close)


async def compile_source(command: Sequence[str], root: Path, *, timeout: float = 120.0) -> None:
    """Run a compiler; its output is part of the error where it fails."""
    code, output = await _run(command, cwd=root, timeout=timeout)
    if code:
        raise ToolError(
            f"`{Path(command[0]).name}` failed with exit code {code}.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction="Fix the compiler errors, or give a compiled program.",
            fields={"output": output[-2000:]},
        )


_LISTEN = "0A"  # the state of a listening socket in /proc/net/tcp


def require_own_process(pid: int) -> None:
    """Require another process of the same user. Root may not attach to other users' processes either."""
    if look_up(pid) is None:
        raise NotFound(
            f"Process {pid} not found.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction="Look up its id again; it may have ended.",
        )
    if pid == os.getpid():
        raise InvalidArguments(f"Process {pid} is the debugger itself.", instruction="Attach to another process.")
    owner = os.stat(f"/proc/{pid}").st_uid
    if owner != os.geteuid():
        raise ToolError(
            f"Process {pid} belongs to another user ({owner}).",
            code=ErrorCode.EXECUTION_NOT_ALLOWED,
            instruction="Only processes of the user who runs the debugger can be attached to.",
        )


def cannot_attach(language: str, target: str, instruction: str) -> ToolError:
    return unsupported(f"The debugger of {language} cannot attach to {target}.", instruction)


def listening_ports(pid: int) -> frozenset[int]:
    """The TCP ports on which a local process listens."""
    sockets: set[str] = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # it was closed since
            sockets.add(os.readlink(descriptor))
    rows = Path(f"/proc/{pid}/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    return frozenset(
        int(each[1].rpartition(":")[2], 16)
        for each in map(str.split, rows)
        if each[3] == _LISTEN and f"socket:[{each[9]}]" in sockets
    )


async def connect(debugger: DapDebugger, spec: AttachSpec) -> None:
    try:
        async with asyncio.timeout(spec.timeout):
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: debugger.client, spec.host, spec.port or 0)
    except (OSError, TimeoutError) as error:
        raise not_reachable(spec, error) from None


def not_reachable(spec: AttachSpec, reason: object) -> ToolError:
    return ToolError(
        f"No debugger at {spec.host}:{spec.port}: {str(reason) or 'timeout'}.",
        code=ErrorCode.SESSION_START_FAILED,
        instruction="Start the program so that its debugger listens there, and check host and port.",
    )


async def report_exit(pid: int, session: DebugSession) -> None:
    """Send `Exited` when a process ends that is not our child; only its parent can read the exit code."""
    try:
        handle = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(handle, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)
    session.receive(Exited())


class ChildSessions:
    """Sessions of the threads or processes that a program starts.

    `connect` makes the debugger of one that the program's debugger reports; without it, `open` and `begin` are called.
    """

    def __init__(
        self,
        environment: LaunchEnvironment,
        kind: Literal["thread", "process"],
        connect: Callable[[DebugSession, JsonObject], Awaitable[Debugger]] | None = None,
    ) -> None:
        self._environment = environment
        self._kind = kind
        self._background = BackgroundTasks()
        self._connect = connect
        if connect is not None:
            environment.session.on_child = self._on_child
        self.close = self._background.cancel

    def open(self) -> DebugSession | None:
        """A session for a child, or None where there are too many."""
        parent = self._environment.session
        return self._environment.open_child(parent, f"a {self._kind} that {parent.id} started")

    def begin(self, session: DebugSession, debugger: Awaitable[Debugger]) -> None:
        """Connect the debugger of a child in the background and let the child run with its parent's breakpoints."""
        self._background.start(self._begin(session, debugger))

    def _on_child(self, event: ChildStarted) -> None:
        if self._connect is not None and (session := self.open()) is not None:
            self.begin(session, self._connect(session, event.arguments))

    async def _begin(self, session: DebugSession, connecting: Awaitable[Debugger]) -> None:
        parent = self._environment.session
        try:
            session.debugger = debugger = await connecting
            await session.add_breakpoints([each.spec for each in parent.breakpoints])
            await session.rules.copy_from(parent.rules)
            await debugger.start()
            session.mark_started()
        except (*DEBUGGER_ERRORS, OSError) as error:
            # Short-lived children are often gone before they are connected.
            session.receive(Disconnected(reason=str(error) or "timeout"))


_LAST_OUTPUT = 1.0
"""Seconds to wait for the output of an ended program; a process that it started may hold its pipes open for ever."""
_SEARCHED = 20_000


class OutputStreams:
    """Output of a child process as events of a session. `clean` removes the debugger's own lines from stderr."""

    def __init__(
        self, child: ChildProcess, session: DebugSession, *, clean: Callable[[str], str] = lambda text: text
    ) -> None:
        self._child = child
        self._session = session
        self._clean = clean
        self._recent = ""
        self._waiters: list[tuple[re.Pattern[str], asyncio.Future[re.Match[str]]]] = []
        self._open = {"stdout", "stderr"}
        self._all_read = asyncio.Event()
        self.close = _read(
            PipeReader(child.stdout, self._receiver("stdout")), PipeReader(child.stderr, self._receiver("stderr"))
        )

    async def wait_for(self, pattern: str, *, timeout: float) -> re.Match[str]:
        """Wait until the output matches. Raises `EOFError` where it ends before."""
        wanted = re.compile(pattern)
        if (found := wanted.search(self._recent)) is not None:
            return found
        waiter: asyncio.Future[re.Match[str]] = asyncio.get_running_loop().create_future()
        self._waiters.append((wanted, waiter))
        if not self._open:
            raise EOFError
        async with asyncio.timeout(timeout):
            return await waiter

    async def report_exit(self) -> None:
        """Send `Exited` when the process has ended, after all of its output."""
        await self._child.exited.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_OUTPUT):
                await self._all_read.wait()
        self._session.receive(Exited.with_status(self._child.exit_status()))

    def _receiver(self, stream: OutputStream) -> Callable[[bytes], None]:
        def receive(chunk: bytes) -> None:
            text = chunk.decode(errors="replace")
            self._search(text)
            if own := self._clean(text) if stream == "stderr" else text:
                self._session.receive(Output(stream=stream, text=own))
            if not chunk:
                self._end(stream)

        return receive

    def _end(self, stream: OutputStream) -> None:
        self._open.discard(stream)
        if self._open:
            return
        self._all_read.set()
        for _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(EOFError())

    def _search(self, text: str) -> None:
        if len(self._recent) >= _SEARCHED and not self._waiters:
            return
        self._recent = (self._recent + text)[-_SEARCHED:]
        for wanted, waiter in self._waiters:
            if not waiter.done() and (found := wanted.search(self._recent)) is not None:
                waiter.set_result(found)
        self._waiters = [(wanted, waiter) for wanted, waiter in self._waiters if not waiter.done()]


def without_exits(listener: Listener) -> Listener:
    """A listener without `Exited`: the process itself reports how it ended, and more exactly."""

    def receive(event: Event) -> None:
        if not isinstance(event, Exited):
            listener(event)

    return receive


def without_lines(own: re.Pattern[str]) -> Callable[[str], str]:
    """A filter for the lines that a debugger writes itself."""
    return lambda text: "".join(line for line in text.splitlines(keepends=True) if own.match(line) is None)
