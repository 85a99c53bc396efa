"""The channel to a server that is a process of ours: a line a message, in time linear in its length."""

from __future__ import annotations

import asyncio
import dataclasses
import fcntl
import os
import signal
import struct
import termios
import time
from collections import deque
from collections.abc import Mapping

from trysquare.core.untrusted import cleaned_text
from trysquare.gateway.server import ServerConfig
from trysquare.gateway.upstream.channel import Listener, Loss, Outgoing, RequestId, Unreachable
from trysquare.gateway.upstream.environment import server_environment
from trysquare.processes.child import Child, Command
from trysquare.processes.nursery import Nursery
from trysquare.wire.pipes import Inlet, LineSplitter, Outlet

_TAIL_BYTES = 8192
_LAST_WORDS = 600
_EXIT_SECONDS = 0.1
"""How long an exit status is waited for once the output has ended; it comes with it or not at all."""
_MAX_WAITING = 64 * 1024 * 1024
_MAX_NOTED = 256
_HELD_SECONDS = 0.002
"""How long a message waits for others to be written with; a turn with many callers can be ten times as long."""


class StdioChannel:
    """A server as a child process: requests to its stdin, messages from its stdout, its stderr kept for errors."""

    def __init__(self, config: ServerConfig, nursery: Nursery, *, environment: Mapping[str, str] | None = None) -> None:
        self._config = config
        self._nursery = nursery
        self._environment = os.environ if environment is None else environment
        self._lines = LineSplitter(config.max_line)
        self._tail = b""
        self._child: Child | None = None
        self._listener: Listener | None = None
        self._exit_timer: asyncio.TimerHandle | None = None
        self._takes_input = True
        self._output_ended = False
        self._held: list[bytes] | None = None
        """What is written at the end of this turn of the loop; None before the first message of a turn."""
        self._written = 0
        self._wrote_at = 0.0
        self._writing_from = 0
        self._requests: deque[tuple[int, RequestId]] = deque()
        """The latest requests, each with the count of bytes that were written up to its end."""

    @property
    def pid(self) -> int | None:
        """The process, once it has been started."""
        return None if self._child is None else self._child.pid

    async def open(self, listener: Listener) -> None:
        try:
            child = self._nursery.start(self._command())
        except (OSError, ValueError) as error:
            raise Unreachable(_cannot_start(self._config, error)) from None
        self._child, self._listener = child, listener
        self._outlet_end = child.stdin
        self._outlet = Outlet(child.stdin, self._input_closed)
        self._output = Inlet(child.stdout, self._hear)
        self._errors = Inlet(child.stderr, self._hear_error)
        self._output.start()
        self._errors.start()
        self._exit_watch = asyncio.ensure_future(self._tell_exit(child))

    def send(self, outgoing: Outgoing) -> None:
        if self._listener is None:
            raise Unreachable(Loss(reason="The server has ended.", was_sent=False))
        if self._outlet.waiting_bytes > _MAX_WAITING:
            raise Unreachable(Loss(reason="The server does not read what it is sent.", was_sent=False))
        line = outgoing.body + b"\n"
        self._written += len(line)
        if outgoing.request_id is not None:
            self._note_request(outgoing.request_id)
        if self._held is not None:
            self._held.append(line)
            if time.monotonic() - self._wrote_at > _HELD_SECONDS:
                self._write_held()
            return
        self._held = []
        asyncio.get_running_loop().call_soon(self._end_turn)
        self._write(line)
        if not self._takes_input:
            # It never got the end of the line, so it cannot have acted on it.
            raise Unreachable(Loss(reason="The server has closed its input.", was_sent=False))

    def _end_turn(self) -> None:
        self._write_held()
        self._held = None

    def _write_held(self) -> None:
        """Write at once what many callers sent in one turn of the loop, after the first of them."""
        held, self._held = self._held, []
        if held and self._takes_input:
            self._write(b"".join(held))

    def _write(self, data: bytes) -> None:
        self._writing_from = self._written - len(data)
        self._wrote_at = time.monotonic()
        self._outlet.write(data)

    def settle(self, version: str) -> None:
        return None

    def abandon(self, request_id: RequestId) -> None:
        return None

    def last_words(self) -> str:
        return cleaned_text(self._tail.decode("utf-8", "replace")[-_LAST_WORDS:]).strip()

    async def close(self) -> None:
        self._listener = None
        if self._child is None:
            return
        self._exit_watch.cancel()
        self._stop_reading()
        await self._nursery.end(self._child)

    def _command(self) -> Command:
        return Command(
            program=self._config.command,
            arguments=self._config.args,
            environment=server_environment(self._environment, passed=self._config.pass_env, given=self._config.env),
            folder=self._config.cwd,
        )

    def _note_request(self, request_id: RequestId) -> None:
        self._requests.append((self._written, request_id))
        if len(self._requests) > _MAX_NOTED:
            taken = self._taken()
            while self._requests and self._requests[0][0] <= taken:
                self._requests.popleft()

    def _taken(self) -> int:
        """How much of what we wrote the server has taken out of its pipe, alive or dead."""
        unread = struct.unpack("i", fcntl.ioctl(self._outlet_end, termios.FIONREAD, b"\0\0\0\0"))[0]
        held = sum(len(line) for line in self._held or ())
        taken = self._written - held - self._outlet.waiting_bytes - unread
        return taken if self._takes_input else min(taken, self._writing_from)

    def _hear(self, chunk: bytes) -> None:
        for line in self._lines.feed(chunk) if chunk else self._lines.finish():
            if line is None:
                self._lose(Loss(reason=f"The server sent a message of more than {self._config.max_line} bytes."))
            elif line.startswith((b"{", b"[")) and self._listener is not None:
                self._listener.hear(line)
            elif line.strip():
                self._hear_oddity(line)
        if not chunk:
            self._output_ended = True
            self._consider_loss()

    def _hear_oddity(self, line: bytes | bytearray) -> None:
        """A line that is no message as it stands: indented, after a byte order mark, or something printed."""
        if self._listener is not None:
            self._listener.hear(line.removeprefix(b"\xef\xbb\xbf").strip())

    def _hear_error(self, chunk: bytes) -> None:
        self._tail = (self._tail + chunk)[-_TAIL_BYTES:]

    def _input_closed(self) -> None:
        """The server reads no more. Its output is still heard, and its end tells why."""
        self._takes_input = False
        self._consider_loss()

    async def _tell_exit(self, child: Child) -> None:
        await child.exited.wait()
        self._consider_loss()

    def _consider_loss(self) -> None:
        """Tell the loss: at once with an exit status when all has been read, else after a moment for the rest."""
        if self._listener is None or self._child is None:
            return
        if self._output_ended and self._child.exit_status() is not None:
            self._tell_loss()
        elif self._exit_timer is None:
            self._exit_timer = asyncio.get_running_loop().call_later(_EXIT_SECONDS, self._tell_loss)

    def _tell_loss(self) -> None:
        assert self._child is not None
        self._lose(Loss(reason=_how_it_ended(self._child.exit_status())))

    def _lose(self, loss: Loss) -> None:
        listener, self._listener = self._listener, None
        if listener is None:
            return
        taken = self._taken()
        self._stop_reading()
        for end, request_id in self._requests:
            if end > taken:
                # The server ended before it had read the whole request, so it cannot have acted on it.
                listener.lose(dataclasses.replace(loss, was_sent=False), request_id)
        listener.lose(loss)

    def _stop_reading(self) -> None:
        if self._exit_timer is not None:
            self._exit_timer.cancel()
        self._output.stop()
        self._errors.stop()
        self._outlet.close()


def _how_it_ended(status: int | None) -> str:
    if status is None:
        return "The server closed its connection."
    if status < 0:
        return f"The server was ended by {_signal_name(-status)}."
    return f"The server exited with status {status}."


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _cannot_start(config: ServerConfig, error: OSError | ValueError) -> Loss:
    place = f"({config.place})"
    if isinstance(error, FileNotFoundError) and config.cwd is not None and error.filename == config.cwd:
        reason = f"Its folder `{config.cwd}` does not exist {place}."
    elif isinstance(error, FileNotFoundError):
        reason = f"Its command `{config.command}` was not found {place}."
    else:
        told = (error.strerror if isinstance(error, OSError) else None) or str(error)
        reason = f"Its command `{config.command}` cannot be started: {told} {place}."
    return Loss(reason=reason, was_sent=False, instruction="Correct the entry in the configuration of the gateway.")
