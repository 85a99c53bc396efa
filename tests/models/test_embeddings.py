"""An encoder behind an OpenAI-compatible address: asked beside the answers, and done without when it fails."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from trysquare import ConfigurationError
from trysquare.app import search_vectors
from trysquare.cli.doctor import check_search
from trysquare.search import Vectors
from trysquare.settings import Settings


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[str, str, dict[str, Any]]] = []
        self.status = 200
        self.answer: dict[str, Any] | None = None
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = cast(_Server, self.server)
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server.seen.append((self.path, self.headers.get("authorization", ""), body))
        rows = [
            {"index": place, "embedding": [1.0 + text.count(letter) for letter in "abcdefgh"]}
            for place, text in enumerate(body["input"])
        ]
        sent = json.dumps(server.answer or {"data": rows[::-1]}).encode()
        self.send_response(server.status)
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def server() -> Iterator[_Server]:
    with _Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _settings(server: _Server, **more: object) -> Settings:
    return Settings.model_validate({"search": {"embeddings_url": server.url, "embeddings_model": "small", **more}})


def _vectors(server: _Server, home: Path) -> Vectors:
    env = {"HOME": str(home), "SOME_KEY": "s3cret"}
    vectors = search_vectors(_settings(server, key_variable="SOME_KEY"), env)
    assert vectors is not None
    vectors.request(["a bad egg", "deaf"])
    vectors.wait(60)
    return vectors


def test_vectors_come_from_the_address_in_the_order_of_the_texts(server: _Server, own_home: Path) -> None:
    vectors = _vectors(server, own_home)
    assert vectors.request(["a bad egg", "deaf"])
    first, second = vectors.of(["a bad egg", "deaf"]).tolist()
    assert first.index(max(first)) == 0
    assert second.index(max(second)) in (0, 3, 4, 5)
    assert first != second
    path, key, body = server.seen[-1]
    assert (path, key, body["model"]) == ("/v1/embeddings", "Bearer s3cret", "small")
    assert vectors.of_query(("a query",)) is not None
    asked = len(server.seen)
    assert _vectors(server, own_home).request(["a bad egg", "deaf"])
    assert len(server.seen) == asked + 1, "one request for the width; the vectors are stored"


@pytest.mark.parametrize(
    ("status", "answer"),
    [(401, {"error": {"message": "no key"}}), (500, {}), (200, {"data": []}), (200, {"data": [{"embedding": ["x"]}]})],
)
def test_an_address_that_does_not_give_vectors_is_named(
    server: _Server, own_home: Path, status: int, answer: dict[str, Any]
) -> None:
    server.status, server.answer = status, answer or {"detail": "down"}
    vectors = _vectors(server, own_home)
    assert vectors.problem
    assert not vectors.request(["a bad egg"])
    assert vectors.of_query(("a query",)) is None
    found = check_search(_settings(server), {"HOME": str(own_home)})
    assert found.state == "broken"
    assert "words alone" in found.detail


def test_the_doctor_says_what_search_compares(server: _Server, own_home: Path) -> None:
    env = {"HOME": str(own_home)}
    assert check_search(_settings(server), env).detail.startswith("by words and meaning: small at http://127.0.0.1")
    assert check_search(Settings(), env).fix == "trysquare models install minilm"
    assert check_search(_settings(server, encoder="off"), env).state == "ok"
    without = Settings.model_validate({"search": {"embeddings_url": server.url}})
    with pytest.raises(ConfigurationError, match="needs the name"):
        search_vectors(without, env)
    assert check_search(without, env).state == "broken"
