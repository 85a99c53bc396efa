"""The early greeting: the very answer that the server gives, or none."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serve.sample import declared
from trysquare.serve.early_greeting import VERSIONS, greeting, greets_plainly
from trysquare.serve.options import ServeOptions
from trysquare.serve.stdio import serve_descriptors

CLIENT = {"name": "test", "version": "1"}
NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["form", "a"]), inner, max_size=2),
    max_leaves=4,
)
OFFERS = st.dictionaries(
    st.sampled_from(["experimental", "sampling", "elicitation", "roots", "tasks", "extensions", "other"]),
    st.dictionaries(st.sampled_from(["form", "url", "listChanged", "context", "tools"]), NESTED, max_size=2) | NESTED,
    max_size=3,
)
CLIENTS = st.dictionaries(
    st.sampled_from(["name", "version", "title", "websiteUrl"]), st.text(max_size=3) | st.integers(), max_size=4
)
PARAMS = st.fixed_dictionaries(
    {
        "protocolVersion": st.sampled_from([*VERSIONS, "2026-07-28", "1999-01-01", 7]),
        "capabilities": st.just({}) | OFFERS,
        "clientInfo": st.just(CLIENT) | CLIENTS,
    },
    optional={"_meta": st.just({}), "unknown": st.integers()},
)


def answered(params: Any) -> dict[str, Any]:
    """What the server itself answers."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    (read_from, write_in), (read_out, write_to) = os.pipe(), os.pipe()
    os.write(write_in, json.dumps(asked).encode() + b"\n")
    os.close(write_in)
    asyncio.run(serve_descriptors(declared.toolset(), ServeOptions(), read_from=read_from, write_to=write_to))
    os.close(write_to)
    os.close(read_from)
    with open(read_out, encoding="utf-8") as answers:
        return json.loads(answers.readline())


@given(PARAMS)
@settings(max_examples=60)
def test_who_is_greeted_early_hears_what_the_server_says(params: dict[str, Any]) -> None:
    early = greeting(params)
    if early is not None:
        assert json.loads(early) == answered(params)["result"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "offered",
    [
        {},
        {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {"form": {}, "url": {}}},
        {"experimental": {"own": {"any": [1]}}},
    ],
)
def test_an_ordinary_client_is_greeted(version: str, offered: dict[str, Any]) -> None:
    params = {"protocolVersion": version, "capabilities": offered, "clientInfo": {**CLIENT, "title": "A test"}}
    early = greeting(params)
    assert early is not None
    assert json.loads(early) == answered(params)["result"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("TRYSQUARE_", "MCP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mcp.json").write_text("{}", encoding="utf-8")
    return tmp_path


WORDS = ["serve", "--gateway", "mcp.json"]


def test_a_start_with_nothing_set_greets(place: Path) -> None:
    (place / "pyproject.toml").write_text("[tool.other]\n", encoding="utf-8")
    assert greets_plainly(WORDS)
    assert greets_plainly(["serve", "--gateway=mcp.json", "--project", str(place)])


@pytest.mark.parametrize(
    "words",
    [
        ["serve"],
        ["serve", "--gateway"],
        ["serve", "--gateway", "nowhere.json"],
        [*WORDS, "--guide", "."],
        [*WORDS, "--config", "mcp.json"],
        [*WORDS, "--strict"],
        [*WORDS, "--project", "nowhere"],
        [*WORDS, "--help"],
    ],
)
def test_words_that_may_change_something_leave_it_to_the_server(place: Path, words: list[str]) -> None:
    assert not greets_plainly(words)


@pytest.mark.parametrize("name", ["trysquare.toml", "pyproject.toml"])
def test_a_file_of_settings_leaves_it_to_the_server(place: Path, name: str) -> None:
    (place / "inner").mkdir()
    (place / "inner" / name).write_text("[tool.trysquare]\n", encoding="utf-8")
    assert greets_plainly(WORDS)
    assert not greets_plainly([*WORDS, "--project", "inner"])


@pytest.mark.parametrize("name", ["TRYSQUARE_SERVER_NAME", "TRYSQUARE_CONFIG", "MCP_TOOL_PREFIX"])
def test_a_variable_leaves_it_to_the_server(place: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("TRYSQUARE_STARTED_BY", "a test")
    assert greets_plainly(WORDS)
    monkeypatch.setenv(name, "x")
    assert not greets_plainly(WORDS)
