"""The one raw client for every server over HTTP: kept-alive connections, requests written by hand."""

from __future__ import annotations

import json
import selectors
import socket
import time
from pathlib import Path
from typing import Any

from benchmarks.measures import Load, cpu_seconds, running
from benchmarks.peers.known import start_of
from benchmarks.workload import MODERN, call, expected_text

_WARM = 32
_PATIENCE = 120.0


class Connection:
    """One kept-alive connection with at most one request under way."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._port = port
        self._received = b""

    def send(self, message: dict[str, Any]) -> None:
        """Write one request."""
        body = json.dumps(message, separators=(",", ":")).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {MODERN}\r\n"
            f"Mcp-Method: {message['method']}\r\nMcp-Name: {message['params']['name']}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self.socket.sendall(head.encode() + body)

    def receive(self) -> bytes | None:
        """The whole answer once it is there, else None."""
        chunk = self.socket.recv(1 << 20)
        if not chunk:
            raise RuntimeError(f"the server closed the connection: {self._received[:500]!r}")
        self._received += chunk
        head, gap, body = self._received.partition(b"\r\n\r\n")
        if not gap or not _is_whole(head.lower(), body):
            return None
        answer, self._received = self._received, b""
        return answer


def _is_whole(head: bytes, body: bytes) -> bool:
    if b"transfer-encoding: chunked" in head:
        return body.endswith(b"0\r\n\r\n")
    _, _, rest = head.partition(b"content-length:")
    return len(body) >= int(rest.split(b"\r\n", 1)[0])


class HttpClient:
    """Several connections to one server, driven together."""

    def __init__(self, port: int, callers: int, tools: int) -> None:
        self._connections = [Connection(port) for _ in range(callers)]
        self._tools = tools
        self._number = 1

    def exchange(self, *, until: float, least: int) -> int:
        """Keep every connection busy until then."""
        with selectors.DefaultSelector() as selector:
            for connection in self._connections:
                selector.register(connection.socket, selectors.EVENT_READ, connection)
                self._send(connection)
            open_ones, answered, sent = len(self._connections), 0, len(self._connections)
            while open_ones:
                for key, _ in selector.select():
                    answer = key.data.receive()
                    if answer is None:
                        continue
                    answered += 1
                    if answered == 1:
                        _check(answer)
                    if time.monotonic() < until or sent < least:
                        self._send(key.data)
                        sent += 1
                    else:
                        open_ones -= 1
        return answered

    def _send(self, connection: Connection) -> None:
        connection.send(call(self._number, self._tools, MODERN))
        self._number += 1

    def close(self) -> None:
        """Close every connection."""
        for connection in self._connections:
            connection.socket.close()


def _check(answer: bytes) -> None:
    text = answer.decode()
    if not text.startswith("HTTP/1.1 200") or not any(expected_text(number) in text for number in range(100_000)):
        raise RuntimeError(f"a wrong answer: {text[:800]}")


def http_load(peer: str, tools: int, callers: tuple[int, ...], seconds: float, project: Path) -> list[Load]:
    """Loads of several sizes on one server process."""
    port = _free_port()
    with running(start_of(peer, "http", tools, project, str(port)), piped=False) as process:
        _wait_until_open(port, process)
        return [_load(process.pid, port, each, tools, seconds) for each in callers]


def _load(process: int, port: int, callers: int, tools: int, seconds: float) -> Load:
    client = HttpClient(port, callers, tools)
    try:
        client.exchange(until=0.0, least=_WARM)
        before, started = cpu_seconds(process), time.monotonic()
        calls = client.exchange(until=started + seconds, least=callers)
        return Load(calls=calls, seconds=time.monotonic() - started, cpu=cpu_seconds(process) - before)
    finally:
        client.close()


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
