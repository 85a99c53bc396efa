"""Serving over stdio: a real process, through the SDK's client and byte by byte."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters

import trysquare
from tests.server.clients import MODERN_META, MODES, Person, text_of
from tests.support import size as size_of

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "tests.server.sample"]


class Process:
    """A server that reads and writes lines."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout

    def send(self, *lines: bytes) -> None:
        self._input.write(b"".join(line + b"\n" for line in lines))
        self._input.flush()

    def call(self, request_id: Any, name: str, arguments: Any, method: str = "tools/call") -> None:
        params = {"name": name, "arguments": arguments, "_meta": MODERN_META}
        self.send(json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode())

    def read(self) -> Any:
        return json.loads(self._output.readline())

    def finish(self) -> tuple[list[Any], str]:
        """Close the input; what is still answered, and what was written to stderr."""
        self._input.close()
        rest = [json.loads(line) for line in self._output]
        assert self.process.stderr is not None
        told = self.process.stderr.read().decode()
        assert self.process.wait(20) == 0, told
        return rest, told


@contextmanager
def running() -> Generator[Process]:
    process = subprocess.Popen(COMMAND, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield Process(process)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def _asking(*words: str) -> dict[str, Any]:
    return {"elicitation_callback": Person(*words)}


@pytest.mark.parametrize("mode", MODES)
async def test_the_sdks_client_is_served(mode: Any) -> None:
    parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], cwd=ROOT)
    async with Client(parameters, mode=mode, **_asking("wet", "cold")) as client:
        assert "add" in [entry.name for entry in (await client.list_tools()).tools]
        assert text_of(await client.call_tool("converse", {"topic": "rain"})) == "wet cold"
        assert text_of(await client.call_tool("printing", {"text": "oops"})) == "printed"
        assert len(text_of(await client.call_tool("bulky", {"size": 500_000}))) == 500_000


def test_nothing_but_json_reaches_stdout() -> None:
    with running() as server:
        server.call(1, "printing", {"text": "from python"})
        assert server.read()["id"] == 1
        rest, told = server.finish()
    assert rest == []
    for printed in ("from python", "straight to the descriptor", "from a child"):
        assert printed in told


def test_bad_lines_are_answered_and_the_next_good_call_works() -> None:
    bad = [b"{", b"\xff\xff", b"[]", b'"text"', b'{"jsonrpc":"2.0","id":5,"method":3}', b"", b"   "]
    with running() as server:
        server.send(*bad)
        answers = [server.read() for _ in range(5)]
        server.call(6, "add", {"a": 1, "b": 2})
        assert server.read()["result"]["structuredContent"]["result"] == 3
        rest, told = server.finish()
    assert [answer["error"]["code"] for answer in answers] == [-32700, -32700, -32600, -32600, -32600]
    assert [answer["id"] for answer in answers] == [None, None, None, None, 5]
    assert rest == []
    assert "Traceback" not in told


def test_a_line_of_ten_megabytes_is_served() -> None:
    text = "y" * 10_000_000
    with running() as server:
        server.call(1, "echo", {"value": text})
        assert server.read()["result"]["content"][0]["text"] == text


def test_the_answer_of_another_server_passes_unread_with_our_label() -> None:
    body = '{"content":[{"type":"text",\n"text":"1.50 \\u00e9"}],"_meta":{"own":1.50}}'
    with running() as server:
        server.call(1, "relay", {"body": body})
        assert server.read()["result"] == {
            "content": [{"type": "text", "text": "1.50 é"}],
            "_meta": {
                "own": 1.5,
                "trysquare/origin": {"server": "other"},
                types.SERVER_INFO_META_KEY: {"name": "trysquare", "version": trysquare.__version__},
            },
            "resultType": "complete",
        }


@pytest.mark.parametrize("body", ["", "[]", "{", '{"a":"\xff"}', '{} {"jsonrpc":"2.0"}'])
def test_bytes_of_another_server_that_are_no_answer_do_not_break_the_stream(body: str) -> None:
    with running() as server:
        server.call(1, "relay", {"body": body})
        server.call(2, "add", {"a": 1, "b": 2})
        answers = {answer["id"]: answer["result"] for answer in (server.read(), server.read())}
    assert answers[1]["isError"] is True
    assert answers[2]["structuredContent"]["result"] == 3


def test_fifty_megabytes_of_another_server_pass() -> None:
    size = size_of(5_000_000, 50_000_000)
    body = '{"content":[{"type":"text","text":"*"}]}'
    with running() as server:
        server.call(1, "relay", {"body": body, "repeated": size})
        assert len(server.read()["result"]["content"][0]["text"]) == size


def test_half_characters_in_arguments_do_no_harm() -> None:
    with running() as server:
        server.call(1, "echo", {"value": "a\ud800b"})
        first = server.read()
        server.call(2, "filename", {})
        second = server.read()
        server.call(3, "\udfff", {})
        third = server.read()
        server.call(4, "add", {"a": 1, "b": 2})
        assert server.read()["result"]["structuredContent"]["result"] == 3
        _, told = server.finish()
    assert first["id"] == 1
    assert second["result"]["structuredContent"]["result"].startswith("caf")
    assert third["error"]["code"] == -32602
    assert "Traceback" not in told


def test_calls_that_are_open_when_the_input_ends_are_answered() -> None:
    with running() as server:
        for number in range(10):
            server.call(number, "slow", {"seconds": 0.2})
        rest, _ = server.finish()
    assert sorted(answer["id"] for answer in rest) == list(range(10))
    assert all(answer["result"]["structuredContent"]["result"] == "slept" for answer in rest)


def test_input_that_ends_without_a_newline_is_still_a_line() -> None:
    with running() as server:
        params = {"name": "add", "arguments": {"a": 1, "b": 1}, "_meta": MODERN_META}
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        assert server.process.stdin is not None
        server.process.stdin.write(line)
        rest, _ = server.finish()
    assert rest[0]["result"]["structuredContent"]["result"] == 2


def test_a_client_that_leaves_at_once_ends_the_server() -> None:
    with running() as server:
        rest, told = server.finish()
    assert rest == []
    assert "Traceback" not in told


def test_a_client_that_reads_nothing_cannot_block_the_server() -> None:
    with running() as server:
        for number in range(40):
            server.call(number, "bulky", {"size": 100_000})
        server.call("last", "add", {"a": 1, "b": 1})
        answers = [server.read() for _ in range(41)]
        rest, _ = server.finish()
    assert {answer["id"] for answer in answers} == {*range(40), "last"}
    assert rest == []


def test_a_client_that_stops_reading_for_good_ends_the_server() -> None:
    with running() as server:
        server.call(1, "add", {"a": 1, "b": 1})
        server.read()
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.call(2, "bulky", {"size": 1_000_000})
        assert server.process.wait(20) == 0


def test_sockets_serve_as_well_as_pipes() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, open(os.devnull, "wb") as nothing:
        process = subprocess.Popen(COMMAND, cwd=ROOT, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=nothing)
        theirs.close()
        params = {"name": "bulky", "arguments": {"size": 1_000_000}, "_meta": MODERN_META}
        ours.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode() + b"\n")
        with ours.makefile("rb") as lines:
            answer = json.loads(lines.readline())
        ours.shutdown(socket.SHUT_WR)
        assert process.wait(20) == 0
    assert len(answer["result"]["structuredContent"]["result"]) == 1_000_000


def test_a_file_can_be_the_input(tmp_path: Path) -> None:
    params = {"name": "add", "arguments": {"a": 1, "b": 1}, "_meta": MODERN_META}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    (tmp_path / "requests").write_text(line + "\n", encoding="utf-8")
    with open(tmp_path / "requests", "rb") as requests:
        done = subprocess.run(COMMAND, cwd=ROOT, stdin=requests, capture_output=True, timeout=30, check=True)
    assert json.loads(done.stdout)["result"]["structuredContent"]["result"] == 2
