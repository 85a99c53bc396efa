"""`trysquare doctor`, through the command line: it really tries what it reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trysquare.cli.doctor import Finding, check_clients, check_state
from trysquare.cli.main import main
from trysquare.store import project_state
from trysquare.store.database import open_database

EXAMPLE = ["--tools", "trysquare.example_tools:tools"]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    # Only what the system has, so that clients of the person who runs the tests are not found.
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return tmp_path


def examined(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the findings by name."""
    code = main(["doctor", "--json", *words])
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is (code == 0)
    return code, {finding["name"]: finding for finding in report["findings"]}


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def test_a_sound_installation_is_found_sound_by_trying_it(capsys: pytest.CaptureFixture[str], project: Path):
    code, found = examined(capsys, *EXAMPLE)

    assert code == 0
    assert {found[name]["state"] for name in ("python", "trysquare", "msgspec", "pydantic", "uvicorn", "sqlite")} == {"ok"}
    assert found["project state"]["state"] == "ok"
    for era in ("2025-11-25", "2026-07-28"):
        assert found[f"tools/list, {era}"]["state"] == "ok"
        assert "tools listed" in found[f"tools/list, {era}"]["detail"]
    assert list(project.iterdir()) == []
    assert list(Path.home().iterdir()) == []


def test_a_server_that_cannot_start_is_broken_and_its_words_are_shown(capsys: pytest.CaptureFixture[str]):
    code, found = examined(capsys, "--tools", "no_such_module:tools")

    assert code == 1
    assert found["tools/list, 2025-11-25"]["state"] == "broken"
    assert "no_such_module" in found["tools/list, 2025-11-25"]["detail"]


def test_a_wrong_configuration_is_one_finding_with_its_place(capsys: pytest.CaptureFixture[str], project: Path):
    (project / "trysquare.toml").write_text("toolz = []\n", encoding="utf-8")
    code, found = examined(capsys)

    assert code == 1
    assert found["configuration"]["state"] == "broken"
    assert "trysquare.toml" in found["configuration"]["detail"]


def test_the_state_that_is_there_is_opened_and_checked(project: Path):
    file = project_state(project)
    open_database(file).close()
    found = by_name(check_state(project))

    assert found["project state"].detail == f"{file} is intact (SQLite, WAL)"


def test_a_state_folder_that_cannot_be_used_is_broken(project: Path):
    project_state(project).parent.write_text("a file where a folder belongs", encoding="utf-8")
    found = by_name(check_state(project))

    assert found["project state"].state == "broken"
    assert found["user state"].state == "ok"


def test_clients_are_found_and_our_entries_in_them(project: Path):
    (Path.home() / ".gemini").mkdir()
    assert main(["install", "cursor", "--name", "mine", *EXAMPLE]) == 0
    found = by_name(check_clients(project))

    assert found["Cursor"].state == "ok"
    assert "`mine`" in found["Cursor"].detail
    assert (found["Gemini CLI"].state, found["Gemini CLI"].fix) == ("absent", "trysquare install gemini-cli")
    assert (found["Claude Code"].state, found["Claude Code"].fix) == ("absent", None)


def test_an_entry_whose_command_is_gone_is_broken_with_the_way_out(project: Path):
    file = Path.home() / ".claude.json"
    file.write_text('{"mcpServers": {"old": {"command": "/gone/trysquare", "args": []}}}', encoding="utf-8")
    found = by_name(check_clients(project))["Claude Code"]

    assert found.state == "broken"
    assert "/gone/trysquare" in found.detail
    assert found.fix == "trysquare install claude-code --name old --scope user --force"


def test_a_clients_file_that_is_wrong_is_named_with_its_line(project: Path):
    (Path.home() / ".claude.json").write_text("{\n  oops\n}", encoding="utf-8")
    found = by_name(check_clients(project))["Claude Code"]

    assert found.state == "broken"
    assert ".claude.json, line 2, column 3" in found.detail


def test_people_get_groups_and_a_last_line(capsys: pytest.CaptureFixture[str]):
    assert main(["doctor", *EXAMPLE]) == 0
    told = capsys.readouterr().out

    assert [line for line in told.splitlines() if line.endswith(":")] == ["installed:", "state:", "server:", "clients:"]
    assert told.splitlines()[-1] == "All required checks passed."
