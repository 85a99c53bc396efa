"""The page of the content tools names every tool, action and argument, and says what needs consent."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.docs.optional_tools import optional_tools
from tests.docs.pages import ROOT
from trysquare import Tool

PAGE = (ROOT / "docs" / "reference" / "content-tools.md").read_text(encoding="utf-8")
TOOLS = [tool for tool in optional_tools() if tool.metadata.toolset == "workbench"]


def row(name: str) -> str:
    return next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_each_tool_has_its_line_with_its_actions_and_its_consent(tool: Tool) -> None:
    properties: dict[str, Any] = tool.input_schema["properties"]
    actions = properties.get("action", {}).get("enum", [])
    assert set(re.findall(r"`(\w+)`", row(tool.name))) == {tool.name, *actions}
    assert ("Needs consent" in row(tool.name)) == (tool.metadata.consent is not None)


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool.name != "static_links"], ids=lambda tool: tool.name)
def test_each_argument_stands_in_the_section_of_its_tool(tool: Tool) -> None:
    section = PAGE.split(f"\n## {tool.name}\n")[1].split("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in section.splitlines() if "|" in line)))
    assert {name for name in tool.input_schema["properties"] if name != "action"} <= named
