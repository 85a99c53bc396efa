"""The code tools as a whole: what is listed, what it costs, and what their schemas say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from tests.workbench.workplace import git, make_repository, need_sandbox, workplace
from trysquare import ConfigurationError
from trysquare.app import open_app
from trysquare.catalog.descriptions import definition_tokens
from trysquare.settings import Settings
from trysquare.workbench.context import KIND
from trysquare.workbench.git import workspace_branches, workspace_files
from trysquare.workbench.provider import code_probes


async def test_the_tools_and_what_they_cost(tmp_path: Path) -> None:
    async with workplace(tmp_path) as place:
        tools = place.toolset.tools()
    assert {tool.name: definition_tokens(tool) for tool in tools} == snapshot(
        {"file": 290, "code_edit": 349, "search": 396, "navigate": 306, "git": 390, "bash": 169, "test": 304}
    )
    assert {tool.name: (tool.metadata.category, tool.metadata.needs) for tool in tools} == snapshot(
        {
            "file": ("code", ()),
            "code_edit": ("code", ()),
            "search": ("code", ()),
            "navigate": ("code", ()),
            "git": ("vcs", ("git",)),
            "bash": ("build", ("bash",)),
            "test": ("build", ("bash",)),
        }
    )


async def test_what_an_argument_must_name_is_sent_to_our_own_servers_only(tmp_path: Path) -> None:
    async with workplace(tmp_path) as place:
        for tool in place.toolset.tools():
            assert KIND not in str(tool.input_schema)
        [file] = [tool for tool in place.toolset.tools() if tool.name == "file"]
        kinds = {
            option["properties"]["action"]["const"]: option["properties"]["path"][KIND]
            for option in file.arguments.exact["oneOf"]
        }
    assert kinds == snapshot(
        {
            "read": "existing_file",
            "write": "workspace_path",
            "replace": "existing_file",
            "append": "workspace_path",
            "delete": "existing_file",
            "undo": "workspace_path",
        }
    )


async def test_several_workspaces_have_tools_of_their_own(tmp_path: Path) -> None:
    for name in ("api", "web"):
        (tmp_path / name).mkdir()
    settings = Settings.model_validate({"project": tmp_path, "workbench": [tmp_path / "api", tmp_path / "web"]})
    async with open_app(settings) as app:
        names = {tool.name for tool in app.plain.tools()}
    assert {"api_file", "web_file", "api_bash", "web_bash"} <= names


async def test_a_missing_workspace_is_reported(tmp_path: Path) -> None:
    settings = Settings.model_validate({"project": tmp_path, "workbench": [tmp_path / "nowhere"]})
    with pytest.raises(ConfigurationError, match="No such file or directory"):
        async with open_app(settings):
            pass


async def test_opening_and_listing_leaves_no_trace(tmp_path: Path) -> None:
    async with workplace(tmp_path) as place:
        assert place.toolset.tools()
    assert not os.listdir(tmp_path)


async def test_what_the_tools_need_is_tried_for_real(tmp_path: Path) -> None:
    need_sandbox()
    make_repository(tmp_path / "repository")
    assert await code_probes(tmp_path / "repository")["git"]() is None
    assert await code_probes(tmp_path)["bash"]() is None
    assert "repository" in (await code_probes(tmp_path)["git"]() or "")


def test_files_and_branches_are_listed_for_narrowing(tmp_path: Path) -> None:
    make_repository(tmp_path)
    git(tmp_path, "branch", "feature/x")
    git(tmp_path, "pack-refs", "--all")
    git(tmp_path, "branch", "later")
    (tmp_path / "odd\nname").touch()
    assert workspace_files(tmp_path) == ["a.txt"]
    assert workspace_branches(tmp_path) == ["feature/x", "later", "main"]
    assert workspace_branches(tmp_path / ".git") == []
