"""Tracing of a real server: spans arrive where OpenTelemetry's own variables say."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from trysquare.middleware.tracing import is_wanted

TOOLS = '''
from trysquare import Declarations
tools = Declarations()

@tools.declare
async def ping() -> str:
    """Answer."""
    return "pong"
'''


@pytest.fixture
def collector() -> Iterator[tuple[str, queue.Queue[tuple[str, bytes]]]]:
    """A collector on this machine: its address, and what it was sent."""
    received: queue.Queue[tuple[str, bytes]] = queue.Queue()

    class Collecting(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.put((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collecting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        server.server_close()


def test_a_call_over_stdio_arrives_as_a_span_at_the_collector(
    tmp_path: Path, collector: tuple[str, queue.Queue[tuple[str, bytes]]]
) -> None:
    address, received = collector
    (tmp_path / "traced_tools.py").write_text(TOOLS, encoding="utf-8")
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ping", "_meta": meta}}
    done = subprocess.run(
        [sys.executable, "-m", "trysquare", "serve", "--tools", "traced_tools:tools"],
        input=json.dumps(request) + "\n",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": address, "NO_PROXY": "127.0.0.1"},
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout)["result"]["structuredContent"]["result"] == "pong"
    path, body = received.get(timeout=30)
    assert path == "/v1/traces"
    assert b"tools/call ping" in body


@pytest.mark.parametrize(
    ("env", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://localhost:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_traces_are_sent_only_where_the_environment_says_so(env: dict[str, str], wanted: bool) -> None:
    assert is_wanted(env) is wanted
