"""Stdio transport, and the environment of a server's process."""

from __future__ import annotations

import asyncio
import dataclasses
import fcntl
import os
import re
import signal
import struct
import sys
import termios
import time
from collections import deque
from collections.abc import Iterable, Mapping

from trysquare.core.redaction import is_secret_name
from trysquare.core.untrusted import cleaned_text
from trysquare.files import globs
from trysquare.gateway.models import ServerConfig
from trysquare.gateway.upstream.transport import (
    DisconnectReason,
    OutgoingMessage,
    RequestId,
    Transport,
    TransportError,
    TransportListener,
    message_too_long,
)
from trysquare.processes.pipes import LineBuffer, PipeReader, PipeWriter
from trysquare.processes.supervisor import ChildProcess, Command, ProcessSupervisor

_OWN = "TRYSQUARE_"
_PLAIN = (
    "HOME LOGNAME PATH SHELL TERM USER LANG LANGUAGE LC_* TZ TMPDIR TMP TEMP XDG_*_HOME XDG_*_DIRS XDG_RUNTIME_DIR"
    # Windows.
    " APPDATA COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA NUMBER_OF_PROCESSORS OS PATHEXT PROCESSOR_ARCHITECTURE"
    " PROGRAMDATA PROGRAMFILES* SYSTEMDRIVE SYSTEMROOT USERNAME USERPROFILE WINDIR"
)
_PROGRAMS = (
    # Where interpreters, package runners and their caches are, and how they reach their registries.
    " VIRTUAL_ENV CONDA_PREFIX PYTHONPATH PYTHONUTF8 LD_LIBRARY_PATH DYLD_* NODE_PATH NVM_DIR NVM_BIN FNM_* VOLTA_HOME"
    " PNPM_HOME BUN_INSTALL DENO_DIR PYENV_ROOT ASDF_* MISE_* JAVA_HOME GOPATH GOROOT CARGO_HOME RUSTUP_HOME"
    " DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG PLAYWRIGHT_BROWSERS_PATH UV_* PIP_* NPM_CONFIG_*"
    " HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE"
    " CURL_CA_BUNDLE"
)
_NAMES = tuple(_PLAIN.split())
_CHECKED_NAMES = tuple(_PROGRAMS.split())
_USER_IN_ADDRESS = re.compile(r"//[^/\s]*@")


def server_environment(
    own: Mapping[str, str], *, passed: Iterable[str] = (), given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment of a server's process: harmless variables, those that match `passed`, and `given`.

    The gateway's own environment holds tokens for other servers, clouds and models.
    """
    globs_passed = tuple(passed)
    inherited = {name: value for name, value in own.items() if _is_passed(name, value, globs_passed)}
    return {**inherited, **(given or {})}


def withheld(own: Mapping[str, str], *, passed: Iterable[str] = (), given: Iterable[str] = ()) -> list[str]:
    """The names of the variables that a server does not inherit."""
    known = {*server_environment(own, passed=passed), *given}
    return sorted(name for name in own if name not in known and not name.startswith(_OWN))


def _is_passed(name: str, value: str, passed: tuple[str, ...]) -> bool:
    # Our own settings can hold our access tokens, so not even `*` matches them.
    if name.startswith(_OWN):
        return name in passed
    if _matches(name, passed, exact=True):
        return True
    # A shell function in a variable is code.
    if value.startswith("()"):
        return False
    if _matches(name, _NAMES):
        return True
    return _matches(name, _CHECKED_NAMES) and not _may_be_secret(name, value)


def _may_be_secret(name: str, value: str) -> bool:
    """Whether a setting of a package manager or a proxy may be or hold a secret."""
    return is_secret_name(name) or "AUTH" in name.upper() or _USER_IN_ADDRESS.search(value) is not None


def _matches(name: str, patterns: Iterable[str], *, exact: bool = False) -> bool:
    # Settings of proxies and npm are written in either case.
    own = name if exact else name.upper()
    return any(globs.matches(own, pattern) for pattern in patterns)


_TAIL_BYTES = 8192
_STDERR_TAIL = 600
_EXIT_SECONDS = 0.1
"""Seconds to wait for the exit status once the output has ended."""
_MAX_WAITING = 64 * 1024 * 1024
_MAX_TRACKED = 256
_BATCH_SECONDS = 0.002
"""Maximum delay of a message that is batched with others of the same event-loop turn."""


def create_transport(config: ServerConfig, supervisor: ProcessSupervisor) -> StdioTransport:
    """The transport of a server; nothing is opened yet."""
    return StdioTransport(config, supervisor)


class StdioTransport(Transport):
    """Child process with JSON-RPC lines on stdin and stdout; the end of stderr is stored for errors."""

    owns_process = True

    def __init__(
        self, config: ServerConfig, supervisor: ProcessSupervisor, *, environment: Mapping[str, str] | None = None
    ) -> None:
        self._config = config
        self._supervisor = supervisor
        self._environment = os.environ if environment is None else environment
        self._lines = LineBuffer(config.max_line)
        self._tail = b""
        self._child: ChildProcess | None = None
        self._listener: TransportListener | None = None
        self._exit_watch: asyncio.Task[None] | None = None
        self._exit_timer: asyncio.TimerHandle | None = None
        self._takes_input = True
        self._output_ended = False
        self._batch: list[bytes] | None = None
        """Messages to write at the end of this event-loop turn; None before the first one of a turn."""
        self._written = 0
        self._wrote_at = 0.0
        self._writing_from = 0
        self._requests: deque[tuple[int, RequestId]] = deque()
        """The latest requests, each with the number of bytes written up to its end."""

    @property
    def pid(self) -> int | None:
        """The process id, once it is started."""
        return None if self._child is None else self._child.pid

    def prestart(self) -> None:
        self._child = self._start()

    @property
    def is_prestarted(self) -> bool:
        return self._child is not None and self._listener is None and self._child.exit_status() is None

    def _start(self) -> ChildProcess:
        try:
            return self._supervisor.start(self._command())
        except (OSError, ValueError) as error:
            raise TransportError(_cannot_start(self._config, error)) from None

    async def open(self, listener: TransportListener) -> None:
        child = self._start() if self._child is None else self._child
        self._child, self._listener = child, listener
        self._outlet_end = child.stdin
        self._outlet = PipeWriter(child.stdin, self._input_closed)
        self._output = PipeReader(child.stdout, self._receive)
        self._errors = PipeReader(child.stderr, self._receive_stderr)
        self._output.start()
        self._errors.start()
        self._exit_watch = asyncio.ensure_future(self._watch_exit(child))

    def send(self, outgoing: OutgoingMessage) -> None:
        if self._listener is None:
            raise TransportError(DisconnectReason(reason="The server has exited.", was_sent=False))
        if self._outlet.waiting_bytes > _MAX_WAITING:
            raise TransportError(DisconnectReason(reason="The server does not read its input.", was_sent=False))
        line = outgoing.body + b"\n"
        self._written += len(line)
        if outgoing.request_id is not None:
            self._track_request(outgoing.request_id)
        if self._batch is not None:
            self._batch.append(line)
            if time.monotonic() - self._wrote_at > _BATCH_SECONDS:
                self._flush_batch()
            return
        self._batch = []
        asyncio.get_running_loop().call_soon(self._end_turn)
        self._write(line)
        if not self._takes_input:
            # The server never got the end of the line, so it cannot have acted on it.
            raise TransportError(DisconnectReason(reason="The server has closed its input.", was_sent=False))

    def _end_turn(self) -> None:
        self._flush_batch()
        self._batch = None

    def _flush_batch(self) -> None:
        """Write together what followed the first message of an event-loop turn."""
        batch, self._batch = self._batch, []
        if batch and self._takes_input:
            self._write(b"".join(batch))

    def _write(self, data: bytes) -> None:
        self._writing_from = self._written - len(data)
        self._wrote_at = time.monotonic()
        self._outlet.write(data)

    def stderr_tail(self) -> str:
        return cleaned_text(self._tail.decode("utf-8", "replace")[-_STDERR_TAIL:]).strip()

    async def close(self) -> None:
        self._listener = None
        if self._child is None:
            return
        if self._exit_watch is not None:
            self._exit_watch.cancel()
            self._stop_reading()
        await self._supervisor.end(self._child)

    def _command(self) -> Command:
        return Command(
            program=self._config.command,
            arguments=self._config.args,
            environment=server_environment(self._environment, passed=self._config.pass_env, given=self._config.env),
            folder=self._config.cwd,
        )

    def _track_request(self, request_id: RequestId) -> None:
        self._requests.append((self._written, request_id))
        if len(self._requests) > _MAX_TRACKED:
            taken = self._taken()
            while self._requests and self._requests[0][0] <= taken:
                self._requests.popleft()

    def _taken(self) -> int:
        """The number of bytes that the server has read from its pipe, alive or dead."""
        unread = struct.unpack("i", fcntl.ioctl(self._outlet_end, termios.FIONREAD, b"\0\0\0\0"))[0]
        batched = sum(len(line) for line in self._batch or ())
        taken = self._written - batched - self._outlet.waiting_bytes - unread
        return taken if self._takes_input else min(taken, self._writing_from)

    def _receive(self, chunk: bytes) -> None:
        for line in self._lines.feed(chunk) if chunk else self._lines.finish():
            if line is None:
                self._disconnect(message_too_long(self._config.max_line))
            elif line.startswith((b"{", b"[")) and self._listener is not None:
                self._listener.receive(line)
            elif line.strip() and self._listener is not None:
                # Not a message as it is: indented, after a byte order mark, or output of the program.
                self._listener.receive(line.removeprefix(b"\xef\xbb\xbf").strip())
        if not chunk:
            self._output_ended = True
            self._check_exit()

    def _receive_stderr(self, chunk: bytes) -> None:
        self._tail = (self._tail + chunk)[-_TAIL_BYTES:]
        if self._config.shows_errors:
            sys.stderr.write(chunk.decode(errors="replace"))
            sys.stderr.flush()

    def _input_closed(self) -> None:
        """The server closed its input. Its output is still read."""
        self._takes_input = False
        self._check_exit()

    async def _watch_exit(self, child: ChildProcess) -> None:
        await child.exited.wait()
        self._check_exit()

    def _check_exit(self) -> None:
        """Tell the disconnect: at once with an exit status when all has been read, else after a moment for the rest."""
        if self._listener is None or self._child is None:
            return
        if self._output_ended and self._child.exit_status() is not None:
            self._report_exit()
        elif self._exit_timer is None:
            self._exit_timer = asyncio.get_running_loop().call_later(_EXIT_SECONDS, self._report_exit)

    def _report_exit(self) -> None:
        assert self._child is not None
        self._disconnect(DisconnectReason(reason=_exit_reason(self._child.exit_status())))

    def _disconnect(self, disconnect: DisconnectReason) -> None:
        listener, self._listener = self._listener, None
        if listener is None:
            return
        taken = self._taken()
        self._stop_reading()
        for end, request_id in self._requests:
            if end > taken:
                # The server exited before it had read the whole request, so it cannot have acted on it.
                listener.on_disconnect(dataclasses.replace(disconnect, was_sent=False), request_id)
        listener.on_disconnect(disconnect)

    def _stop_reading(self) -> None:
        if self._exit_timer is not None:
            self._exit_timer.cancel()
        self._output.stop()
        self._errors.stop()
        self._outlet.close()


def _exit_reason(status: int | None) -> str:
    if status is None:
        return "The server closed its connection."
    if status < 0:
        return f"The server was killed by {_signal_name(-status)}."
    return f"The server exited with status {status}."


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _cannot_start(config: ServerConfig, error: OSError | ValueError) -> DisconnectReason:
    if isinstance(error, FileNotFoundError) and config.cwd is not None and error.filename == config.cwd:
        reason = f"Its directory `{config.cwd}` does not exist ({config.location})."
    elif isinstance(error, FileNotFoundError):
        reason = f"Its command `{config.command}` was not found ({config.location})."
    else:
        problem = (error.strerror if isinstance(error, OSError) else None) or str(error)
        reason = f"Its command `{config.command}` cannot be started: {problem} ({config.location})."
    return DisconnectReason(reason=reason, was_sent=False, instruction="Ask the user to fix the server's entry.")
