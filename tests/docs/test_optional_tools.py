"""The catalogue of optional tools says what the tools say."""

from __future__ import annotations

import pytest

from tests.docs.optional_tools import MARK, PAGE, optional_tools, written
from trysquare import Tool


def test_the_page_is_as_the_tools_say() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert MARK in page
    assert written(page) == page, "run: python -m tests.docs.optional_tools"


@pytest.mark.parametrize("tool", optional_tools(), ids=lambda tool: tool.name)
def test_each_optional_tool_tells_when_to_use_it_and_when_not(tool: Tool) -> None:
    about = tool.metadata
    assert about.requirement == "optional"
    assert about.category
    assert about.use_when
    assert about.avoid_when
    assert about.limits
    for example in about.examples:
        assert tool.arguments.parse(tool.name, example.arguments) is not None
