"""prefixed: names, the calls that answers propose, and names that grow too long."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare import DeclarationError, Result, StaticToolset, ToolError, call_tool, tool
from trysquare.core.prefix import final_name, prefix_name


async def greet(name: str) -> Result[str]:
    return Result.ok(f"Hello, {name}", next={"tool": "wave", "arguments": {}})


async def wave() -> str:
    return "o/"


@pytest.mark.parametrize(
    ("prefix", "expected"), [("guide", "guide_greet"), ("guide_", "guide_greet"), ("", "greet"), ("a-b.", "a-b.greet")]
)
def test_the_final_name_is_the_prefix_one_underscore_and_the_name(prefix: str, expected: str) -> None:
    assert prefix_name(tool(greet), prefix=prefix).name == expected


def test_a_tools_own_prefix_stands_in_place_of_the_default() -> None:
    assert prefix_name(tool(greet, prefix="mine"), prefix="guide").name == "mine_greet"


def test_an_empty_prefix_of_its_own_means_none() -> None:
    assert prefix_name(tool(greet, prefix=""), prefix="guide").name == "greet"


def test_a_name_that_grows_too_long_is_refused_with_a_way_out() -> None:
    with pytest.raises(DeclarationError, match=r"65 .*64.*`guide`.*`prefix=\"\"`"):
        prefix_name(tool(greet, name="x" * 59), prefix="guide")


async def test_a_proposed_call_names_the_tool_as_callers_know_it() -> None:
    names = {"greet": "guide_greet", "wave": "guide_wave"}
    made = prefix_name(tool(greet), prefix="guide", rename=lambda name: names.get(name, name))
    result = await call_tool(StaticToolset([made]), "guide_greet", {"name": "Ada"})
    assert result.next == {"tool": "guide_wave", "arguments": {}}


async def test_a_proposed_call_of_another_set_keeps_its_name() -> None:
    result = await call_tool(StaticToolset([prefix_name(tool(greet), prefix="guide")]), "guide_greet", {"name": "Ada"})
    assert result.next == {"tool": "wave", "arguments": {}}


async def test_the_corrected_call_of_an_argument_error_can_be_sent_as_it_is() -> None:
    toolset = StaticToolset([prefix_name(tool(greet), prefix="guide")])
    refused = await call_tool(toolset, "guide_greet", {"nam": "Ada"})
    assert refused.next == {"tool": "guide_greet", "arguments": {"name": "Ada"}}
    assert refused.next is not None
    healed = await call_tool(toolset, refused.next["tool"], refused.next["arguments"])
    assert healed.value == "Hello, Ada"


async def test_a_raised_error_without_a_proposal_passes_unchanged() -> None:
    async def fail() -> None:
        raise ToolError("no")

    result = await call_tool(StaticToolset([prefix_name(tool(fail), prefix="a")]), "a_fail")
    assert (result.error, result.next) == ("no", None)


@given(st.text("abz_", max_size=10), st.text("abz_", min_size=1, max_size=10))
def test_every_final_name_ends_with_the_name_and_has_exactly_one_joint(prefix: str, name: str) -> None:
    joined: Any = final_name(name, prefix)
    assert joined.endswith(name)
    assert joined in (name if not prefix else f"{prefix}_{name}", f"{prefix}{name}")
    assert not prefix or joined[len(prefix.rstrip("_"))] == "_"
