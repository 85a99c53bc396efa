"""The one raw client for every server over HTTP: kept-alive connections, requests written by hand."""

from __future__ import annotations

import json
import re
import selectors
import socket
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measures import Load, cpu_seconds, running
from benchmarks.peers.known import start_of
from benchmarks.workload import HANDSHAKE, MODERN, call, expected_text, opening

_WARM = 16
_NUMBER = re.compile(rb'"id":\s*(\d+)')
_SESSION = re.compile(rb"\r\nmcp-session-id:\s*([^\r]+)", re.IGNORECASE)
_MOST_REOPENED = 200
_PATIENCE = 120.0


class Connection:
    """One kept-alive connection with at most one request under way, and in 2025-11-25 a session of its own."""

    def __init__(self, port: int, era: str) -> None:
        self._port = port
        self._era = era
        self._received = b""
        self._session = ""
        self.socket = _connected(port)
        if era == HANDSHAKE:
            self._shake_hands()

    def send(self, message: dict[str, Any]) -> None:
        """Write one request."""
        body = json.dumps(message, separators=(",", ":")).encode()
        if self._era == MODERN:
            own = f"Mcp-Method: {message['method']}\r\nMcp-Name: {message['params']['name']}\r\n"
        else:
            own = f"Mcp-Session-Id: {self._session}\r\n" if self._session else ""
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {self._era}\r\n{own}"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self.socket.sendall(head.encode() + body)

    def _shake_hands(self) -> None:
        initialize, initialized = opening(self._era)
        answer = self._exchanged(initialize)
        found = _SESSION.search(answer)
        if found is None:
            raise RuntimeError(f"the server opened no session: {answer[:500]!r}")
        self._session = found[1].decode()
        self._exchanged(initialized)

    def _exchanged(self, message: dict[str, Any]) -> bytes:
        self.send(message)
        while (answer := self.receive()) is None:
            pass
        return answer

    def reopen(self) -> None:
        """Connect anew: a server may close a connection that waited too long behind others."""
        self.socket.close()
        self._received = b""
        self.socket = _connected(self._port)

    def receive(self) -> bytes | None:
        """The whole answer once it is there, else None."""
        chunk = self.socket.recv(1 << 20)
        if not chunk:
            raise ConnectionResetError(f"the server closed the connection: {self._received[:500]!r}")
        self._received += chunk
        head, gap, body = self._received.partition(b"\r\n\r\n")
        if not gap or not _is_whole(head.lower(), body):
            return None
        answer, self._received = self._received, b""
        return answer


def _connected(port: int) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def _is_whole(head: bytes, body: bytes) -> bool:
    if b"transfer-encoding: chunked" in head:
        return body.endswith(b"0\r\n\r\n")
    _, _, rest = head.partition(b"content-length:")
    return len(body) >= int(rest.split(b"\r\n", 1)[0] or b"0")


class HttpClient:
    """Several connections to one server, driven together."""

    def __init__(self, port: int, callers: int, tools: int, era: str) -> None:
        self._connections = [Connection(port, era) for _ in range(callers)]
        self._tools = tools
        self._era = era
        self._number = 1
        self._reopened = 0

    def exchange(self, *, until: float, least: int) -> int:
        """Keep every connection busy until then."""
        with selectors.DefaultSelector() as selector:
            for connection in self._connections:
                selector.register(connection.socket, selectors.EVENT_READ, connection)
                self._send(connection)
            open_ones, answered, sent = len(self._connections), 0, len(self._connections)
            while open_ones:
                for key, _ in selector.select():
                    answer = self._received(selector, key.data)
                    if answer is None:
                        continue
                    answered += 1
                    if answered == 1:
                        _check(answer)
                    if time.monotonic() < until or sent < least:
                        self._send(key.data)
                        sent += 1
                    else:
                        selector.unregister(key.data.socket)
                        open_ones -= 1
        return answered

    def _received(self, selector: selectors.BaseSelector, connection: Connection) -> bytes | None:
        """The answer if it is whole. A connection that the server has closed is opened again, a few times."""
        try:
            return connection.receive()
        except ConnectionResetError:
            self._reopened += 1
            if self._reopened > _MOST_REOPENED:
                raise
            selector.unregister(connection.socket)
            connection.reopen()
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            self._send(connection)
            return None

    def _send(self, connection: Connection) -> None:
        connection.send(call(self._number, self._tools, self._era))
        self._number += 1

    def close(self) -> None:
        """Close every connection."""
        for connection in self._connections:
            connection.socket.close()


def _check(answer: bytes) -> None:
    number = _NUMBER.search(answer)
    if not answer.startswith(b"HTTP/1.1 200") or not number or expected_text(int(number[1])).encode() not in answer:
        raise RuntimeError(f"a wrong answer: {answer[:800]!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpServer:
    """A server process that listens."""

    process: int
    port: int
    tools: int
    era: str

    def load(self, callers: int, seconds: float) -> Load:
        """Keep that many connections busy for that long."""
        with closing(HttpClient(self.port, min(callers, 4), self.tools, self.era)) as warming:
            warming.exchange(until=0.0, least=_WARM)
        # Fresh connections: a slow server may have closed those that waited while it warmed up.
        with closing(HttpClient(self.port, callers, self.tools, self.era)) as client:
            before, started = cpu_seconds(self.process), time.monotonic()
            calls = client.exchange(until=started + seconds, least=callers)
            return Load(calls=calls, seconds=time.monotonic() - started, cpu=cpu_seconds(self.process) - before)


@contextmanager
def http_server(peer: str, tools: int, era: str, project: Path) -> Generator[HttpServer]:
    """A server process for loads of several sizes; in 2025-11-25 it keeps sessions."""
    port = _free_port()
    transport = "http" if era == MODERN else "http-sessions"
    with running(start_of(peer, transport, tools, project, str(port)), piped=False) as process:
        _wait_until_open(port, process)
        yield HttpServer(process=process.pid, port=port, tools=tools, era=era)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_until_open(port: int, process: Any) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"the server has ended: {process.stderr.read().decode()[-2000:]}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"the server does not listen at port {port}")
