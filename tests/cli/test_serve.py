"""`trysquare serve`: through a real MCP client, over stdio and HTTP."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx2 as httpx
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.cli.conftest import Run
from trysquare import ConfigurationError
from trysquare.cli.serve import read_address

NOISY = """
import os, subprocess
from trysquare import Declarations

print("python prints")
os.write(1, b"a library prints\\n")
subprocess.run(["echo", "a child prints"], check=True)
tools = Declarations()


@tools.declare
def shout(word: str) -> str:
    \"\"\"Say a word loudly.

    Args:
        word: The word
    \"\"\"
    print("while it is called")
    return word.upper()
"""
SERVE = [sys.executable, "-m", "trysquare", "serve"]


@pytest.fixture
def noisy(project: Path) -> Path:
    (project / "noisy.py").write_text(NOISY, encoding="utf-8")
    return project


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_over_stdio_nothing_but_the_protocol_reaches_stdout(noisy: Path, mode: str) -> None:
    command, *arguments = [*SERVE, "--tools", "noisy:tools", "--log-level", "ERROR"]
    server = StdioServerParameters(command=command, args=arguments, cwd=noisy)
    with anyio.fail_after(60):
        async with Client(server, mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["shout", "read_more"]
            answer = await client.call_tool("shout", {"word": "hey"})
    assert answer.structured_content == {"result": "HEY"}


def test_raw_stdout_holds_json_lines_only(noisy: Path) -> None:
    ran = subprocess.run(
        [*SERVE, "--tools", "noisy:tools"], input=b"not json\n", capture_output=True, check=False, cwd=noisy
    )
    assert ran.returncode == 0
    assert all(line.startswith(b"{") for line in ran.stdout.splitlines())
    assert {b"python prints", b"a library prints", b"a child prints"} <= set(ran.stderr.splitlines())


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_closed_input_or_output_is_reported(project: Path, closed: str) -> None:
    words = ["sh", "-c", f'exec "$@" {closed}', "sh", *SERVE]
    ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr.startswith("trysquare: ")
    assert "closed" in ran.stderr


def test_without_tools_the_log_says_so(project: Path) -> None:
    ran = subprocess.run(SERVE, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "No tools to serve" in ran.stderr


@pytest.mark.parametrize("transport", [[], ["--http", "127.0.0.1:0"]])
def test_an_interrupt_ends_the_server_quietly(project: Path, transport: list[str]) -> None:
    (project / "tools_that_tell.py").write_text(
        "import sys\nfrom trysquare import Declarations\ntools = Declarations()\nprint('ready', file=sys.stderr)\n",
        encoding="utf-8",
    )
    command = [*SERVE, *transport, "--tools", "tools_that_tell:tools", "--log-level", "ERROR"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "ready\n"
        if transport:
            assert process.stderr.readline().startswith("Serving at ")
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        assert (process.returncode, process.stderr.read()) == (130, "")


@contextmanager
def serving(*options: str, command: Sequence[str] = (*SERVE, "--http", "127.0.0.1:0")) -> Generator[str]:
    """A server over HTTP on a free port; its address."""
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = next(line for line in process.stderr if "Serving at" in line)
            assert line.rstrip().endswith(")")
            yield line.split()[2]
        finally:
            process.terminate()
            process.wait(timeout=30)


def start_line(*options: str) -> str:
    """What a server over HTTP says once it serves."""
    with subprocess.Popen([*SERVE, *options], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            return next(line for line in process.stderr if "Serving at" in line)
        finally:
            process.terminate()
            process.wait(timeout=30)


def test_the_start_line_says_where_what_for_whom_and_on_which_interfaces(run: Run, project: Path) -> None:
    tools = ("--tools", "demo_tools:tools")
    assert start_line("--http", "127.0.0.1:0", *tools).endswith(
        "/mcp (4 tools, no authentication, this machine only)\n"
    )
    assert run("token", "create", "ada").code == 0
    assert "(4 tools, bearer tokens required, all interfaces)" in start_line("--http", "0.0.0.0:0", *tools)


def test_at_a_terminal_serve_says_what_it_waits_for(project: Path) -> None:
    ours, theirs = pty.openpty()
    command = [*SERVE, "--tools", "demo_tools:tools"]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        line = next(line for line in process.stderr if "printed while" not in line)
        process.terminate()
        process.wait(timeout=30)
        assert ("4 tools" in line, "trysquare call" in line, process.stdout.read()) == (True, True, "")
    os.close(ours)
    os.close(theirs)


async def test_over_http_a_token_is_needed_once_there_is_one(run: Run, project: Path) -> None:
    (project / "trysquare.toml").write_text('tools = "demo_tools:tools"\n', encoding="utf-8")
    token = run("token", "create", "ada", "--json").json["token"]
    with serving() as address:
        async with httpx.AsyncClient() as http:
            refused = await http.post(address, json={})
        assert refused.status_code == 401
        assert await names_with(address, token) == ["greet", "add", "remove", "report", "read_more"]


async def names_with(address: str, token: str) -> list[str]:
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        return [tool.name for tool in (await client.list_tools()).tools]


async def test_a_token_of_the_settings_opens_too(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRYSQUARE_HTTP_TOKENS", "configured-secret")
    with serving("--tools", "demo_tools:tools") as address:
        assert "greet" in await names_with(address, "configured-secret")


def test_an_open_address_without_authentication_is_refused(run: Run) -> None:
    ran = run("serve", "--http", "0.0.0.0:0", "--tools", "demo_tools:tools")
    assert ran.code == 2
    assert "token" in ran.err


def test_a_port_in_use_is_reported(run: Run) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = run("serve", "--http", f"127.0.0.1:{taken.getsockname()[1]}")
    assert ran.code == 2
    assert "Cannot listen on" in ran.err


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8000", ("127.0.0.1", 8000)),
        ("localhost:80", ("localhost", 80)),
        (":9000", ("127.0.0.1", 9000)),
        ("9000", ("127.0.0.1", 9000)),
        ("[::1]:9000", ("::1", 9000)),
    ],
)
def test_an_address_is_read(text: str, address: tuple[str, int]) -> None:
    assert read_address(text) == address


@pytest.mark.parametrize("text", ["host", "127.0.0.1:", "127.0.0.1:99999", "::1:80", "a:b", "http://x:1"])
def test_a_wrong_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--http: expected HOST:PORT"):
        read_address(text)


def test_a_short_state_key_is_refused(run: Run, project: Path) -> None:
    (project / "keys").write_text("short\n", encoding="utf-8")
    (project / "trysquare.toml").write_text('[http]\nstate_keys_file = "keys"\n', encoding="utf-8")
    ran = run("serve", "--http", "127.0.0.1:0")
    assert ran.code == 2
    assert f"{project}/keys: " in ran.err
    assert "32 bytes" in ran.err


OWN = """
from trysquare import Consent, Tools

tools = Tools("own")


@tools.tool(consent=Consent(question="Remove {what}?"))
def remove(what: str) -> str:
    \"\"\"Remove a thing.\"\"\"
    return f"removed {what}"


@tools.custom_route("/hello")
def hello() -> dict[str, str]:
    return {"hello": "there"}


"""


@pytest.mark.parametrize(
    ("end", "command"),
    [
        ('if __name__ == "__main__":\n    tools.run()\n', [sys.executable, "own.py"]),
        ("tools.run()\n", [*SERVE, "own.py"]),
        ("", [*SERVE, "own:tools"]),
    ],
    ids=["its own run", "run without a guard", "no run"],
)
async def test_a_file_is_served_with_its_settings_and_asks_for_consent(
    project: Path, end: str, command: list[str]
) -> None:
    (project / "own.py").write_text(OWN + end, encoding="utf-8")
    (project / "trysquare.toml").write_text('prefix = "my"\ntools = ["demo_tools"]\n', encoding="utf-8")
    server = StdioServerParameters(command=command[0], args=command[1:], cwd=project)
    with anyio.fail_after(60):
        async with Client(server, mode="2026-07-28") as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["my_remove", "my_read_more"]
            answer = await client.call_tool("my_remove", {"what": "all"})
    assert answer.is_error


async def test_run_serves_over_http_with_the_routes_of_the_file(project: Path) -> None:
    (project / "own.py").write_text(OWN + 'tools.run(http="127.0.0.1:0")\n', encoding="utf-8")
    with serving(command=(sys.executable, "own.py")) as address:
        async with httpx.AsyncClient(base_url=address.removesuffix("/mcp")) as client:
            assert (await client.get("/hello")).json() == {"hello": "there"}
            assert (await client.post("/hello")).status_code == 405
