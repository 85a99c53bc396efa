"""`trysquare discover`: the servers in the files of all clients, and what each costs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from trysquare.cli.main import main

SERVER = '''
from trysquare import Tools

tools = Tools("greeter")


@tools.tool
def greet(name: str) -> str:
    """Greet a person by name."""
    return name


tools.run()
'''


@pytest.fixture
def places(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with two clients that have the same server, a broken one, and a project with one of its own."""
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    good = {"command": sys.executable, "args": [str(tmp_path / "server.py")]}
    for file, servers in (
        (own_home / ".cursor" / "mcp.json", {"greeter": good, "broken": {"command": "no-such-command"}}),
        (own_home / ".codeium" / "windsurf" / "mcp_config.json", {"greeter": good}),
        (tmp_path / "project" / ".mcp.json", {"risky": {"command": str(tmp_path / "never"), "args": ["--now"]}}),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    never = tmp_path / "never"
    never.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n", encoding="utf-8")
    never.chmod(0o755)
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def found(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert main(["discover", "--json", *options]) in (None, 0)
    return {each["server"]: each for each in json.loads(capsys.readouterr().out)}


def test_each_server_is_found_once_with_its_clients_and_its_cost(
    places: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = found(capsys)
    assert set(servers) == {"greeter", "broken", "risky"}
    assert set(servers["greeter"]["clients"]) == {"cursor", "windsurf"}
    # The reader of long answers is a tool as well.
    assert servers["greeter"]["tools"] == 2
    assert 20 < servers["greeter"]["tokens"] < 200
    assert servers["broken"]["tools"] is None
    assert "no-such-command" in servers["broken"]["problem"]


def test_a_server_that_only_the_project_names_is_not_started_unasked(
    places: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--project-servers" in found(capsys)["risky"]["problem"]
    assert not (places / "started").exists()
    found(capsys, "--project-servers")
    assert (places / "started").exists()


def test_nothing_is_started_where_only_files_are_read(places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    servers = found(capsys, "--no-start", "--project-servers")
    assert {each["tools"] for each in servers.values()} == {None}
    assert not (places / "started").exists()


def test_a_file_that_cannot_be_read_is_named_and_the_others_count(
    places: Path, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own_home / ".cursor" / "mcp.json").write_text("{", encoding="utf-8")
    assert main(["discover", "--json", "--no-start"]) in (None, 0)
    printed = capsys.readouterr()
    assert "Cursor" in printed.err
    assert "greeter" in {each["server"] for each in json.loads(printed.out)}
