"""Configuration files of every client, read unchanged; wrong entries named by place while the others serve."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from trysquare import ConfigurationError
from trysquare.files.edit import read_file
from trysquare.gateway import GatewayConfig, InvalidServer, ServerConfig, read_config
from trysquare.gateway.models import OAuthClient
from trysquare.store import Secrets

ENV = {"HOME": "/home/me", "TOKEN": "t0ken", "EMPTY": ""}


def written(folder: Path, text: str | Any, name: str = "mcp.json") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return path


def read(folder: Path, text: str | Any, *, env: Mapping[str, str] = ENV, name: str = "mcp.json") -> GatewayConfig:
    return read_config(written(folder, text, name), env=env, secrets=Secrets(folder / "secrets.json"))


def server(folder: Path, entry: Any, *, env: Mapping[str, str] = ENV) -> ServerConfig:
    found = read(folder, {"mcpServers": {"one": entry}}, env=env).servers["one"]
    assert isinstance(found, ServerConfig), found
    return found


def broken(folder: Path, entry: Any, *, env: Mapping[str, str] = ENV) -> str:
    found = read(folder, {"mcpServers": {"one": entry}}, env=env).servers["one"]
    assert isinstance(found, InvalidServer), found
    return found.reason


@pytest.mark.parametrize(
    "text",
    [
        {"mcpServers": {"api-ai-mcp": {"command": "run", "args": ["-x", 3]}}},
        {"servers": {"api-ai-mcp": {"type": "stdio", "command": "run", "args": ["-x", "3"]}}},
        {"mcp": {"servers": {"api-ai-mcp": {"command": "run", "args": ["-x", "3"]}}}},
        {"mcp": {"api-ai-mcp": {"type": "local", "command": ["run", "-x", "3"]}}},
        {"context_servers": {"api-ai-mcp": {"command": {"path": "run", "args": ["-x", "3"]}}}},
        {"servers": [{"name": "api-ai-mcp", "command": "run", "args": ["-x", "3"], "enabled": True}]},
        {"mcpServers": [{"name": "api-ai-mcp", "command": "run", "args": ["-x", "3"]}]},
        [{"name": "api-ai-mcp", "command": "run", "args": ["-x", "3"]}],
        {"api-ai-mcp": {"command": "run", "args": ["-x", "3"]}},
        '// mine\n{"mcpServers": {"api-ai-mcp": {"command": "run", /* two */ "args": ["-x", "3",],},}}',
    ],
)
def test_every_shape_of_file_gives_the_same_server(tmp_path: Path, text: Any) -> None:
    [(name, found)] = read(tmp_path, text).servers.items()
    assert isinstance(found, ServerConfig)
    assert (name, found.tool_name, found.transport) == ("api-ai-mcp", "mcp_api_ai_mcp", "stdio")
    assert (found.command, found.args) == ("run", ("-x", "3"))


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"url": "https://example.com/mcp"}, "http"),
        ({"url": "https://example.com/sse"}, "sse"),
        ({"serverUrl": "https://example.com/sse/"}, "sse"),
        ({"httpUrl": "https://example.com/sse"}, "http"),
        ({"type": "sse", "url": "https://example.com/mcp"}, "sse"),
        ({"type": "remote", "url": "https://example.com/mcp"}, "http"),
        *(
            ({key: name, "url": "https://example.com/sse"}, "http")
            for key in ("type", "transport")
            for name in ("http", "streamable-http", "streamableHttp", "streamable_http")
        ),
    ],
)
def test_the_transport_is_read_from_its_name_or_from_the_address(
    tmp_path: Path, entry: dict[str, str], transport: str
) -> None:
    found = server(tmp_path, entry)
    assert found.transport == transport
    assert found.url.startswith("https://example.com/")


def test_a_whole_entry_of_a_started_server(tmp_path: Path) -> None:
    written(tmp_path, "# keys\nexport A=1\nB='two # 2'\nC=three # 3\nD=four\n", "keys.env")
    entry = {
        "command": "${userHome}/bin/run",
        "args": ["--in", "${workspaceFolder}", "--token", "${TOKEN}"],
        "env": {"D": "${env:TOKEN}!", "N": 7, "YES": True, "NONE": None},
        "envFile": "${workspaceFolder}/keys.env",
        "cwd": "work",
        "timeout": 90000,
        "description": "what it does",
        "disabledTools": ["drop"],
        "tools": ["*"],
        "autoApprove": ["read"],
        "unknown to us": {"stays": 1},
        "x-trysquare": {"sharing": "caller", "idle": 0, "concurrency": 2, "redact": ["password"]},
    }
    found = server(tmp_path, entry)
    assert found.command == "/home/me/bin/run"
    assert found.args == ("--in", str(tmp_path), "--token", "t0ken")
    assert found.env == {"A": "1", "B": "two # 2", "C": "three", "D": "t0ken!", "N": "7", "YES": "true"}
    assert found.cwd == str(tmp_path / "work")
    assert (found.timeout, found.idle, found.concurrency, found.sharing) == (90.0, 0.0, 2, "caller")
    assert (found.description, found.exclude_tools, found.include_tools) == ("what it does", {"drop"}, None)
    assert found.redact == {"password"}


def test_a_whole_entry_of_a_remote_server(tmp_path: Path) -> None:
    entry = {
        "url": "https://${HOST:-example.com}/mcp",
        "headers": {"Authorization": "Bearer ${TOKEN}", "X-Plain": "yes"},
        "oauth": {"clientId": "me", "clientSecret": "${TOKEN}", "callbackPort": 7777, "scopes": "read write"},
        "timeout": 5,
        "includeTools": ["search"],
    }
    found = server(tmp_path, entry)
    assert found.url == "https://example.com/mcp"
    assert found.headers == {"Authorization": "Bearer t0ken", "X-Plain": "yes"}
    assert found.oauth == OAuthClient(
        client_id="me", client_secret="t0ken", scopes=("read", "write"), callback_port=7777
    )
    assert (found.timeout, found.include_tools) == (5.0, {"search"})


def test_auth_is_a_token_to_send_or_the_wish_to_sign_in(tmp_path: Path) -> None:
    url = "https://example.com/mcp"
    assert server(tmp_path, {"url": url, "auth": "${TOKEN}"}).headers == {"Authorization": "Bearer t0ken"}
    signed_in = server(tmp_path, {"url": url, "auth": "oauth"})
    assert (signed_in.headers, signed_in.oauth) == ({}, OAuthClient())
    cursor = server(tmp_path, {"url": url, "auth": {"CLIENT_ID": "me", "scopes": ["a"]}})
    assert cursor.oauth == OAuthClient(client_id="me", scopes=("a",))


def test_the_servers_of_an_editors_folder_belong_to_the_project_above_it(tmp_path: Path) -> None:
    text = {
        "inputs": [
            {"id": "api-key", "type": "promptString", "password": True},
            {"id": "region", "type": "pickString", "default": "eu"},
        ],
        "servers": {
            "one": {"command": "run", "args": ["${workspaceFolder}", "${input:api-key}", "${input:region}"]},
        },
    }
    found = read(tmp_path, text, env={"INPUT_API_KEY": "k3y"}, name=".vscode/mcp.json").servers["one"]
    assert isinstance(found, ServerConfig)
    assert found.args == (str(tmp_path), "k3y", "eu")


def test_a_secret_is_taken_from_where_secrets_are_kept(tmp_path: Path) -> None:
    Secrets(tmp_path / "secrets.json").write("github", "s3cret")
    found = server(tmp_path, {"url": "https://example.com", "headers": {"X-Key": "${keyring:github}"}})
    assert found.headers == {"X-Key": "s3cret"}


def test_a_script_of_python_is_started_with_python(tmp_path: Path) -> None:
    found = server(tmp_path, {"type": "stdio", "server_script_path": "tools/server.py"})
    assert (found.command, found.args) == ("python", (str(tmp_path / "tools/server.py"),))


def test_switched_off_servers_are_known_and_not_served(tmp_path: Path) -> None:
    text = {"mcpServers": {"a": {"disabled": True}, "b": {"enabled": False, "url": 3}, "c": {"command": "c"}}}
    config = read(tmp_path, text)
    assert (list(config.servers), config.disabled) == (["c"], ("a", "b"))


def test_settings_of_ours_hold_for_all_servers_unless_one_says_otherwise(tmp_path: Path) -> None:
    entries = {"a": {"command": "a"}, "b": {"command": "b", "timeout": 7, "x-trysquare": {"idle": 5}}}
    config = read(tmp_path, {"x-trysquare": {"idle": 60, "timeout": 3}, "mcpServers": entries})
    found = [entry for entry in config.servers.values() if isinstance(entry, ServerConfig)]
    assert [(entry.idle, entry.timeout) for entry in found] == [(60.0, 3.0), (5.0, 7.0)]


def test_a_wrong_entry_is_named_with_its_line_and_the_rest_serve(tmp_path: Path) -> None:
    text = """{
      // three servers
      "mcpServers": {
        "good": {"command": "run"},
        "bad": {
          "command": "run",
          "args": ["a", {"b": 1}]
        },
        "unset": {
          "url": "https://example.com",
          "headers": {
            "Authorization": "Bearer ${GITHUB_TOKEN}"
          }
        }
      }
    }"""
    config = read(tmp_path, text)
    found = [entry for entry in config.servers.values() if isinstance(entry, InvalidServer)]
    assert isinstance(config.servers["good"], ServerConfig)
    assert [(entry.name, entry.tool_name, entry.location.line) for entry in found] == [
        ("bad", "mcp_bad", 7),
        ("unset", "mcp_unset", 12),
    ]
    assert found[0].reason.startswith("`args[1]`")
    assert found[1].reason.startswith("`headers.Authorization`")
    assert "`${GITHUB_TOKEN}`" in found[1].reason


@pytest.mark.parametrize(
    "entry",
    [
        3,
        None,
        {},
        {"type": "carrier pigeon", "url": "https://example.com"},
        {"type": "stdio", "url": "https://example.com"},
        {"type": "http"},
        {"command": ""},
        {"command": []},
        {"command": 5},
        {"command": "run", "args": "-x"},
        {"command": "run\x00", "args": []},
        {"command": "run", "env": {"A=B": "c"}},
        {"command": "run", "env": ["A"]},
        {"command": "run", "envFile": "nowhere.env"},
        {"command": "run", "timeout": -1},
        {"command": "run", "timeout": "soon"},
        {"command": "run", "disabled": "yes"},
        {"command": "run", "x-trysquare": {"shareing": "caller"}},
        {"command": "run", "x-trysquare": {"sharing": "nobody"}},
        {"command": "run", "x-trysquare": {"concurrency": 0}},
        {"command": "run", "x-trysquare": {"result_bytes": 1.5}},
        {"command": "run", "args": ["${A:-${B}}"]},
        {"command": "run", "args": ["${cmd: whoami}"]},
        {"command": "run", "args": ["${input:key}"]},
        {"command": "run", "args": ["${keyring:key}"]},
        {"url": "ftp://example.com"},
        {"url": "https://[half"},
        {"url": "https://"},
        {"url": "https://example.com", "headers": {"X-A": "b\r\nX-B: c"}},
        {"url": "https://example.com", "headers": {"X A": "b"}},
        {"url": "https://example.com", "headers": {"X-A": "ü"}},
        {"url": "https://example.com", "headersHelper": "whoami"},
    ],
)
def test_what_is_wrong_with_an_entry_is_said_in_a_sentence(tmp_path: Path, entry: Any) -> None:
    reason = broken(tmp_path, entry)
    assert reason.endswith((".", "?"))
    assert reason[0] in "`AT"


def test_a_reason_names_the_entry_and_the_way_out(tmp_path: Path) -> None:
    reasons = [
        broken(tmp_path, {"command": "run", "x-trysquare": {"shareing": "caller"}}),
        broken(tmp_path, {"command": "run", "args": ["${input:key}"]}),
        broken(tmp_path, {"command": "run", "args": ["${cmd: whoami}"]}),
        broken(tmp_path, {"command": "run", "args": "-x"}),
        broken(tmp_path, {}),
    ]
    expected = [
        ("`x-trysquare.shareing`", "`sharing`"),
        ("`args[0]`", "`${input:key}`", "INPUT_KEY", "`trysquare gateway secret input:key`"),
        ("`args[0]`", "`${cmd: whoami}`", "${keyring:NAME}", "${workspaceFolder}"),
        ("`args`",),
        ("`command`", "`url`"),
    ]
    for reason, tokens in zip(reasons, expected, strict=True):
        assert [token for token in tokens if token not in reason] == []


def test_servers_whose_tools_would_have_the_same_name_are_broken_both(tmp_path: Path) -> None:
    config = read(tmp_path, '{"a-b": {"command": "x"},\n"a b": {"command": "y"},\n"c": {"command": "z"}}')
    found = [entry for entry in config.servers.values() if isinstance(entry, InvalidServer)]
    assert [entry.tool_name for entry in found] == ["mcp_a_b", "mcp_a_b_2"]
    for token in ("`mcp_a_b`", f"`a-b` at {tmp_path}/mcp.json:1", f"`a b` at {tmp_path}/mcp.json:2"):
        assert token in found[0].reason
    assert isinstance(config.servers["c"], ServerConfig)


def test_a_name_that_stands_twice_is_broken_and_named_with_both_lines(tmp_path: Path) -> None:
    config = read(tmp_path, '{"mcpServers": {\n"a": {"command": "x"},\n"a": {"command": "y"}}}')
    [found] = config.servers.values()
    assert isinstance(found, InvalidServer)
    assert "mcp.json:2" in found.reason
    assert "mcp.json:3" in found.reason


def test_a_name_in_which_something_hides_is_broken_and_shown_in_full(tmp_path: Path) -> None:
    [found] = read(tmp_path, {"mcpServers": {"git\u202ehub\x1b[2K": {"command": "x"}}}).servers.values()
    assert isinstance(found, InvalidServer)
    assert found.name == r"git\u202ehub\x1b[2K"
    assert found.tool_name == "mcp_git_u202ehub_x1b_2K"


def test_several_files_are_one_configuration(tmp_path: Path) -> None:
    mine = written(tmp_path, {"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}, "mine.json")
    ours = written(tmp_path, {"mcpServers": {"a": {"command": "x"}, "b": {"command": "z"}, "c": {"command": "c"}}})
    config = read_config(mine, ours, mine, env=ENV)
    assert list(config.servers) == ["a", "b", "c"]
    assert [isinstance(entry, ServerConfig) for entry in config.servers.values()] == [True, False, True]


def test_a_server_that_only_moved_within_its_file_is_the_same(tmp_path: Path) -> None:
    before = read(tmp_path, '{"a": {"command": "x", "env": {"K": "1"}}}')
    moved = read(tmp_path, '// moved\n\n{"a": {"command": "x", "env": {"K": "1"}}}')
    changed = read(tmp_path, '{"a": {"command": "x", "env": {"K": "2"}}}')
    assert before.servers == moved.servers
    assert before.digest == moved.digest
    assert before.digest != changed.digest


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "The file is empty"),
        ("// nothing", "The file is empty"),
        ('{"mcpServers": {', "mcp.json:1:17"),
        ('{"a": 1', "mcp.json:1:8"),
        ("3", "must contain an object"),
        ('{"theme": "dark"}', "has no servers"),
        ('{"mcpServers": 3}', "must be an object"),
        ('{"a": ' + "9" * 5000 + "}", "digits"),
        ("[" * 200, "levels of nesting"),
    ],
)
def test_a_file_that_is_wrong_as_a_whole_is_refused_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem) as caught:
        read(tmp_path, text)
    assert "mcp.json" in str(caught.value)


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="not found"):
        read_config(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes(b'{"a": {"command": "\xe4"}}')
    with pytest.raises(ConfigurationError, match="UTF-8"):
        read_config(tmp_path / "latin.json")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_config(tmp_path)


def test_no_secret_shows_in_a_server_or_in_its_display(tmp_path: Path) -> None:
    entries = {
        "started": {
            "command": "run",
            "args": [
                *("--token", "s3cret-a", "--api-key=s3cret-b", "--header", "Authorization: Bearer s3cret-c"),
                *("--password", "${TOKEN}", "https://u:s3cret-d@example.com/x?key=s3cret-e"),
                *("ghp_s3cretabcdefghijklmnop", "--plain", "value"),
            ],
            "env": {"KEY": "s3cret-f"},
        },
        "remote": {
            "url": "https://user:s3cret-g@example.com/s/s3cretAb12Cd34Ef56Gh78/mcp?api_key=s3cret-h",
            "headers": {"X-Key": "s3cret-i"},
            "auth": {"CLIENT_ID": "me", "CLIENT_SECRET": "s3cret-j"},
        },
    }
    config = read(tmp_path, {"mcpServers": entries})
    assert "s3cret" not in repr(config)
    assert "t0ken" not in repr(config)
    shown = [entry.shown for entry in config.servers.values() if isinstance(entry, ServerConfig)]
    assert shown == snapshot(
        [
            "run --token '***' '--api-key=***' --header 'Authorization: ***' --password '${TOKEN}'"
            " 'https://example.com/x?key=***' '***' --plain value (with KEY)",
            "https://example.com/s/***/mcp?api_key=***",
        ]
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(
    [
        *("mcpServers", "servers", "mcp", "inputs", "command", "args", "env", "envFile", "cwd", "url", "serverUrl"),
        *("httpUrl", "headers", "type", "transport", "auth", "oauth", "timeout", "disabled", "enabled", "tools"),
        *("includeTools", "excludeTools", "disabledTools", "name", "description", "x-trysquare", "idle", "sharing"),
        *("redact", "concurrency", "clientId", "scopes", "callbackPort", "id", "default"),
    ]
)
TEXTS = st.sampled_from(["run", "${A}", "${A:-b}", "${keyring:x}", "http", "sse", "https://a.b/c", "${", "$${"])
LIKELY = st.recursive(
    JSON | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | TEXTS, inner, max_size=5),
    max_leaves=30,
)


def read_or_refused(folder: Path, text: str) -> GatewayConfig | None:
    """The configuration, or None where the file was refused as a whole, with its name."""
    try:
        return read(folder, text)
    except ConfigurationError as error:
        if error.where is None or not error.where.startswith(str(folder)):
            raise
        return None


@given(LIKELY)
def test_any_json_is_read_or_refused_and_nothing_crashes(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    folder = tmp_path_factory.mktemp("any")
    config = read_or_refused(folder, json.dumps(value).replace("NaN", "0").replace("Infinity", "1"))
    if config is None:
        return
    assert len({entry.tool_name for entry in config.servers.values()}) == len(config.servers)
    for name, entry in config.servers.items():
        assert entry.name == name
        assert entry.location.line is not None
    assert config.digest == read(folder, read_file(folder / "mcp.json")).digest


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_and_nothing_crashes(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    config = read_or_refused(tmp_path_factory.mktemp("any"), text.encode("utf-8", "replace").decode())
    assert config is None or not config.servers
