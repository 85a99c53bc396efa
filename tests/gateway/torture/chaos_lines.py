"""The transports of the server that misbehaves: pipes, streamable HTTP, and the HTTP with events before it."""

from __future__ import annotations

import itertools
import json
import os
import select
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.gateway.torture.chaos import GARBAGE, LEGACY, Chaos, Message

if TYPE_CHECKING:
    from collections.abc import Callable

_PARTIAL = b'event: message\ndata: {"jsonrpc": "2.0", "id": '


def encoded(message: Message) -> bytes:
    """A message as one line of JSON."""
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


class PipeLine:
    """Standard output."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def send(self, message: Message) -> None:
        """Write one message."""
        self._write(encoded(message) + b"\n")

    def write_garbage(self) -> None:
        """Write lines that are no messages."""
        self._write(b"\n".join(GARBAGE) + b"\n")

    def cut(self) -> None:
        """Close the pipe, and live on."""
        with self._lock:
            os.close(1)

    def is_gone(self) -> bool:
        """A pipe shows only when it is written to."""
        return False

    def _write(self, data: bytes) -> None:
        with self._lock:
            while data:
                data = data[os.write(1, data) :]


def serve_stdio(chaos: Chaos) -> None:
    """Answer until the input ends; a stubborn server does not even end then."""
    line = PipeLine()
    if chaos.fault == "garbage":
        line.write_garbage()
    if chaos.era == "legacy":
        chaos.listeners[line] = None
    for raw in sys.stdin.buffer:
        threading.Thread(target=chaos.receive, args=(json.loads(raw), line), daemon=True).start()
    while chaos.fault == "stubborn":
        threading.Event().wait(60)


class StreamLine:
    """A response with events, in chunks."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def send(self, message: Message) -> None:
        """Write one message as an event."""
        self.write(b"event: message\ndata: " + encoded(message) + b"\n\n")

    def write_garbage(self) -> None:
        """Write comments, events of unknown kinds, and messages that are none."""
        self.write(b": a comment\n\nevent: nonsense\ndata: 1\n\nretry: soon\n\n")
        for garbage in GARBAGE:
            self.write(b"data: " + garbage.replace(b"\n", b" ") + b"\n\n")

    def cut(self) -> None:
        """Close the connection in the middle of an event."""
        self.write(_PARTIAL)
        self._connection.shutdown(socket.SHUT_RDWR)

    def is_gone(self) -> bool:
        """Whether the client has closed the connection."""
        try:
            readable, _, _ = select.select([self._connection], [], [], 0)
            return bool(readable) and not self._connection.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):
            return True

    def write(self, data: bytes) -> None:
        """Write one chunk."""
        with self._lock:
            self._connection.sendall(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def wait_gone(self) -> None:
        """Wait for the client to hang up."""
        while not self.is_gone():
            threading.Event().wait(0.02)


class JsonLine(StreamLine):
    """Keeps one answer, for a response that is plain JSON."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self.answer: Message | None = None

    def send(self, message: Message) -> None:
        """Keep the message."""
        self.answer = message

    def write_garbage(self) -> None:
        """Plain JSON leaves no room for garbage."""


class Handler(BaseHTTPRequestHandler):
    """What both transports over HTTP share."""

    protocol_version = "HTTP/1.1"
    chaos: Chaos

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def body(self) -> Message:
        """The message of a request."""
        return json.loads(self.rfile.read(int(self.headers["content-length"])))

    def reply(self, status: int, message: Message | None = None, **headers: str) -> None:
        """Answer at once."""
        data = b"" if message is None else encoded(message)
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def stream(self) -> StreamLine:
        """Begin a response with events."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        return StreamLine(self.connection)

    def end_stream(self) -> None:
        """End a response with events."""
        self.wfile.write(b"0\r\n\r\n")

    def ignore_hanging_up(self, work: Callable[[], None]) -> None:
        """Do something for a client that may be gone by now."""
        try:
            work()
        except OSError:
            self.close_connection = True


class QuietServer(ThreadingHTTPServer):
    """A server that is used to clients that hang up."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing."""


class StreamableHandler(Handler):
    """Streamable HTTP: a POST for each message, and in the earlier era a GET for the rest."""

    sessions: set[str]
    numbers: itertools.count[int]

    def do_POST(self) -> None:
        self.ignore_hanging_up(self._post)

    def _post(self) -> None:
        message = self.body()
        method = message.get("method", "")
        if self.chaos.era == "legacy" and method != "initialize" and not self._has_session():
            self.reply(400 if method == "server/discover" else 404, {"id": None, "error": _NO_SESSION})
        elif "id" not in message or not method:
            self.reply(202)
            self.chaos.receive(message, JsonLine(self.connection))
        elif method in ("tools/call", "subscriptions/listen"):
            self.chaos.receive(message, self.stream())
            self.end_stream()
        else:
            self._answer(message)

    def _answer(self, message: Message) -> None:
        line = JsonLine(self.connection)
        self.chaos.receive(message, line)
        if line.answer is None:
            self.close_connection = True
        elif message["method"] == "initialize" and "result" in line.answer:
            session = f"{os.getpid()}.{next(self.numbers)}"
            self.sessions.add(session)
            self.reply(200, line.answer, mcp_session_id=session)
        else:
            self.reply(400 if "error" in line.answer else 200, line.answer)

    def _has_session(self) -> bool:
        return self.headers.get("mcp-session-id") in self.sessions

    def do_GET(self) -> None:
        if self.chaos.era == "modern" or not self._has_session():
            self.reply(405)
            return
        line = self.stream()
        self.chaos.listeners[line] = None
        line.wait_gone()
        self.chaos.listeners.pop(line, None)
        self.close_connection = True

    def do_DELETE(self) -> None:
        self.sessions.discard(self.headers.get("mcp-session-id", ""))
        self.reply(200)


class EventsHandler(Handler):
    """The transport before: one stream of events for everything, and POSTs that are answered there."""

    streams: dict[str, StreamLine]
    numbers: itertools.count[int]

    def do_GET(self) -> None:
        self.ignore_hanging_up(self._get)

    def _get(self) -> None:
        line = self.stream()
        if self.chaos.fault == "mute":
            line.wait_gone()
            return
        session = f"{os.getpid()}.{next(self.numbers)}"
        self.streams[session] = line
        self.chaos.listeners[line] = None
        line.write(f"event: endpoint\ndata: /messages?session_id={session}\n\n".encode())
        line.wait_gone()
        self.streams.pop(session, None)
        self.chaos.listeners.pop(line, None)
        self.close_connection = True

    def do_POST(self) -> None:
        message = self.body()
        line = self.streams.get(self.path.rpartition("=")[2])
        if line is None:
            # Also what a server says whose address is asked for the newer transport.
            self.reply(404)
            return
        self.reply(202)
        threading.Thread(target=self._receive, args=(message, line), daemon=True).start()

    def _receive(self, message: Message, line: StreamLine) -> None:
        self.ignore_hanging_up(lambda: self.chaos.receive(message, line))


_NO_SESSION = {"code": -32000, "message": f"No such session; this server speaks {LEGACY}"}


def serve_http(chaos: Chaos, number: int) -> None:
    """Answer over streamable HTTP until somebody ends the process."""
    StreamableHandler.chaos, StreamableHandler.sessions = chaos, set()
    StreamableHandler.numbers = itertools.count(1)
    _serve(StreamableHandler, number)


def serve_sse(chaos: Chaos, number: int) -> None:
    """Answer over events until somebody ends the process."""
    EventsHandler.chaos, EventsHandler.streams = chaos, {}
    EventsHandler.numbers = itertools.count(1)
    _serve(EventsHandler, number)


def _serve(handler: type[Handler], number: int) -> None:
    listener = socket.socket(fileno=number)
    server = QuietServer(("127.0.0.1", 0), handler, bind_and_activate=False)
    server.socket.close()
    server.socket, server.server_address = listener, listener.getsockname()
    server.serve_forever(poll_interval=60)
