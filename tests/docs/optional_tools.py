"""The catalogue of optional tools, made from what they say of themselves: `python -m tests.docs.optional_tools`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from tests.docs.pages import ROOT
from trysquare import Tool
from trysquare.agents.prompt import optional_tools_section
from trysquare.agents.writing.draft import Draft
from trysquare.agents.writing.tools import (
    WritingSession,
    analyse_tool,
    complete_draft_tool,
    outline_tool,
    piece_tool,
    research_notes_tool,
    section_tool,
    social_post_tool,
)
from trysquare.content import ContentConfig, content_tools
from trysquare.models import Model
from trysquare.store import LazyDatabase
from trysquare.workbench.generation import logit_config
from trysquare.workbench.tools.logit import logit_tool

PAGE = ROOT / "docs" / "reference" / "optional-tools.md"
MARK = "<!-- What follows is made from the tools; `python -m tests.docs.optional_tools` writes it. -->\n"
_WRITING = (
    analyse_tool, research_notes_tool, outline_tool, section_tool, piece_tool, social_post_tool, complete_draft_tool
)  # fmt: skip


def optional_tools() -> list[Tool]:
    """Every optional tool of the workbench and of the agents that write. None of them is called."""
    nothing: Any = None
    desk = WritingSession(draft=Draft(root=Path(), name="none"), model=cast(Model, nothing), task="")
    content = content_tools(ContentConfig(), state=LazyDatabase(Path("none.db")))
    return [*content, logit_tool(logit_config(None, nothing)), *(make(desk) for make in _WRITING)]


def catalogue() -> str:
    """The tables by category, and the words that a model reads."""
    tools = optional_tools()
    categories = dict.fromkeys(str(tool.metadata.category) for tool in tools)
    tables = "".join(_table(name, [tool for tool in tools if tool.metadata.category == name]) for name in categories)
    told = f"\n## As a model reads it\n\n```text\n{optional_tools_section(tools)}\n```\n"
    return tables + told


def _table(category: str, tools: Sequence[Tool]) -> str:
    rows = "".join(_row(tool) for tool in tools)
    head = "| tool | use it when | leave it when | needs | limits |\n|---|---|---|---|---|\n"
    return f"\n## {category.capitalize()}\n\n{head}{rows}"


def _row(tool: Tool) -> str:
    about = tool.metadata
    needs = ", ".join(f"`{need}`" for need in about.needs) or "nothing"
    return f"| `{tool.name}` | {about.use_when} | {about.avoid_when} | {needs} | {about.limits} |\n"


def written(page: str) -> str:
    """The page with the catalogue as it is now."""
    head, mark, _ = page.partition(MARK)
    return head + mark + catalogue()


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
