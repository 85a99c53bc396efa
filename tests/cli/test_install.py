"""`trysquare install`, through the command line, on files as people have them."""

from __future__ import annotations

import json
import os
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from trysquare.cli.clients import CLIENTS, Client, Place
from trysquare.cli.install import fitting_profile, overlong_names
from trysquare.cli.main import main

TOOLS = ["--tools", "my_tools:tools"]

MODULE = """
from trysquare import Declarations

tools = Declarations()

for number in range(NUMBER):
    def one(text: str) -> str:
        "Return the text."
        return text

    tools.declare(name=f"tool_{number}")(one)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two tools, as the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    write_tools(tmp_path, 2)
    return tmp_path


def write_tools(project: Path, number: int) -> None:
    sys.modules.pop("my_tools", None)
    (project / "my_tools.py").write_text(MODULE.replace("NUMBER", str(number)), encoding="utf-8")


def installed(file: Path, table: str = "mcpServers") -> Any:
    return json.loads(file.read_text(encoding="utf-8"))[table]["trysquare"]


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_gets_an_entry_that_starts_this_installation(name: str, project: Path, own_home: Path):
    client = CLIENTS[name]
    assert main(["install", name, *TOOLS]) == 0

    file = Place(home=own_home, project=project, environ=dict(os.environ)).path(client.files["user"])
    text = file.read_text(encoding="utf-8")
    entry = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    for key in (*client.table, "trysquare"):
        entry = entry[key]
    command, *words = entry["command"] if client.joins_command else [entry["command"], *entry["args"]]
    assert Path(command).is_absolute()
    assert os.access(command, os.X_OK)
    assert words[-5:] == ["serve", "--tools", "my_tools:tools", "--project", str(project)]
    assert entry.get("type") == client.type


def test_the_project_scope_writes_into_the_project(project: Path):
    assert main(["install", "claude-code", "--scope", "project", *TOOLS]) == 0
    assert main(["install", "vscode", "--scope", "project", *TOOLS]) == 0

    assert installed(project / ".mcp.json")["args"][0] == "serve"
    assert installed(project / ".vscode" / "mcp.json", "servers")["type"] == "stdio"


def test_a_file_of_an_older_version_stays_one_and_a_file_of_another_name_is_used(project: Path):
    """OpenCode's first version has the servers one level higher; its file may have comments."""
    old, new = project / "opencode.json", project / "opencode.jsonc"
    old.write_text('{"mcp": {"git": {"type": "local", "command": ["git-mcp"]}}}', encoding="utf-8")
    assert main(["install", "opencode", "--scope", "project", *TOOLS]) == 0
    assert set(json.loads(old.read_text(encoding="utf-8"))["mcp"]) == {"git", "trysquare"}
    assert main(["install", "opencode", "--scope", "project", "--remove"]) == 0
    assert set(json.loads(old.read_text(encoding="utf-8"))["mcp"]) == {"git"}

    old.unlink()
    new.write_text('{"mcp": {"servers": {}}} // mine', encoding="utf-8")
    assert main(["install", "opencode", "--scope", "project", *TOOLS]) == 0
    assert new.read_text(encoding="utf-8").endswith("// mine")
    assert set(json.loads(new.read_text(encoding="utf-8").removesuffix("// mine"))["mcp"]["servers"]) == {"trysquare"}
    assert not old.exists()


def test_a_client_without_that_scope_says_so(project: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["install", "claude-desktop", "--scope", "project"]) == 2
    assert "Claude Desktop" in capsys.readouterr().err


def test_a_second_run_finds_the_entry_already_there(project: Path, capsys: pytest.CaptureFixture[str]):
    main(["install", "cursor", *TOOLS])
    before = sorted(Path.home().rglob("*"))
    capsys.readouterr()

    assert main(["install", "cursor", *TOOLS]) == 0
    assert "Unchanged" in capsys.readouterr().out
    assert sorted(Path.home().rglob("*")) == before


def test_another_entry_of_the_same_name_is_shown_and_kept(project: Path, capsys: pytest.CaptureFixture[str]):
    file = Path.home() / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"trysquare": {"command": "mine"}}}', encoding="utf-8")

    assert main(["install", "cursor", *TOOLS]) == 1
    assert '"command": "mine"' in capsys.readouterr().out
    assert installed(file) == {"command": "mine"}

    assert main(["install", "cursor", "--force", *TOOLS]) == 0
    assert installed(file)["args"][0] == "serve"


def test_everything_else_in_the_file_stays_and_a_backup_holds_what_was(project: Path):
    file = Path.home() / ".cursor" / "mcp.json"
    file.parent.mkdir()
    before = b'\xef\xbb\xbf{\r\n\t// mine\r\n\t"mcpServers": {\r\n\t\t"other": {"command": "x",},\r\n\t},\r\n}\r\n'
    file.write_bytes(before)
    file.chmod(0o640)

    assert main(["install", "cursor", *TOOLS]) == 0

    after = file.read_bytes()
    head, tail = before.split(b"\r\n\t},")
    assert after.startswith(head + b'\r\n\t\t"trysquare": {')
    assert after.endswith(b"\r\n\t}," + tail)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    [backup] = file.parent.glob("mcp.json.*.bak")
    assert backup.read_bytes() == before

    assert main(["install", "cursor", "--remove"]) == 0
    assert file.read_bytes() == before


def test_a_link_is_followed_and_stays_a_link(project: Path, tmp_path: Path):
    real = tmp_path / "dotfiles.json"
    real.write_text("{}", encoding="utf-8")
    link = Path.home() / ".claude.json"
    link.symlink_to(real)

    assert main(["install", "claude-code", *TOOLS]) == 0
    assert link.is_symlink()
    assert installed(real)["type"] == "stdio"


@pytest.mark.parametrize(
    ("client", "file", "text", "where"),
    [
        ("cursor", ".cursor/mcp.json", '{\n  "mcpServers": {,}\n}', "line 2, column 18"),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": []}', "line 1, column 16"),
        ("codex", ".codex/config.toml", "model = \n", "line 1, column 9"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_its_line_and_left_alone(
    client: str, file: str, text: str, where: str, project: Path, capsys: pytest.CaptureFixture[str]
):
    path = Path.home() / file
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")

    assert main(["install", client, *TOOLS]) == 2
    told = capsys.readouterr().err
    assert f"{path}, {where}" in told
    assert "Nothing was written" in told
    assert [found.name for found in path.parent.iterdir()] == [path.name]
    assert path.read_text(encoding="utf-8") == text


def test_a_file_that_is_no_text_is_refused(project: Path, capsys: pytest.CaptureFixture[str]):
    path = Path.home() / ".claude.json"
    path.write_bytes("{}".encode("utf-16"))

    assert main(["install", "claude-code", *TOOLS]) == 2
    assert "not UTF-8" in capsys.readouterr().err


def test_an_unwritable_folder_is_reported_and_nothing_is_left(project: Path, capsys: pytest.CaptureFixture[str]):
    (Path.home() / ".cursor").write_text("a file where a folder belongs", encoding="utf-8")

    assert main(["install", "cursor", *TOOLS]) == 2
    assert "Cannot read the file" in capsys.readouterr().err


def test_print_and_dry_run_write_nothing(project: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["install", "codex", "--print", *TOOLS]) == 0
    assert tomllib.loads(capsys.readouterr().out)["mcp_servers"]["trysquare"]["args"][0] == "serve"

    assert main(["install", "cursor", "--dry-run", *TOOLS]) == 0
    assert '+    "trysquare": {' in capsys.readouterr().out
    assert list(Path.home().iterdir()) == []


def test_remove_takes_out_only_ours_and_says_when_there_is_none(project: Path, capsys: pytest.CaptureFixture[str]):
    main(["install", "codex", *TOOLS])
    main(["install", "codex", "--name", "second", *TOOLS])

    assert main(["install", "codex", "--remove", "--dry-run"]) == 0
    assert "-[mcp_servers.trysquare]" in capsys.readouterr().out
    assert main(["install", "codex", "--remove"]) == 0
    left = tomllib.loads((Path.home() / ".codex" / "config.toml").read_text(encoding="utf-8"))
    assert list(left["mcp_servers"]) == ["second"]
    assert main(["install", "codex", "--remove"]) == 0
    assert "has no entry" in capsys.readouterr().out


def test_a_listing_that_is_too_long_for_the_client_gets_a_shorter_profile(project: Path):
    write_tools(project, 41)
    assert main(["install", "cursor", *TOOLS]) == 0
    assert main(["install", "vscode", *TOOLS]) == 0

    cursor = installed(Path.home() / ".cursor" / "mcp.json")["args"]
    assert cursor[-2:] == ["--profile", "search"]
    assert "--profile" not in installed(Path.home() / "config/Code/User/mcp.json", "servers")["args"]


def test_a_profile_that_the_user_chose_is_kept_with_a_warning(project: Path, capsys: pytest.CaptureFixture[str]):
    write_tools(project, 41)
    assert main(["install", "cursor", "--profile", "full", *TOOLS]) == 0

    assert "That is too many" in capsys.readouterr().err
    assert installed(Path.home() / ".cursor" / "mcp.json")["args"].count("--profile") == 1


def test_options_and_environment_go_into_the_entry_with_absolute_paths(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MCP_TOOL_PREFIX", "mine")
    (project / "inner").mkdir()
    (project / "inner" / "other.toml").write_text("", encoding="utf-8")

    assert main(["install", "cursor", "--strict", "--config", "inner/other.toml", *TOOLS]) == 0
    words = installed(Path.home() / ".cursor" / "mcp.json")["args"]
    assert words[words.index("--prefix") + 1] == "mine"
    assert "--strict" in words
    assert words[words.index("--config") + 1] == str(project / "inner" / "other.toml")


@pytest.mark.parametrize("wrong", ["gemni", "claude", "nonsense"])
def test_an_unknown_client_names_the_nearest_or_all(wrong: str, project: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["install", wrong]) == 2
    told = capsys.readouterr().err
    assert f"unknown client `{wrong}`" in told
    assert any(name in told for name in CLIENTS)


def test_a_name_that_clients_refuse_is_refused_here(project: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["install", "cursor", "--name", "my server"]) == 2
    assert "--name" in capsys.readouterr().err


def test_without_a_client_the_clients_are_shown(project: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["install"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in CLIENTS)


def test_each_system_has_its_own_folder_for_desktop_programs():
    desktop = CLIENTS["claude-desktop"].files["user"]
    home = Path("/home/me")

    def at(platform: str, **environ: str) -> str:
        return str(Place(home=home, project=home, platform=platform, environ=environ).path(desktop))

    assert at("darwin") == "/home/me/Library/Application Support/Claude/claude_desktop_config.json"
    assert at("win32", APPDATA="/roaming") == "/roaming/Claude/claude_desktop_config.json"
    assert at("linux") == "/home/me/.config/Claude/claude_desktop_config.json"
    assert at("linux", XDG_CONFIG_HOME="/cfg") == "/cfg/Claude/claude_desktop_config.json"


@pytest.mark.parametrize(
    ("most", "profile"), [(None, "full"), (75, "full"), (74, "levels"), (11, "levels"), (10, "gateway"), (1, "search")]
)
def test_the_longest_listing_that_fits_is_chosen(most: int | None, profile: str):
    client = Client(name="x", title="X", files={}, table=("t",), most_tools=most)
    assert fitting_profile({"full": 75, "levels": 11, "gateway": 4, "search": 2}, client) == profile


def test_a_name_too_long_with_the_servers_is_found():
    assert overlong_names(CLIENTS["cursor"], "s" * 20, ["t" * 39, "t" * 40]) == ["t" * 40]
    assert overlong_names(CLIENTS["claude-code"], "server", ["t" * 51, "t" * 52]) == ["t" * 52]
