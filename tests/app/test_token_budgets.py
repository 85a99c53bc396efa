"""What the definitions of each built-in toolset cost a model in every conversation that lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.guide.opened import write_guide
from trysquare import Tool
from trysquare.app import open_app
from trysquare.catalog import parse_profiles
from trysquare.catalog.descriptions import definition_tokens
from trysquare.catalog.toolset import listed
from trysquare.settings import Settings


async def shown(project: Path, *profile: str, **given: Any) -> dict[str, Tool]:
    """The tools that a client lists."""
    async with open_app(Settings(project=project, **given)) as app:
        return {tool.name: tool for tool in listed(app.toolset, parse_profiles(profile))}


def cost(tools: dict[str, Tool]) -> int:
    return sum(definition_tokens(tool) for tool in tools.values())


async def test_the_workbench_costs_at_most_2300_tokens_without_configured_content(tmp_path: Path) -> None:
    tools = await shown(tmp_path, workbench=(tmp_path,))
    assert list(tools) == ["file", "code_edit", "search", "navigate", "git", "bash", "test"]
    assert cost(tools) <= 2_300


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"content": {"feeds": ["news=https://example.org/feed"]}}, "rss_feed"),
        ({"content": {"custom_links": ["home=https://example.org"]}}, "static_links"),
        ({"content": {"google_token": "abc"}}, "calendar"),
        ({"content": {"notion_token": "abc", "notion_page": "1"}}, "blog_notion"),
        ({"model": "local:smollm2-135m"}, "logit"),
    ],
)
async def test_a_content_tool_is_listed_once_it_is_configured_and_always_callable(
    tmp_path: Path, given: dict[str, Any], name: str
) -> None:
    assert name in await shown(tmp_path, workbench=(tmp_path,), **given)
    assert name not in await shown(tmp_path, workbench=(tmp_path,))
    async with open_app(Settings(project=tmp_path, workbench=(tmp_path,))) as app:
        assert app.toolset.find(name) is not None


async def test_the_guide_lists_its_reading_tools_for_at_most_600_tokens(tmp_path: Path) -> None:
    write_guide(tmp_path)
    guide = (tmp_path / "docs/guide",)
    tools = await shown(tmp_path, guide=guide)
    assert list(tools) == ["guide_get_content", "guide_search_content", "guide_list_content", "read_more"]
    assert all(tool.metadata.read_only for tool in tools.values())
    assert cost(tools) <= 600
    every = await shown(tmp_path, "guide=full", guide=guide)
    assert len(every) == 19
    assert cost(every) <= 2_700


async def test_explain_alone_costs_at_most_150_tokens(tmp_path: Path) -> None:
    tools = await shown(tmp_path, "debug=gateway", debugger=True)
    assert list(tools) == ["debug_explain"]
    assert cost(tools) <= 150
    assert len(await shown(tmp_path, debugger=True)) == 19
