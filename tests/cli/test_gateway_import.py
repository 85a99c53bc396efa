"""`trysquare gateway import`, on files as clients write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backends.fail import Keyring as NoKeyring

from tests.cli.conftest import Run
from trysquare.store import SystemSecrets

TOKEN = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
GIT = {"command": "uvx", "args": ["mcp-server-git"]}
CODEX = """
model = "gpt-5"

[mcp_servers.git]
command = "uvx"
args = ["mcp-server-git"]
env_vars = ["GIT_DIR"]
startup_timeout_sec = 20
tool_timeout_sec = 45.5
enabled_tools = ["git_log"]

[mcp_servers.git.env]
LANG = "C"

[mcp_servers.web]
url = "https://example.com/mcp"
bearer_token_env_var = "WEB_TOKEN"
http_headers = { "X-Team" = "a" }
env_http_headers = { "X-User" = "ME" }

[mcp_servers.off]
command = "x"
enabled = false
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: Path) -> Path:
    """A home without a keyring, apart from the project."""
    home = tmp_path / "at home"
    home.mkdir()
    monkeypatch.setattr(keyring, "get_keyring", NoKeyring)
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    return home


def write(file: Path, content: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def servers(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))["mcpServers"]


@pytest.mark.parametrize(
    ("client", "file", "content", "wanted"),
    [
        ("claude-code", ".claude.json", {"userID": "x", "mcpServers": {"git": {"type": "stdio", **GIT}}}, None),
        ("claude-desktop", ".config/Claude/claude_desktop_config.json", {"mcpServers": {"git": GIT}}, GIT),
        ("cursor", ".cursor/mcp.json", '{ // mine\n"mcpServers": {"git": {"command": "uvx", "args": ["a"],},}}', None),
        ("vscode", ".config/Code/User/mcp.json", {"inputs": [], "servers": {"git": {"type": "stdio", **GIT}}}, None),
        ("vscode", ".config/Code/User/settings.json", {"mcp": {"servers": {"git": GIT}}}, GIT),
        ("gemini", ".gemini/settings.json", {"mcpServers": {"git": {**GIT, "trust": True, "timeout": 9000}}}, None),
        ("windsurf", ".codeium/windsurf/mcp_config.json", {"mcpServers": {"git": {"serverUrl": "https://a/b"}}}, None),
        ("zed", ".config/zed/settings.json", {"context_servers": {"git": {"source": "custom", **GIT}}}, GIT),
        (
            "opencode",
            ".config/opencode/opencode.json",
            {"mcp": {"git": {"type": "local", "command": ["uvx", "a"], "environment": {"A": "b"}, "enabled": True}}},
            {"type": "local", "command": ["uvx", "a"], "environment": {"A": "b"}},
        ),
        (
            "opencode",
            ".config/opencode/opencode.jsonc",
            '{"mcp": {"servers": {"git": {"type": "local", "command": ["uvx", "a"], "disabled": false,}}}} // mine',
            {"type": "local", "command": ["uvx", "a"]},
        ),
        (
            "roo-code",
            ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            {"mcpServers": {"git": {**GIT, "alwaysAllow": ["log"], "disabled": False}}},
            GIT,
        ),
        ("lm-studio", ".lmstudio/mcp.json", {"mcpServers": {"git": GIT}}, GIT),
        ("kiro", ".kiro/settings/mcp.json", {"mcpServers": {"git": {**GIT, "autoApprove": []}}}, GIT),
    ],
)
def test_servers_of_each_client_are_taken_over_and_usable(
    run: Run, project: Path, home: Path, client: str, file: str, content: Any, wanted: Any
) -> None:
    write(home / file, content)
    ran = run("gateway", "import", client)
    assert ran.code == 0, ran.err
    (entry,) = servers(project / "mcp.json").values()
    assert entry == wanted or wanted is None
    (row,) = run("gateway", "list", "--json").json
    assert (row["server"], row["state"]) == ("git", "not contacted yet")


def test_codex_entries_are_put_into_the_words_of_the_others(
    run: Run, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home / ".codex" / "config.toml", CODEX)
    ran = run("gateway", "import", "codex")
    assert (ran.code, ran.err) == (0, "")
    assert "is not set" in ran.out
    assert servers(project / "mcp.json") == {
        "git": {
            **GIT,
            "env": {"GIT_DIR": "${GIT_DIR}", "LANG": "C"},
            "includeTools": ["git_log"],
            "x-trysquare": {"timeout": 45.5, "start_timeout": 20},
        },
        "web": {
            "url": "https://example.com/mcp",
            "headers": {"X-Team": "a", "X-User": "${ME}", "Authorization": "Bearer ${WEB_TOKEN}"},
        },
    }
    for name in ("WEB_TOKEN", "ME", "GIT_DIR"):
        monkeypatch.setenv(name, "x")
    assert all("broken" not in row["state"] for row in run("gateway", "list", "--json").json)


def test_gemini_variables_are_written_with_braces(run: Run, project: Path, home: Path) -> None:
    write(home / ".gemini" / "settings.json", {"mcpServers": {"a": {"command": "x", "env": {"A": "$B", "C": "${D}"}}}})
    assert run("gateway", "import", "gemini-cli").code == 0
    assert servers(project / "mcp.json")["a"]["env"] == {"A": "${B}", "C": "${D}"}


def test_literal_secrets_stay_out_of_the_file_and_work(run: Run, project: Path, home: Path) -> None:
    write(
        home / ".claude.json",
        {
            "mcpServers": {
                "hub": {"command": "x", "args": ["--token", "t0p"], "env": {"API_KEY": "k3y", "LANG": "C"}},
                "web": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer b34r"}},
                "seen": {"command": "x", "args": [TOKEN], "env": {"API_KEY": "${API_KEY}"}},
            }
        },
    )
    shown = run("gateway", "import", "claude-code", "--print")
    assert shown.code == 0
    assert not (project / "mcp.json").exists()
    assert SystemSecrets().read("hub.API_KEY") is None
    assert run("gateway", "import", "claude-code").code == 0
    text = (project / "mcp.json").read_text(encoding="utf-8")
    for secret in ("t0p", "k3y", "b34r", TOKEN):
        assert secret not in text + shown.out
    assert servers(project / "mcp.json")["hub"]["env"] == {"API_KEY": "${keyring:hub.API_KEY}", "LANG": "C"}
    assert servers(project / "mcp.json")["seen"]["env"] == {"API_KEY": "${API_KEY}"}
    assert SystemSecrets().read("hub.API_KEY") == "k3y"
    assert SystemSecrets().read("web.Authorization") == "Bearer b34r"
    kept = run("gateway", "import", "claude-code", "hub", "--keep-secrets", "--force")
    assert "do not commit" in kept.out
    assert servers(project / "mcp.json")["hub"]["env"]["API_KEY"] == "k3y"


def test_a_second_import_changes_nothing_and_another_entry_is_not_overwritten(
    run: Run, project: Path, home: Path
) -> None:
    write(home / ".cursor" / "mcp.json", {"mcpServers": {"git": GIT, "us": {"command": "/a/bin/trysquare"}}})
    write(project / ".cursor" / "mcp.json", {"mcpServers": {"own": {"command": "./run"}, "git": {"command": "other"}}})
    assert run("gateway", "import", "cursor").code == 0
    assert servers(project / "mcp.json") == {"git": GIT, "own": {"command": "./run"}}
    before = (project / "mcp.json").read_bytes()
    assert run("gateway", "import", "cursor").code == 0
    assert (project / "mcp.json").read_bytes() == before
    write(home / ".cursor" / "mcp.json", {"mcpServers": {"git": {"command": "new"}}})
    assert "--force" in run("gateway", "import", "cursor").out
    assert (project / "mcp.json").read_bytes() == before
    assert run("gateway", "import", "cursor", "git", "--force").code == 0
    assert servers(project / "mcp.json")["git"] == {"command": "new"}
    assert [file.name for file in project.iterdir() if ".bak" in file.name] == []


def test_what_is_relative_to_the_project_stays_so_in_a_file_elsewhere(run: Run, project: Path, home: Path) -> None:
    local = {"command": "./run", "args": ["${workspaceFolder}/x"]}
    write(home / ".claude.json", {"projects": {str(project): {"mcpServers": {"run": local}}}})
    assert run("gateway", "import", "claude-code", "--scope", "user").code == 0
    written = servers(home / ".config" / "trysquare" / "mcp.json")
    assert written == {"run": {"command": "./run", "args": [f"{project}/x"], "cwd": str(project)}}
    assert [row["server"] for row in run("gateway", "list", "--json").json] == ["run"]


def test_a_local_file_is_ignored_by_git(run: Run, project: Path) -> None:
    assert run("gateway", "add", "--scope", "local", "x", "--", "npx").code == 0
    assert servers(project / ".trysquare" / "mcp.json") == {"x": {"command": "npx", "args": []}}
    assert (project / ".trysquare" / ".gitignore").read_text(encoding="utf-8") == "*\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["claude"], "`claude-code` or `claude-desktop`"),
        (["cursr"], "`cursor`"),
        (["cursor", "gti"], "`git`"),
        (["cursor", "--scope", "usr"], "`user`"),
    ],
)
def test_a_wrong_name_is_reported_with_the_nearest(run: Run, home: Path, words: list[str], said: str) -> None:
    write(home / ".cursor" / "mcp.json", {"mcpServers": {"git": GIT}})
    ran = run("gateway", "import", *words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_a_broken_file_is_named_with_its_line_and_nothing_is_written(run: Run, project: Path, home: Path) -> None:
    write(home / ".cursor" / "mcp.json", '{"mcpServers": {\n"git": }}')
    ran = run("gateway", "import", "cursor")
    assert (ran.code, ran.out) == (2, "")
    assert ".cursor/mcp.json, line 2" in ran.err
    assert not (project / "mcp.json").exists()
    listed = run("gateway", "import")
    assert (listed.code, "line 2" in listed.out) == (0, True)
