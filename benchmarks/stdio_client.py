"""The one raw client for every server over stdio: lines of JSON, and nothing that a server could be favoured by."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measures import Cold, Load, cpu_seconds, running
from benchmarks.peers.known import start_of
from benchmarks.workload import HANDSHAKE, call, expected_text, line, opening, request

_WARM = 64


class StdioClient:
    """Writes and reads lines of a server process."""

    def __init__(self, process: subprocess.Popen[bytes], era: str = HANDSHAKE) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("the server process needs pipes")
        self._in, self._out = process.stdin, process.stdout
        self._process = process
        self._rest = b""
        self._era = era
        self._is_opening = era == HANDSHAKE
        self.send(*opening(era))

    def send(self, *messages: dict[str, Any]) -> None:
        """Write messages at once."""
        data = b"".join(map(line, messages))
        while data:
            data = data[self._in.write(data) or 0 :]

    def lines(self) -> Iterator[bytes]:
        """The lines that have come; waits for at least one."""
        while True:
            chunk = self._out.read(1 << 20)
            if not chunk:
                told = self._process.stderr.read().decode() if self._process.stderr else ""
                raise RuntimeError(f"the server has ended: {told[-2000:]}")
            *whole, self._rest = (self._rest + chunk).split(b"\n")
            if whole:
                yield from whole
                return

    def answer(self, number: int) -> dict[str, Any]:
        """The answer to the request of that number."""
        while True:
            for raw in self.lines():
                message = json.loads(raw) if raw.strip() else {}
                if message.get("id") == number and "method" not in message:
                    return message

    def list_tools(self) -> int:
        """How many tools the server lists, all pages of them."""
        count, cursor, number = 0, None, 1
        while True:
            params = {} if cursor is None else {"cursor": cursor}
            self.send(request(number, "tools/list", params, self._era))
            result = self.answer(number)["result"]
            count, cursor, number = count + len(result["tools"]), result.get("nextCursor"), number + 1
            if cursor is None:
                return count

    def load(self, tools: int, callers: int, seconds: float) -> Load:
        """Keep that many calls under way for that long."""
        if self._is_opening:
            self.answer(0)
            self._is_opening = False
        self._exchange(tools, callers, first=1_000, until=0.0, least=_WARM)
        before, started = cpu_seconds(self._process.pid), time.monotonic()
        calls = self._exchange(tools, callers, first=10_000, until=started + seconds, least=callers)
        took = time.monotonic() - started
        return Load(calls=calls, seconds=took, cpu=cpu_seconds(self._process.pid) - before)

    def _exchange(self, tools: int, callers: int, *, first: int, until: float, least: int) -> int:
        sent, answered = callers, 0
        self.send(*(call(first + number, tools, self._era) for number in range(callers)))
        while answered < sent:
            for raw in self.lines():
                if b'"id":' not in raw or b'"method":' in raw:
                    continue
                if not answered:
                    _check(raw)
                answered += 1
                if time.monotonic() < until or sent < least:
                    self.send(call(first + sent, tools, self._era))
                    sent += 1
        return answered


def _check(raw: bytes) -> None:
    message = json.loads(raw)
    if expected_text(message["id"]) not in raw.decode():
        raise RuntimeError(f"a wrong answer: {raw[:500]!r}")


def cold_start(peer: str, tools: int, project: Path) -> Cold:
    """Start a server and list its tools."""
    started = time.monotonic()
    with running(start_of(peer, "stdio", tools, project), piped=True) as process:
        listed = StdioClient(process).list_tools()
        wall, cpu = time.monotonic() - started, cpu_seconds(process.pid)
    if listed < tools:
        raise RuntimeError(f"{peer} lists {listed} of {tools} tools")
    return Cold(cpu=cpu * 1000, wall=wall * 1000)


@contextmanager
def stdio_server(peer: str, tools: int, era: str, project: Path) -> Generator[StdioClient]:
    """A server process and its client, for loads of several sizes."""
    with running(start_of(peer, "stdio", tools, project), piped=True) as process:
        yield StdioClient(process, era)
