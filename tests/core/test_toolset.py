"""Toolsets: fixed, combined, changing; names that collide are an error with a hint."""

from __future__ import annotations

from typing import Any

import pytest

from trysquare import (
    CombinedToolset,
    DeclarationError,
    DynamicToolset,
    Prompt,
    Resource,
    ResourceTemplate,
    StaticToolset,
    Tool,
    tool,
)


def named(name: str) -> Tool:
    return tool(lambda: name, name=name)


def prompt_named(name: str) -> Prompt:
    async def render(arguments: Any, context: Any) -> list[Any]:
        return []

    return Prompt(name=name, description=name, arguments=(), render=render)


async def read_nothing(uri: str, values: Any, context: Any) -> list[Any]:
    return []


def resource_at(uri: str) -> Resource:
    return Resource(uri=uri, name=uri, read=read_nothing)


class Unlistable(StaticToolset):
    """A toolset that may be searched by name but not listed."""

    forbidden = False

    def tools(self) -> Any:
        assert not self.forbidden, "a call must not list the tools"
        return super().tools()


def test_a_fixed_toolset_lists_and_finds() -> None:
    toolset = StaticToolset(
        [named("a"), named("b")],
        prompts=[prompt_named("p")],
        resources=[resource_at("r://1")],
        templates=[ResourceTemplate(uri_template="t://{x}", name="t", read=read_nothing)],
    )
    assert [each.name for each in toolset.tools()] == ["a", "b"]
    assert toolset.find("b") is toolset.tools()[1]
    assert toolset.find("c") is None
    assert toolset.find_prompt("p") is toolset.prompts()[0]
    assert toolset.find_resource("r://1") is toolset.resources()[0]
    found = toolset.find_resource("t://7")
    assert found is not None
    assert found.uri == "t://7"
    assert toolset.find_resource("u://7") is None
    toolset.subscribe(lambda change: None)()


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ({"tools": [named("x"), named("x")]}, "tools"),
        ({"prompts": [prompt_named("x"), prompt_named("x")]}, "prompts"),
        ({"resources": [resource_at("x"), resource_at("x")]}, "resources"),
    ],
)
def test_two_of_one_name_are_refused_with_a_hint(parts: dict[str, Any], kind: str) -> None:
    said = f"{kind} .*`x`.* prefix"
    with pytest.raises(DeclarationError, match=said):
        StaticToolset(**parts)
    single: dict[str, Any] = {key: [value] for key, [value, _] in parts.items()}
    halves = [StaticToolset(**single) for _ in range(2)]
    with pytest.raises(DeclarationError, match=said):
        CombinedToolset(halves)


def test_a_combined_toolset_lists_all_and_finds_without_listing() -> None:
    first = Unlistable([named("a")], prompts=[prompt_named("p")], resources=[resource_at("r://1")])
    second = Unlistable([named("b")], templates=[ResourceTemplate(uri_template="t://{x}", name="t", read=read_nothing)])
    whole = CombinedToolset([first, second])
    assert [each.name for each in whole.tools()] == ["a", "b"]
    assert [each.name for each in whole.prompts()] == ["p"]
    assert len(whole.templates()) == 1
    first.forbidden = second.forbidden = True
    assert whole.find("b") is not None
    assert whole.find("c") is None
    assert whole.find_prompt("p") is not None
    assert whole.find_resource("t://1") is not None
    assert whole.find_resource("r://1") is not None


def test_a_changing_toolset_replaces_its_parts_and_tells_its_listeners() -> None:
    toolset = DynamicToolset([named("a")], prompts=[prompt_named("p")])
    heard: list[str] = []
    stop = toolset.subscribe(heard.append)
    toolset.replace(tools=[named("b")])
    assert [each.name for each in toolset.tools()] == ["b"]
    assert [each.name for each in toolset.prompts()] == ["p"]
    toolset.replace(prompts=[], resources=[resource_at("r://1")])
    toolset.replace(templates=[ResourceTemplate(uri_template="t://{x}", name="t", read=read_nothing)])
    toolset.replace(resources=[])
    toolset.notify("r://1")
    assert heard == ["tools", "prompts", "resources", "resources", "resources", "r://1"]
    assert (len(toolset.prompts()), len(toolset.resources()), len(toolset.templates())) == (0, 0, 1)
    stop()
    stop()
    toolset.replace(tools=[])
    assert len(heard) == 6


def test_a_replacement_with_colliding_names_changes_nothing() -> None:
    toolset = DynamicToolset([named("a")], prompts=[prompt_named("p")])
    heard: list[str] = []
    toolset.subscribe(heard.append)
    with pytest.raises(DeclarationError):
        toolset.replace(tools=[named("b")], prompts=[prompt_named("q"), prompt_named("q")])
    assert [each.name for each in toolset.tools()] == ["a"]
    assert heard == []


def test_listeners_of_a_combined_toolset_hear_every_part_until_they_stop() -> None:
    parts = [DynamicToolset(), DynamicToolset()]
    heard: list[str] = []
    stop = CombinedToolset(parts).subscribe(heard.append)
    parts[0].notify("tools")
    parts[1].notify("prompts")
    stop()
    parts[0].notify("tools")
    assert heard == ["tools", "prompts"]


def test_the_same_listener_may_subscribe_twice() -> None:
    toolset = DynamicToolset()
    heard: list[str] = []
    first, _ = toolset.subscribe(heard.append), toolset.subscribe(heard.append)
    first()
    toolset.notify("tools")
    assert heard == ["tools"]
