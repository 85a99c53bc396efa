"""Attempts to learn where things are on the server's machine: every answer over HTTP is searched for its paths."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

import trysquare
from tests.attacks.conftest import Attack
from tests.bots.bot_folders import write_bot
from tests.server.clients import MODERN_META
from trysquare import Result, ToolError
from trysquare.core.host_paths import remote_error, remote_failure, without_host_paths

SERVER = '''
from pathlib import Path

from trysquare import CallContext, Consent, Result, ToolError, Tools

tools = Tools()
HERE = Path(__file__).resolve().parent


@tools.tool
def read_memo(name: str) -> str:
    """Read a note."""
    try:
        return (HERE / "notes" / Path(name).name).read_text()
    except OSError as error:
        raise ToolError(f"Cannot read the note: {error}", instruction=f"Look into {HERE}.") from error


@tools.tool
def crash(name: str) -> str:
    """Crash."""
    raise RuntimeError(f"{HERE} {name}")


@tools.tool
def fail(name: str) -> Result[str]:
    """Fail with the exception."""
    try:
        return Result.ok((HERE / "missing" / "note").read_text())
    except OSError as error:
        fields = {"tried": [str(HERE / "missing"), {str(HERE): name}]}
        return Result.failure("It failed.", exception=error, fields=fields, message=f"In {HERE}")


@tools.tool(consent=Consent(question="Empty the bin?"))
def empty_bin() -> str:
    """Empty the bin."""
    return "done"


@tools.tool
async def report(context: CallContext) -> str:
    """Report progress and log."""
    await context.progress(1, 2, f"reading {HERE / 'a'}")
    await context.log(f"writing {HERE / 'b'}", "error")
    return "done"


@tools.resource("data://broken")
def broken() -> str:
    raise ToolError(f"There is no {HERE / 'data'}.")


@tools.prompt
def ask(topic: str) -> str:
    """Ask about a topic."""
    raise ToolError(f"There is no {HERE / 'topics' / 'x'}.", fields={"file": str(HERE / "topics")})
'''
ENDS = "import os, sys; sys.stderr.write(os.getcwd() + ' is bad'); sys.exit(3)"
SERVERS = {
    "missing": {"command": "./no/such/program"},
    "ends": {"command": sys.executable, "args": ["-c", ENDS]},
    "odd": {"comand": "x"},
    "home": {"command": "${HOME}/bin/x"},
    "unset": {"command": "${env:NO_SUCH_VARIABLE}"},
    "cwd": {"command": sys.executable, "cwd": "no such directory"},
    "api": {"openapi": "missing.json"},
}
SETTINGS = """
tools = ["server.py"]
gateway = ["mcp.json"]
guide = ["guide"]
workbench = ["work"]
bot = ["bot"]
debugger = true
agents = true
include_example_tools = true
"""
HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28"}
META = {**MODERN_META, "progressToken": "p", "io.modelcontextprotocol/logLevel": "debug"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with everything that can be served, in a directory with a space in its name."""
    folder = tmp_path / "ada's home" / "project"
    for name in ("work", "guide/docs"):
        (folder / name).mkdir(parents=True)
    (folder / "guide" / "docs" / "a.md").write_text("# A\n", encoding="utf-8")
    (folder / "server.py").write_text(SERVER, encoding="utf-8")
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": SERVERS}, indent=1), encoding="utf-8")
    (folder / "trysquare.toml").write_text(SETTINGS, encoding="utf-8")
    write_bot(folder / "bot")
    return folder


class Spy:
    """Sends requests, and collects every answer that has a path of the machine that the request did not have."""

    def __init__(self, client: httpx.Client, url: str, paths: list[str]) -> None:
        self._client, self._url, self._paths = client, url, paths
        self.found: list[tuple[str, str]] = []

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
        named = params.get("name") or params.get("uri")
        headers = {**HEADERS, "Mcp-Method": method, **({"Mcp-Name": named} if named else {})}
        text = self._client.post(self._url, json=request, headers=headers).text
        sent = json.dumps(params)
        for path in self._paths:
            if (at := text.find(path)) >= 0 and path not in sent:
                self.found.append((f"{method} {sent[:200]}", text[max(0, at - 200) : at + 200]))
        answers = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: {")]
        return answers[-1] if answers else json.loads(text)

    def every(self, method: str, field: str) -> list[dict[str, Any]]:
        return self.send(method)["result"][field]


@contextmanager
def spying_on(project: Path) -> Generator[Spy]:
    command = [sys.executable, "-m", "trysquare", "serve", "--http", "127.0.0.1:0"]
    environment = {**os.environ, "HOME": str(project.parent), "XDG_STATE_HOME": str(project.parent / "state")}
    with subprocess.Popen(command, cwd=project, stderr=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stderr is not None
            lines = [server.stderr.readline()]
            while lines[-1] and "http://" not in lines[-1]:
                lines.append(server.stderr.readline())
            address = re.search(r"http://\S+/mcp", lines[-1])
            assert address is not None, lines
            paths = [str(project.parent), str(Path(trysquare.__file__).parent), sys.prefix, sys.base_prefix]
            with httpx.Client(timeout=60) as client:
                yield Spy(client, address[0], [json.dumps(path)[1:-1] for path in paths])
        finally:
            server.terminate()
            # Read to the end, so that the server never waits for a full pipe.
            server.communicate()


def arguments_of(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Nothing, too much, what is required, and then each argument with odd values."""
    properties: dict[str, Any] = schema.get("properties", {})
    base = {name: odd_values(properties[name])[0] for name in schema.get("required", ())}
    yield from ({}, {"no_such": 1}, base)
    for name, part in properties.items():
        yield from ({**base, name: value} for value in odd_values(part))


def odd_values(schema: dict[str, Any]) -> list[Any]:
    if "enum" in schema:
        return schema["enum"]
    values = {"integer": [-5], "number": [1], "boolean": [True], "array": [["x"]], "object": [{"x": 1}]}
    return values.get(schema.get("type", ""), ["x", "../../etc"])


def test_no_answer_over_http_has_a_path_of_the_server(project: Path, attack: Attack) -> None:
    attack(door="HTTP", attempt="learn a path of the server's machine")
    with spying_on(project) as spy:
        tools = [tool for tool in spy.every("tools/list", "tools") if "restart" not in tool["name"]]
        assert len(tools) > 40, "every source is served"
        for tool in tools:
            calls = list(arguments_of(tool["inputSchema"]))
            # Servers that cannot start are tried again at each call.
            for arguments in calls[:8] if tool["name"].startswith("mcp_") else calls:
                spy.send("tools/call", name=tool["name"], arguments=arguments)
        for resource in spy.every("resources/list", "resources"):
            spy.send("resources/read", uri=resource["uri"])
        for template in spy.every("resources/templates/list", "resourceTemplates"):
            spy.send("resources/read", uri=re.sub(r"\{.*?\}", "x", template["uriTemplate"]))
        for prompt in spy.every("prompts/list", "prompts"):
            given = {argument["name"]: "x" for argument in prompt.get("arguments", ())}
            for arguments in ({}, given):
                spy.send("prompts/get", name=prompt["name"], arguments=arguments)
        spy.send("server/discover")
    assert spy.found == []


PLACES = ("'{}'", "({}:5).", "file://{}, line 3", "--project={} x", "PATH=/usr/bin:{}", "`{}`", '{{"a":"{}"}}', "-I{}")


@pytest.mark.parametrize("around", PLACES)
@pytest.mark.parametrize("name", ["plain.txt", "a b.txt", "it's.txt", "missing.txt", "no/such/file.txt", ""])
def test_a_path_is_found_wherever_it_stands(tmp_path: Path, around: str, name: str) -> None:
    folder = tmp_path / "ada's home" / "x"
    folder.mkdir(parents=True)
    for real in ("plain.txt", "a b.txt", "it's.txt"):
        (folder / real).touch()
    path = (folder / name).as_uri().removeprefix("file://") if "file:" in around else str(folder / name)
    shown = without_host_paths(around.format(path))
    assert str(tmp_path) not in shown
    assert "ada" not in shown
    assert Path(name).name in shown.replace("%20", " ").replace("%27", "'")


@pytest.mark.parametrize(
    "text",
    ["/orders/42 is gone", "https://example.com/tmp/x", "http://h/usr", "src/usr/lib", "./tmp/x", "../tmp", "and / or",
     "~/notes", "3/4", "text/html"],
)  # fmt: skip
def test_what_is_no_path_of_this_machine_stays(text: str) -> None:
    assert without_host_paths(text) == text


def test_a_caller_reads_the_paths_that_it_sent(tmp_path: Path) -> None:
    (tmp_path / "note").touch()
    path = str(tmp_path / "note")
    failure = Result.failure(f"`{path}` is not a note, unlike {tmp_path / 'other'}")
    assert remote_failure(failure, {"name": path}).error == f"`{path}` is not a note, unlike …/other"


def test_an_error_keeps_what_it_says_beside_paths(tmp_path: Path) -> None:
    error = ToolError(f"No {tmp_path}", instruction="Wait.", next={"tool": "x", "arguments": {"a": [str(tmp_path)]}})
    remote = remote_error(error, {})
    assert (remote.message, remote.instruction, remote.code) == ("No …", "Wait.", error.code)
    assert remote.next == {"tool": "x", "arguments": {"a": ["…"]}}
