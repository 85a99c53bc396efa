"""The early front: the answers of the last start while the server loads, and never what no longer holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.serve.early import MOST_RECORDS, read_record, request_key, save_record

HELLO: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
MODERN = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
MARK = "as it was answered last time"


def line(number: int, method: str, params: dict[str, Any] | None = None) -> bytes:
    frame: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
    return json.dumps(frame if params is None else {**frame, "params": params}).encode() + b"\n"


@dataclass(kw_only=True)
class Server:
    """A server process: lines in, answers out."""

    process: subprocess.Popen[bytes]
    heard: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def send(self, *data: bytes) -> None:
        inlet: IO[bytes] = self.process.stdin  # pyright: ignore[reportAssignmentType]
        inlet.write(b"".join(data))
        inlet.flush()

    def ask(self, number: int, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self.send(line(number, method, params))
        return self.next()

    def ask_at_once(self, *lines: bytes) -> list[dict[str, Any]]:
        """Send lines at once, so that all are there before the server is."""
        self.send(*lines)
        return [self.next() for _ in lines]

    def next(self) -> dict[str, Any]:
        outlet: IO[bytes] = self.process.stdout  # pyright: ignore[reportAssignmentType]
        self.heard.append(json.loads(outlet.readline()))
        return self.heard[-1]


@dataclass(frozen=True, kw_only=True)
class Place:
    """A folder in which servers are started, with a cache of its own."""

    project: Path
    cache: Path

    @contextmanager
    def started(self, *words: str, **variables: str) -> Generator[Server]:
        """A server; in the end its input is closed, and the rest of what it says is heard."""
        env = {**os.environ, "XDG_CACHE_HOME": str(self.cache), "TRYSQUARE_INCLUDE_EXAMPLE_TOOLS": "1", **variables}
        with subprocess.Popen(
            [sys.executable, "-m", "trysquare", "serve", *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=self.project, env=env,
        ) as process:  # fmt: skip
            server = Server(process=process)
            yield server
            rest, _ = process.communicate(timeout=60)
            server.heard += [json.loads(each) for each in rest.splitlines()]

    def records(self) -> list[Path]:
        return list((self.cache / "trysquare" / "starts").glob("*"))

    def mark(self) -> None:
        """Change the kept answers, so that they are known when they are given."""
        [path] = self.records()
        record = json.loads(path.read_text(encoding="utf-8"))
        for key, text in record["answers"].items():
            record["answers"][key] = json.dumps({**json.loads(text), "mark": MARK})
        path.write_text(json.dumps(record), encoding="utf-8")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A folder in which a server was started once."""
    (tmp_path / "project").mkdir()
    place = Place(project=tmp_path / "project", cache=tmp_path / "cache")
    with place.started() as server:
        server.ask(1, "initialize", HELLO)
        server.ask(2, "tools/list", {})
    return place


def is_marked(answer: dict[str, Any]) -> bool:
    return answer["result"].get("mark") == MARK


def test_the_next_start_answers_as_the_last_one_did_and_each_request_once(place: Place) -> None:
    place.mark()
    with place.started() as server:
        answers = server.ask_at_once(line(1, "initialize", HELLO), line(2, "tools/list", {}))
        called = server.ask(3, "tools/call", {"name": "greet", "arguments": {"name": "Ada"}})
    assert all(is_marked(each) for each in answers)
    assert not called["result"].get("isError")
    assert [each["id"] for each in server.heard if "id" in each] == [1, 2, 3]


def test_what_the_server_answers_otherwise_is_kept_in_place_of_it(place: Place) -> None:
    place.mark()
    with place.started() as server:
        server.ask(1, "initialize", HELLO)
        server.ask(2, "tools/list", {})
    [path] = place.records()
    record = read_record(str(path))
    assert record is not None
    assert not any(MARK in each for each in record.answers.values())


@pytest.mark.parametrize(
    "change",
    [
        lambda place: (place.project / "trysquare.toml").write_text('prefix = "x"\n'),
        lambda place: (place.project / "pyproject.toml").write_text("[tool.trysquare]\n"),
        lambda place: place.records()[0].write_text("{"),
        lambda place: place.records()[0].write_text(place.records()[0].read_text().replace('"code": "', '"code": "0')),
    ],
    ids=["settings", "shared settings", "spoilt record", "other code"],
)
def test_nothing_is_answered_early_once_something_has_changed(place: Place, change: Callable[[Place], object]) -> None:
    place.mark()
    change(place)
    with place.started() as server:
        assert not is_marked(server.ask(1, "initialize", HELLO))
        assert not is_marked(server.ask(2, "tools/list", {}))


def test_other_options_variables_and_parameters_get_answers_of_their_own(place: Place) -> None:
    place.mark()
    with place.started(MCP_TOOL_PREFIX="y") as server:
        assert not is_marked(server.ask(1, "initialize", HELLO))
    with place.started("--prefix", "x") as server:
        assert not is_marked(server.ask(1, "initialize", HELLO))
    with place.started() as server:
        assert is_marked(server.ask("one", "initialize", HELLO))  # pyright: ignore[reportArgumentType]
        assert not is_marked(server.ask(2, "tools/list", {"_meta": {"other": 1}}))


def test_the_front_reads_lines_in_pieces_and_leaves_what_is_no_line(place: Place) -> None:
    place.mark()
    hello, listing = line(1, "initialize", HELLO), line(2, "tools/list", {})
    with place.started() as server:
        server.send(b"\n{no json}\n", hello[:20])
        server.send(hello[20:], listing[:-1])
        first = server.next()
        server.send(b"\n")
        rest = [server.next(), server.next()]
    assert is_marked(first)
    assert {each["id"] for each in rest} == {None, 2}
    assert sorted(str(each.get("id")) for each in server.heard) == ["1", "2", "None"]


def test_a_client_of_the_modern_era_is_answered_early_too(place: Place) -> None:
    with place.started() as server:
        discovered = server.ask(1, "server/discover", MODERN)
        server.ask(2, "tools/list", MODERN)
    place.mark()
    with place.started() as server:
        answers = server.ask_at_once(line(1, "server/discover", MODERN), line(2, "tools/list", MODERN))
        called = server.ask(3, "tools/call", {"name": "greet", "arguments": {"name": "Ada"}, **MODERN})
    assert [is_marked(each) for each in answers] == [True, True]
    assert "result" in discovered
    assert "result" in called


def test_tools_of_a_users_own_module_are_never_answered_from_before(place: Place, tmp_path: Path) -> None:
    before = place.records()
    (place.project / "mine.py").write_text("def one() -> int:\n    'One.'\n    return 1\n", encoding="utf-8")
    with place.started("--tools", "mine:one") as server:
        server.ask(1, "initialize", HELLO)
        assert "result" in server.ask(2, "tools/list", {})
    assert place.records() == before


def test_the_first_call_starts_its_server_behind_the_gateway_and_no_other(place: Place) -> None:
    script = 'touch "$1"; exec "$2" -m tests.gateway.toy_server'
    servers = {
        name: {"command": "sh", "args": ["-c", script, "sh", f"{place.project}/{name}", sys.executable]}
        for name in ("called", "other")
    }
    (place.project / "mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    call = {"name": "mcp_called", "arguments": {"action": "list", "detail": "names"}}
    with place.started("--gateway", "mcp.json", XDG_STATE_HOME=str(place.cache), PYTHONPATH=os.getcwd()) as server:
        server.send(line(1, "tools/call", {**call, "name": "mcp_other"}), line(2, "initialize", HELLO))
        server.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n', line(3, "tools/call", call))
        answers = [server.next() for _ in range(3)]
    assert ["error" in each for each in answers] == [True, False, False]
    assert not answers[2]["result"].get("isError")
    assert [(place.project / name).exists() for name in servers] == [True, False]


def test_only_the_latest_records_are_kept(tmp_path: Path) -> None:
    for number in range(MOST_RECORDS + 5):
        save_record(str(tmp_path / f"{number}.json"), {}, [])
        os.utime(tmp_path / f"{number}.json", (number, number))
    save_record(str(tmp_path / "last.json"), {}, [])
    kept = {each.name for each in tmp_path.iterdir()}
    assert len(kept) == MOST_RECORDS
    assert {"last.json", f"{MOST_RECORDS + 4}.json"} <= kept


@given(st.dictionaries(st.text(), st.integers()), st.integers(), st.integers())
def test_only_the_token_for_progress_makes_no_difference(meta: dict[str, int], one: int, other: int) -> None:
    def key(token: int, more: dict[str, int]) -> str:
        return request_key({"method": "tools/list", "params": {"_meta": {**meta, **more, "progressToken": token}}})

    assert key(one, {}) == key(other, {})
    assert (key(one, {"other": 1}) == key(one, {})) == (meta.get("other") == 1)
