"""Servers added to a file and taken out again, and everything else there left as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from tests.support import size
from trysquare import ConfigurationError
from trysquare.gateway import add_server, read_config, remove_server

ENTRY: dict[str, Any] = {"command": "run", "args": ["-x"]}
FILES = {
    "claude": '{\n  // mine\n  "mcpServers": {\n    "a": {"command": "x", "theirs": 1}, // a\n  },\n  "theme": 1\n}\n',
    "code": '{\n\t"servers": {\n\t\t"a": {"command": "x"}\n\t},\n\t"inputs": []\n}\n',
    "settings": '{"mcp": {"servers": {"a": {"command": "x"}}}}',
    "list": '{\n  "servers": [\n    {"name": "a", "command": "x"} // first\n  ]\n}\n',
    "list with a comma": '[\n  {"name": "a", "command": "x"},\n]\n',
    "list on a line": '[{"name": "a", "command": "x"}]',
    "empty list": '{"servers": []}',
    "empty": '{"mcpServers": {}}',
    "bare": '{\n    "a": {"command": "x"}\n}',
    "braces": "{}",
    "comment": "// nothing yet\n",
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
def test_what_is_added_is_served_and_taking_it_out_restores_the_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text, encoding="utf-8")
    add_server(path, "new", ENTRY)
    assert [file.name for file in tmp_path.iterdir()] == ["mcp.json"]
    found = read_config(path).servers
    assert list(found) == (["a", "new"] if '"a"' in text else ["new"])
    remove_server(path, "new")
    assert list(read_config(path).servers) == (["a"] if '"a"' in text else [])
    if '"a"' in text:
        assert path.read_text(encoding="utf-8") == text


def test_an_added_server_looks_as_the_file_does(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    for name in ("claude", "list"):
        path.write_text(FILES[name], encoding="utf-8")
        add_server(path, "new", ENTRY)
    assert path.read_text(encoding="utf-8") == snapshot("""\
{
  "servers": [
    {"name": "a", "command": "x"}, // first
    {
      "name": "new",
      "command": "run",
      "args": [
        "-x"
      ]
    }
  ]
}
""")


def test_a_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "mcp.json"
    assert add_server(path, "new", ENTRY) is None
    assert json.loads(path.read_text(encoding="utf-8")) == {"mcpServers": {"new": ENTRY}}
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_name_that_is_taken_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"a-b": {"command": "x"}}', encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"mcp\.json:1: Server `a-b` already exists"):
        add_server(path, "a_b", ENTRY)
    assert [file.name for file in tmp_path.iterdir()] == ["mcp.json"]


def test_a_name_that_is_not_there_names_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"github": {"command": "x"}}', encoding="utf-8")
    with pytest.raises(ConfigurationError, match="Did you mean `github`"):
        remove_server(path, "githb")


def test_a_file_that_cannot_be_read_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"a": ', encoding="utf-8")
    with pytest.raises(ConfigurationError, match="line 1, column 7"):
        add_server(path, "new", ENTRY)
    assert path.read_text(encoding="utf-8") == '{"a": '


@settings(max_examples=size(15, 150))
@given(
    names=st.lists(st.text("abc-_ ", min_size=1, max_size=4), min_size=1, max_size=6),
    shape=st.sampled_from(sorted(FILES)),
)
def test_any_servers_can_be_added_and_removed_one_after_another(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], shape: str
) -> None:
    path = tmp_path_factory.mktemp("edit") / "mcp.json"
    path.write_text(FILES[shape], encoding="utf-8")
    added: list[str] = []
    for name in names:
        try:
            add_server(path, name, ENTRY)
            added.append(name)
        except ConfigurationError:
            continue
    if not added:
        assert path.read_text(encoding="utf-8") == FILES[shape]
        return
    assert set(added) <= set(read_config(path).servers)
    for name in added:
        remove_server(path, name)
    assert set(read_config(path).servers) <= {"a"}
