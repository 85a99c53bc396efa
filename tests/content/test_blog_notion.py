"""blog_notion against a stand-in that implements the documented requests of Notion."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from inline_snapshot import snapshot

from tests.content.notion_stand_in import NotionStandIn
from tests.content.test_notion_blocks import told
from tests.content.web_server import Answered, WebServer, answer_json, web_server
from trysquare import ErrorCode, Result, StaticToolset, Tool
from trysquare.content.config import NotionConfig
from trysquare.content.notion import blog_notion_tool
from trysquare.middleware.approvals import with_approvals
from trysquare.store import LazyDatabase, StoredApprovals
from trysquare.store.database import open_database
from trysquare.testing import ScriptedCaller, accept, approve, call, decline, make_context

POST = {"title": "Bees", "expanded_draft": "# Bees\n\nThey fly.", "request_key": "k1"}
LONG = "\n\n".join(f"Paragraph {n}." for n in range(250))


class Workspace:
    """The tool over a stand-in."""

    def __init__(self, notion: NotionStandIn, server: WebServer, folder: Path, **config: Any) -> None:
        self.notion, self.server = notion, server
        self._state = LazyDatabase(folder / "state.db")
        whole: dict[str, Any] = {"token": notion.token, "url": server.url, "page": notion.page, **config}
        self.tool: Tool = blog_notion_tool(NotionConfig(**whole), state=self._state)

    async def publish(self, **more: Any) -> Result[Any]:
        return await call(StaticToolset([self.tool]), "blog_notion", {**POST, **more}, human=approve())

    def close(self) -> None:
        self._state.close()


@asynccontextmanager
async def workspace(folder: Path, **config: Any) -> AsyncGenerator[Workspace]:
    notion = NotionStandIn()
    async with web_server(notion.answer) as server:
        opened = Workspace(notion, server, folder, **config)
        try:
            yield opened
        finally:
            opened.close()


async def test_a_page_carries_the_text_the_posts_and_the_tags(tmp_path: Path) -> None:
    async with workspace(tmp_path) as mine:
        result = await mine.publish(
            substack_tags=["bees", "garden, wild"],
            twitter_post="Bees fly.",
            linkedin_post="On bees.",
            bluesky_post="Bees!",
            key_takeaways=["They fly"],
            suggested_titles=["On Bees"],
            target_audience="Gardeners",
            read_time="1 minute",
            original_dictation="so bees right",
        )
        assert result.fields["output"] == "Published: https://notion.example/new-0"
        assert result.fields["data"] == {"page_id": "new-0", "url": "https://notion.example/new-0", "new": True}
        [page] = mine.notion.live
    assert page["properties"]["title"]["title"][0]["text"]["content"] == "Bees"
    assert [told(block) for block in page["children"]] == snapshot(
        [
            "heading_1: Bees",
            "paragraph: They fly.",
            "heading_2: Key takeaways",
            "bulleted_list_item: They fly",
            "heading_2: Other titles",
            "bulleted_list_item: On Bees",
            "heading_2: Twitter",
            "paragraph: Bees fly.",
            "heading_2: LinkedIn",
            "paragraph: On bees.",
            "heading_2: Bluesky",
            "paragraph: Bees!",
            "heading_2: About this text",
            "bulleted_list_item: Audience: Gardeners",
            "bulleted_list_item: Reading time: 1 minute",
            "bulleted_list_item: Tags: bees, garden wild",
            "heading_2: Original dictation",
            "paragraph: so bees right",
        ]
    )


async def test_a_data_source_gets_its_own_properties(tmp_path: Path) -> None:
    async with workspace(tmp_path, page=None, data_source="source-1") as mine:
        assert (await mine.publish(substack_tags=["a,b", "a b", "c" * 200])).success
        [page] = mine.notion.live
    assert page["properties"]["Name"]["title"][0]["text"]["content"] == "Bees"
    assert page["properties"]["Tags"] == {"multi_select": [{"name": "a b"}, {"name": "c" * 100}]}


async def test_a_long_text_is_sent_in_several_requests_and_whole(tmp_path: Path) -> None:
    async with workspace(tmp_path) as mine:
        assert (await mine.publish(expanded_draft=LONG)).success
        [page] = mine.notion.live
        assert [told(block) for block in page["children"]] == [f"paragraph: Paragraph {n}." for n in range(250)]
        assert [asked.method for asked in mine.server.requests] == ["POST", "PATCH", "PATCH"]


async def test_the_same_key_publishes_once(tmp_path: Path) -> None:
    async with workspace(tmp_path) as mine:
        first, second = await mine.publish(), await mine.publish()
        assert (first.fields["data"]["new"], second.fields["data"]["new"]) == (True, False)
        assert first.fields["data"]["url"] == second.fields["data"]["url"]
        assert len(mine.notion.pages) == 1


async def test_two_at_once_with_one_key_publish_once(tmp_path: Path) -> None:
    async with workspace(tmp_path) as mine:
        results: list[Result[Any]] = []

        async def publish() -> None:
            results.append(await mine.publish())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(publish)
            tasks.start_soon(publish)
        assert len(mine.notion.pages) == 1
        assert all(result.success or result.code == ErrorCode.STATE_CONFLICT for result in results)


async def test_a_key_is_for_one_text(tmp_path: Path) -> None:
    async with workspace(tmp_path) as mine:
        await mine.publish()
        other = await mine.publish(title="Wasps")
        assert (other.code, len(mine.notion.pages)) == (ErrorCode.STATE_CONFLICT, 1)


@pytest.mark.parametrize("answer", [None, Answered(status=502)])
async def test_where_nobody_knows_whether_it_was_published_it_is_not_published_again(
    tmp_path: Path, answer: Answered | None
) -> None:
    async with workspace(tmp_path) as mine:
        mine.notion.fail = {1: answer}
        lost, again = await mine.publish(), await mine.publish()
        assert (lost.code, again.code) == (ErrorCode.UPSTREAM_LOST, ErrorCode.STATE_CONFLICT)
        assert len(mine.server.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 503])
async def test_a_refusal_leaves_nothing_and_the_key_can_be_used_again(tmp_path: Path, status: int) -> None:
    async with workspace(tmp_path) as mine:
        mine.notion.fail = {1: answer_json({"message": "No."}, status)}
        refused = await mine.publish()
        assert (refused.success, mine.notion.pages) == (False, {})
        assert (await mine.publish()).fields["data"]["new"] is True


@pytest.mark.parametrize("broken", [2, 3])
async def test_a_page_that_cannot_be_finished_goes_to_the_trash(tmp_path: Path, broken: int) -> None:
    async with workspace(tmp_path) as mine:
        mine.notion.fail = {broken: answer_json({"message": "No."}, 400)}
        result = await mine.publish(expanded_draft=LONG)
        assert "Nothing was published" in (result.error or "")
        assert (len(mine.notion.pages), mine.notion.live) == (1, [])
        assert (await mine.publish(expanded_draft=LONG)).success
        assert len(mine.notion.live) == 1


async def test_a_page_that_cannot_even_be_taken_back_is_named_and_keeps_its_key(tmp_path: Path) -> None:
    async with workspace(tmp_path) as mine:
        no = answer_json({"message": "No."}, 400)
        mine.notion.fail = {2: no, 3: no}
        result = await mine.publish(expanded_draft=LONG)
        assert "https://notion.example/new-0 was created incompletely" in (result.error or "")
        assert (await mine.publish(expanded_draft=LONG)).code == ErrorCode.STATE_CONFLICT
        assert len(mine.notion.pages) == 1


async def test_nothing_is_published_unless_a_person_agrees(tmp_path: Path) -> None:
    database = open_database(tmp_path / "approvals.db")
    async with workspace(tmp_path) as mine:
        tools = StaticToolset([with_approvals(mine.tool, approvals=StoredApprovals(database))])
        silent = await call(tools, "blog_notion", POST, context=make_context())
        refusing = make_context(caller=ScriptedCaller([decline()]))
        refused = await call(tools, "blog_notion", POST, context=refusing)
        assert (silent.code, refused.code) == (ErrorCode.CONSENT_REQUIRED, ErrorCode.CONSENT_REFUSED)
        assert mine.server.requests == []
        caller = ScriptedCaller([accept(approve=True)])
        other = {**POST, "title": "Other"}
        assert (await call(tools, "blog_notion", other, context=make_context(caller=caller))).success
        assert "Publish “Other” to Notion?" in caller.questions[0].message
    database.close()


@pytest.mark.parametrize("config", [{"token": None}, {"page": None}])
async def test_without_configuration_nothing_is_sent(tmp_path: Path, config: dict[str, Any]) -> None:
    async with workspace(tmp_path, **config) as mine:
        result = await mine.publish()
        assert (result.code, mine.server.requests) == (ErrorCode.CONFIG_NOT_FOUND, [])


async def test_a_wrong_token_is_told_and_not_shown(tmp_path: Path) -> None:
    async with workspace(tmp_path, token="secret_wrong") as mine:
        result = await mine.publish()
        assert "content.notion_token" in (result.instruction or "")
        assert "secret_wrong" not in result.to_text()


@pytest.mark.parametrize("wrong", [{"request_key": ""}, {"expanded_draft": " \n "}, {"title": ""}, {"shout": True}])
async def test_bad_arguments_are_refused_before_anything_is_sent(tmp_path: Path, wrong: dict[str, Any]) -> None:
    async with workspace(tmp_path) as mine:
        result = await mine.publish(**wrong)
        assert (result.code or "").startswith("VALIDATION_")
        assert mine.server.requests == []
