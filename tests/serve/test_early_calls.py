"""Early calls: answered before the SDK is there where that can be, and in every case once and in the same words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest

from tests.gateway.toys import ERAS, TOY

CLIENT = {"name": "test", "version": "1"}
HELLO: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
ASKABLE = {**HELLO, "capabilities": {"elicitation": {}, "roots": {"listChanged": True}}}
GATE = """
import os, sys

class Gate:
    def find_spec(self, name, path=None, target=None):
        if name == "mcp_types":
            os.read(os.open(os.environ["GATE"], os.O_RDONLY), 1)

sys.meta_path.insert(0, Gate())
"""
"""What a server is started with so that the SDK cannot be loaded before something was written to a named pipe."""


@dataclass(kw_only=True)
class Gateway:
    """A gateway that is being started, over a toy server."""

    process: subprocess.Popen[bytes]
    gate: int
    heard: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def send(self, *messages: dict[str, Any]) -> None:
        inlet: IO[bytes] = self.process.stdin  # pyright: ignore[reportAssignmentType]
        inlet.write(b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in messages))
        inlet.flush()

    def greet(self, hello: dict[str, Any] = HELLO) -> dict[str, Any]:
        """Shake hands, as a client does that sends nothing before it is answered."""
        self.send({"id": 1, "method": "initialize", "params": hello})
        greeted = self.next()
        self.send({"method": "notifications/initialized"})
        return greeted

    def call(self, number: Any, tool: str, text: str = "", **more: Any) -> None:
        arguments = {"action": "execute", "tool_name": tool, "tool_inputs": {"text": text}}
        params = {"name": "mcp_toy", "arguments": arguments, **more}
        self.send({"id": number, "method": "tools/call", "params": params})

    def next(self) -> dict[str, Any]:
        outlet: IO[bytes] = self.process.stdout  # pyright: ignore[reportAssignmentType]
        self.heard.append(json.loads(outlet.readline()))
        return self.heard[-1]

    def answer_to(self, number: Any) -> dict[str, Any]:
        """The answer to a request, whatever is told before it."""
        while (heard := self.next()).get("id") != number or "method" in heard:
            continue
        return heard

    def text(self, number: Any) -> str:
        return self.answer_to(number)["result"]["content"][0]["text"]

    def open(self) -> None:
        """Let the SDK be loaded."""
        os.write(self.gate, b".")


@dataclass(frozen=True, kw_only=True)
class Place:
    """A folder with a configuration of one toy server."""

    folder: Path

    @contextmanager
    def started(self, *words: str, era: str = "legacy", **variables: str) -> Generator[Gateway]:
        entry = {"command": sys.executable, "args": ["-I", "-S", str(TOY), "--era", era]}
        config, gate, site = self.folder / "mcp.json", self.folder / "gate", self.folder / "site"
        config.write_text(json.dumps({"mcpServers": {"toy": entry}}), encoding="utf-8")
        site.mkdir(exist_ok=True)
        (site / "sitecustomize.py").write_text(GATE, encoding="utf-8")
        os.mkfifo(gate)
        # Open both ways, so that neither side waits for the other.
        opening = os.open(gate, os.O_RDWR)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("TRYSQUARE_", "MCP_"))}
        homes = {f"XDG_{kind}_HOME": str(self.folder / kind) for kind in ("CACHE", "STATE", "CONFIG")}
        path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
        with subprocess.Popen(
            [sys.executable, "-m", "trysquare", "serve", "--gateway", str(config), *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder,
            env={**clean, **homes, "GATE": str(gate), "PYTHONPATH": path, **variables},
        ) as process:  # fmt: skip
            gateway = Gateway(process=process, gate=opening)
            try:
                yield gateway
            finally:
                gateway.open()
                rest, errors = process.communicate(timeout=60)
                os.close(opening)
            gateway.heard += [json.loads(each) for each in rest.splitlines()]
            assert process.returncode == 0, errors.decode()
            assert b"Traceback" not in errors, errors.decode()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(folder=tmp_path)


def ids(gateway: Gateway) -> list[Any]:
    """The requests that were answered, in their order."""
    return [one["id"] for one in gateway.heard if "id" in one and "method" not in one]


@pytest.mark.parametrize("era", ERAS)
def test_a_client_is_greeted_and_its_call_answered_before_the_sdk_is_there(place: Place, era: str) -> None:
    with place.started(era=era) as gateway:
        assert gateway.greet()["result"]["serverInfo"]["name"] == "trysquare"
        gateway.call(2, "echo", "hällo")
        early = gateway.answer_to(2)
        gateway.open()
        gateway.call(3, "echo", "hällo")
        usual = gateway.answer_to(3)
        gateway.call(4, "count")
        assert gateway.text(4) == "3"
    assert early["result"] == usual["result"]
    assert early["result"]["_meta"]["trysquare/origin"]["outcome"] == "done"
    assert ids(gateway) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "arguments",
    [
        {"action": "execute", "tool_name": "echo", "tool_inputs": {"text": 7}},
        {"action": "execute", "tool_name": "ecko"},
        {"action": "execute", "tool_name": "fail"},
        {"action": "execute", "tool_name": "refuse"},
        {"action": "nothing"},
        {"action": "list", "detail": "names"},
    ],
    ids=["coerced", "unknown tool", "its error", "refused", "wrong action", "list"],
)
def test_whatever_comes_of_a_call_is_told_in_the_same_words(place: Place, arguments: dict[str, Any]) -> None:
    def call(number: int) -> dict[str, Any]:
        return {"id": number, "method": "tools/call", "params": {"name": "mcp_toy", "arguments": arguments}}

    with place.started() as gateway:
        gateway.greet()
        gateway.send(call(2))
        early = gateway.answer_to(2)
        gateway.open()
        gateway.send(call(3))
        assert early["result"] == gateway.answer_to(3)["result"]


@pytest.mark.parametrize("era", ERAS)
def test_a_question_of_the_first_call_reaches_the_client(place: Place, era: str) -> None:
    with place.started(era=era) as gateway:
        gateway.greet(ASKABLE)
        gateway.call(2, "ask")
        gateway.open()
        while "elicitation/create" not in str(asked := gateway.next()):
            continue
        gateway.send({"id": asked["id"], "result": {"action": "accept", "content": {"name": "Ada"}}})
        assert "Ada" in gateway.text(2)
        gateway.call(3, "count")
        # A server of the modern era is asked again with the answer.
        assert gateway.text(3) == ("3" if era == "modern" else "2")
    assert ids(gateway) == [1, 2, 3]


def test_progress_of_the_first_call_is_told_and_then_its_end(place: Place) -> None:
    with place.started() as gateway:
        gateway.greet()
        gateway.call(2, "progress", _meta={"progressToken": "mine"})
        gateway.open()
        while (told := gateway.next()).get("method") != "notifications/progress":
            continue
        assert told["params"] == {"progressToken": "mine", "progress": 1, "total": 2}
        assert gateway.text(2) == "done"
    assert ids(gateway) == [1, 2]


def test_what_a_call_says_of_itself_is_heeded(place: Place) -> None:
    with place.started() as gateway:
        gateway.greet()
        gateway.call(2, "large", "3000", _meta={"trysquare/result_bytes": 1000, "progressToken": 7})
        assert gateway.answer_to(2)["result"]["structuredContent"]["value"]["handle"]


def test_a_client_that_cannot_be_asked_is_not(place: Place) -> None:
    with place.started() as gateway:
        gateway.greet()
        gateway.call(2, "ask")
        assert "-32601" in gateway.text(2)


def test_what_only_the_server_can_answer_does_not_wait_for_a_call(place: Place, tmp_path: Path) -> None:
    held = tmp_path / "held"
    held.touch()
    with place.started() as gateway:
        gateway.open()
        gateway.greet()
        gateway.call(2, "slow", str(held))
        gateway.send({"id": 3, "method": "tools/list"})
        assert gateway.answer_to(3)["result"]["tools"]
        held.unlink()
        assert gateway.text(2) == "slow"


def test_a_call_that_takes_long_is_answered_once_when_it_is_over(place: Place, tmp_path: Path) -> None:
    held = tmp_path / "held"
    held.touch()
    with place.started() as gateway:
        gateway.greet()
        gateway.call(2, "slow", str(held))
        gateway.open()
        gateway.call(3, "count")
        assert gateway.text(3) == "2"
        held.unlink()
        assert gateway.text(2) == "slow"
    assert ids(gateway) == [1, 3, 2]


def test_a_call_that_is_taken_back_is_taken_back_from_its_server(place: Place) -> None:
    with place.started() as gateway:
        gateway.greet()
        gateway.call(2, "late")
        gateway.call(3, "count")
        assert gateway.text(3) == "2"
        gateway.send({"method": "notifications/cancelled", "params": {"requestId": 2}})
        gateway.open()
        gateway.send({"id": 4, "method": "ping"})
        gateway.answer_to(4)
        gateway.call(5, "cancelled")
        assert json.loads(gateway.text(5)) != []
    assert ids(gateway) == [1, 3, 4, 5]


def test_a_call_that_is_taken_back_before_it_was_begun_is_not_sent_early(place: Place) -> None:
    with place.started() as gateway:
        gateway.greet()
        gateway.call(2, "late")
        gateway.send({"method": "notifications/cancelled", "params": {"requestId": 2}})
        gateway.call(3, "echo", "hello")
        assert gateway.text(3) == "hello"
    assert ids(gateway) == [1, 3]


def test_a_large_answer_comes_whole(place: Place) -> None:
    with place.started() as gateway:
        gateway.greet()
        gateway.call(2, "large", "100000", _meta={"trysquare/whole": True})
        gateway.call(3, "large", "20000")
        gateway.open()
        answers = dict.fromkeys((2, 3), gateway.heard)
        while set(ids(gateway)) != {1, 2, 3}:
            gateway.next()
        answers = {one["id"]: one for one in gateway.heard if "id" in one}
    assert answers[2]["result"]["content"][0]["text"] == "x" * 100000
    assert "result" in answers[3]


def test_what_changed_since_the_greeting_is_told_once_it_can_be(place: Place) -> None:
    with place.started() as gateway:
        gateway.greet()
        gateway.call(2, "echo", "hello")
        assert gateway.text(2) == "hello"
        gateway.open()
        while gateway.next().get("method") != "notifications/tools/list_changed":
            continue


def test_the_same_id_twice_is_sent_once_and_told(place: Place) -> None:
    with place.started() as gateway:
        gateway.greet()
        gateway.call(2, "count")
        assert gateway.text(2) == "1"
        gateway.open()
        gateway.call(2, "count")
        assert gateway.text(2) == "2"


def test_several_calls_at_once_are_each_answered(place: Place) -> None:
    with place.started() as gateway:
        gateway.greet()
        for number in range(2, 8):
            gateway.call(number, "echo", str(number))
        while len(ids(gateway)) < 3:
            gateway.next()
        gateway.open()
        while len(ids(gateway)) < 7:
            gateway.next()
    answers = {
        one["id"]: one["result"]["content"][0]["text"] for one in gateway.heard if one.get("id") not in (None, 1)
    }
    assert answers == {number: str(number) for number in range(2, 8)}


def test_a_client_that_goes_at_once_leaves_nothing_behind(place: Place) -> None:
    with place.started() as gateway:
        gateway.greet()
        gateway.call(2, "hang")
        gateway.open()
        inlet: IO[bytes] = gateway.process.stdin  # pyright: ignore[reportAssignmentType]
        inlet.close()
        gateway.process.stdin = None
        assert gateway.process.wait(60) == 0


@pytest.mark.parametrize("setting", ["file", "shared file", "variable", "option"])
def test_what_is_set_is_heeded_before_anybody_is_greeted(place: Place, setting: str) -> None:
    words: list[str] = []
    variables: dict[str, str] = {}
    match setting:
        case "file":
            (place.folder / "trysquare.toml").write_text('[server]\nname = "mine"\n', encoding="utf-8")
        case "shared file":
            (place.folder / "pyproject.toml").write_text('[tool.trysquare.server]\nname = "mine"\n', encoding="utf-8")
        case "variable":
            variables = {"TRYSQUARE_SERVER_NAME": "mine"}
        case _:
            (place.folder / "other.toml").write_text('[server]\nname = "mine"\n', encoding="utf-8")
            words = ["--config", str(place.folder / "other.toml")]
    with place.started(*words, **variables) as gateway:
        gateway.open()
        assert gateway.greet()["result"]["serverInfo"]["name"] == "mine"
