"""The example of a team's guide works as a team gets it: copied, served over stdio, read by a real MCP client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mcp_types
import pytest
from mcp import Client

from tests.docs.pages import ROOT
from tests.docs.test_examples import ERAS, called, copied, served


async def fetched(client: Client, expression: str, **arguments: Any) -> dict[str, Any]:
    return await called(client, "guide_get_content", expression=expression, **arguments)


def ids(answer: dict[str, Any]) -> list[str]:
    return [document["id"] for document in answer["documents"]]


async def prompted(client: Client, *words: str) -> str:
    prompt = await client.get_prompt("guide", {f"arg{number}": word for number, word in enumerate(words, start=1)})
    [message] = prompt.messages
    assert isinstance(message.content, mcp_types.TextContent)
    return message.content.text


@pytest.mark.parametrize("era", ERAS)
async def test_a_flag_and_a_preset_change_what_the_example_delivers(tmp_path: Path, era: str) -> None:
    async with served(copied("guide", tmp_path), era=era) as client:
        before = await fetched(client, "checklists/pull-request,policies/dep*")
        assert ids(before) == ["checklists/pull-request", "policies/dependencies"]
        assert "Somebody who did not write it has approved it." in before["value"]
        assert "## Secrets" in before["value"], "the template includes a policy"
        assert before["project"] == "guide"

        await called(client, "guide_set_project_flag", name="preset", value="release-week")
        after = await fetched(client, "checklists/pull-request,policies/dep*")
        assert ids(after) == ["checklists/pull-request", "policies/dependencies-frozen"]
        assert "Two people have approved it" in after["value"]
        assert "conflicts" not in after, "of two documents on one topic a flag shows one"


async def test_every_collection_and_preset_of_the_example_names_content(tmp_path: Path) -> None:
    async with served(copied("guide", tmp_path), era="2026-07-28") as client:
        collections = (await called(client, "guide_list_content", kind="collections"))["value"]
        assert [each["name"] for each in collections] == ["backend", "frontend", "before-merge", "newcomer"]
        for collection in collections:
            answer = await fetched(client, collection["name"])
            assert "warnings" not in answer, collection["name"]
            assert len(ids(answer)) == len(set(ids(answer)))
        assert "policies/on-call" not in ids(await fetched(client, "newcomer")), "drafts are left out"
        presets = (await called(client, "guide_list_content", kind="presets"))["value"]
        for preset in presets.values():
            for expression in preset.get("expressions", []):
                assert ids(await fetched(client, expression))


async def test_the_examples_content_is_sent_once_within_a_budget(tmp_path: Path) -> None:
    async with served(copied("guide", tmp_path), era="2026-07-28") as client:
        small = await fetched(client, "backend", budget=400)
        assert ids(small)
        assert small["left_out"]
        again = await fetched(client, "backend", holding=small["holding"])
        assert again["unchanged"] == ids(small)
        assert set(ids(again)) == {each["id"] for each in small["left_out"]}


async def test_the_examples_commands_prompts_resources_and_skills_are_served(tmp_path: Path) -> None:
    async with served(copied("guide", tmp_path), era="2026-07-28") as client:
        assert "Review src/app.py." in await prompted(client, ":review", "--strict", "src/app.py")
        assert "blocks the merge" in await prompted(client, ":review", "--strict")
        assert "Make a plan for: faster search." in await prompted(client, ":plan", "faster", "search")
        assert (await prompted(client, "lang/python")).startswith("# Python")
        uris = {str(each.uri) for each in (await client.list_resources()).resources}
        assert {"guide://guide/lang/python", "skill://guide/checklists/SKILL.md"} <= uris
        [contents] = (await client.read_resource("guide://guide/lang/sql")).contents
        assert isinstance(contents, mcp_types.TextResourceContents)
        assert contents.text.startswith("# SQL")


def test_every_document_of_the_example_says_what_it_is() -> None:
    documents = sorted((ROOT / "examples" / "guide" / "docs" / "guide").rglob("*.md"))
    assert len(documents) > 20
    for document in documents:
        assert document.read_text(encoding="utf-8").startswith("---\n"), document
