"""The files of the page about deployment work: the container's command, its health check, the unit, the proxy."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.docs.pages import ROOT, read_page
from tests.docs.runner import Background, _free_port, reader_environment
from tests.support import missing_component

FILES = {
    block.marks["title"]: block.text
    for block in read_page(ROOT / "docs/production/deployment.md").blocks
    if "title" in block.marks
}
TOKEN = "a-token-that-is-long-enough-for-a-test-0123456789"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("server.py", "trysquare.toml"):
        (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    return tmp_path


def container_command(instruction: str) -> list[str]:
    """The command of `CMD` or `HEALTHCHECK CMD` in the Containerfile."""
    [line] = [line for line in FILES["Containerfile"].splitlines() if line.startswith(f"{instruction} [")]
    return json.loads(line.removeprefix(instruction))


@contextmanager
def served(project: Path, port: str) -> Generator[dict[str, str]]:
    """The server as the container starts it, with a token from the environment."""
    environment = {**reader_environment(), "TRYSQUARE_HTTP_TOKENS": TOKEN}
    command = [word.replace("8000", port) for word in container_command("CMD")]
    process = subprocess.Popen(
        command, cwd=project, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, encoding="utf-8",
    )  # fmt: skip
    running = Background(process)
    try:
        assert "Serving at" in running.wait_for(lambda text: "Serving at" in text)
        yield environment
    finally:
        running.stop()


@contextmanager
def proxied(folder: Path, backend: str, port: str) -> Generator[None]:
    """Nginx with the page's file, in front of the server."""
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None:
        missing_component("nginx", "apt-get install nginx-light")
        return
    site = FILES["greeter.conf"].replace("8000", backend).replace("8001", port)
    places = " ".join(f"{name}_temp_path {folder};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "nginx.conf").write_text(
        f"daemon off; error_log stderr notice; pid {folder}/nginx.pid;\nevents {{}}\n"
        f"http {{ access_log off; {places}\n{site}}}\n",
        encoding="utf-8",
    )
    process = subprocess.Popen(
        [nginx, "-e", "stderr", "-p", str(folder), "-c", "nginx.conf"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8",
    )  # fmt: skip
    running = Background(process)
    try:
        assert "start worker process" in running.wait_for(lambda text: "start worker process" in text)
        yield
    finally:
        running.stop()


def test_the_container_is_healthy_while_it_serves(project: Path) -> None:
    port = _free_port()
    check = [word.replace("8000", port) for word in container_command("HEALTHCHECK CMD")]
    with served(project, port) as environment:
        assert subprocess.run(check, env=environment, check=False).returncode == 0
    assert subprocess.run(check, env=environment, check=False, stderr=subprocess.DEVNULL).returncode != 0


def test_clients_come_through_the_proxy_with_a_token_and_no_others(project: Path) -> None:
    backend, front = _free_port(), _free_port()

    async def call(token: str) -> str:
        headers = {"Authorization": f"Bearer {token}", "Host": "mcp.example.com"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as http,
            Client(streamable_http_client(f"http://127.0.0.1:{front}/mcp", http_client=http)) as client,
        ):
            return str((await client.call_tool("greet", {"name": "Ada"})).content)

    folder = project / "nginx"
    folder.mkdir()
    with served(project, backend), proxied(folder, backend, front):
        assert "Hello, Ada" in anyio.run(call, TOKEN)
        url = f"http://127.0.0.1:{front}/mcp"
        assert httpx2.post(url, json={}, headers={"Host": "mcp.example.com"}, trust_env=False).status_code == 401


def test_the_unit_starts_the_server_and_can_write_its_state() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]
    unit.read_string(FILES["greeter.service"])
    service = unit["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert program.endswith("/bin/trysquare")
    folder = service["WorkingDirectory"]
    assert service["ReadWritePaths"] == f"{folder}/.trysquare"
    helped = subprocess.run(
        [sys.executable, "-m", "trysquare", *words, "--help"], capture_output=True, text=True, check=True
    )
    assert all(option in helped.stdout for option in re.findall(r"--\w+", " ".join(words)))
