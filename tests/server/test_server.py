"""A toolset as a server, through the SDK's own client in every mode."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
import pytest
from inline_snapshot import snapshot
from mcp.shared.exceptions import MCPError

from tests.server.clients import MODES, Person, client_of, text_of
from tests.server.sample import changing, declared
from tests.support import about
from trysquare import CallContext, CombinedToolset, Principal, Result, StaticToolset, Tools, tool
from trysquare.catalog import ProfileChoice
from trysquare.server import ServeOptions

eras = pytest.mark.parametrize("mode", MODES)


@eras
async def test_tools_are_listed_in_the_order_they_were_declared(mode: str) -> None:
    async with client_of(declared.toolset(), mode) as client:
        listed = await client.list_tools()
    assert [entry.name for entry in listed.tools] == [made.name for made in declared.toolset().tools()]


@eras
async def test_a_listed_tool_tells_what_it_is(mode: str) -> None:
    async with client_of(declared.toolset(), mode) as client:
        entries = {entry.name: entry for entry in (await client.list_tools()).tools}
    assert entries["add"].model_dump(by_alias=True, exclude_none=True) == snapshot(
        {
            "name": "add",
            "title": "Add numbers",
            "description": "Add two numbers.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "a": {"type": "integer", "description": "The first number"},
                    "b": {"type": "integer", "description": "The second number"},
                },
                "required": ["a", "b"],
                "additionalProperties": False,
            },
            "outputSchema": {
                "type": "object",
                "properties": {"result": {"type": "integer"}},
                "required": ["result"],
                "x-fastmcp-wrap-result": True,
            },
            "annotations": {"readOnlyHint": True, "idempotentHint": True},
            "_meta": {"trysquare/version": "1.2"},
        }
    )
    assert entries["refuse"].meta == {"trysquare/deprecated": "Use `add`."}


@eras
async def test_a_call_answers_with_the_value_and_guidance_beside_it(mode: str) -> None:
    async with client_of(declared.toolset(), mode) as client:
        result = await client.call_tool("add", {"a": 2, "b": 3})
    assert result.structured_content == {"result": 5}
    assert about(result) == {"instruction": "Tell the sum."}
    assert text_of(result) == "5\nInstruction: Tell the sum."
    assert not result.is_error


@eras
async def test_a_foreseen_failure_is_an_error_that_the_model_can_read(mode: str) -> None:
    async with client_of(declared.toolset(), mode) as client:
        result = await client.call_tool("refuse", {"reason": "late"})
    assert result.is_error
    assert text_of(result) == "Error TOOL_FAILED: No: late\nInstruction: Ask for something else."


@eras
async def test_a_wrong_argument_comes_back_with_the_corrected_call(mode: str) -> None:
    async with client_of(declared.toolset(), mode) as client:
        result = await client.call_tool("refuse", {"reson": "late"})
    assert result.is_error
    assert about(result)["next"] == {"tool": "refuse", "arguments": {"reason": "late"}}


@eras
async def test_an_unknown_tool_is_a_protocol_error_that_names_the_nearest(mode: str) -> None:
    async with client_of(declared.toolset(), mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("ad", {})
    assert caught.value.code == types.INVALID_PARAMS
    assert "`ad`" in caught.value.message
    assert "`add`" in caught.value.message


@eras
async def test_a_crash_tells_an_incident_and_nothing_of_its_cause(mode: str) -> None:
    async with client_of(declared.toolset(), mode) as client:
        result = await client.call_tool("crash", {})
        assert (await client.call_tool("add", {"a": 1, "b": 1})).structured_content is not None
    assert result.is_error
    assert "incident" in text_of(result)
    assert "secret" not in str(result)


@eras
async def test_pieces_that_are_not_text_arrive_as_content_blocks(mode: str) -> None:
    async with client_of(declared.toolset(), mode) as client:
        result = await client.call_tool("pieces", {})
    assert [block.type for block in result.content] == ["image", "audio", "resource", "resource_link"]


@eras
async def test_half_characters_in_an_answer_are_replaced(mode: str) -> None:
    async with client_of(declared.toolset(), mode) as client:
        result = await client.call_tool("filename", {})
    text = text_of(result)
    assert text.encode().startswith(b"caf")
    assert result.structured_content == {"result": text}


@eras
async def test_progress_reaches_the_client(mode: str) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with client_of(declared.toolset(), mode) as client:
        await client.call_tool("steps", {}, progress_callback=note)
    assert seen == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


@eras
async def test_cancelling_a_call_cancels_the_tool(mode: str) -> None:
    started, cancelled = anyio.Event(), anyio.Event()

    async def hang() -> Result[str]:
        """Hang."""
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return Result.ok("never")

    async with client_of(StaticToolset([tool(hang)]), mode) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "hang", {})
        with anyio.fail_after(5):
            await started.wait()
            tasks.cancel_scope.cancel()
    with anyio.fail_after(5):
        await cancelled.wait()


@eras
async def test_a_call_that_takes_longer_than_the_server_allows_is_stopped(mode: str) -> None:
    async with client_of(declared.toolset(), mode, ServeOptions(call_timeout=0.02)) as client:
        result = await client.call_tool("slow", {"seconds": 60})
    assert result.is_error
    assert about(result)["code"] == "TOOL_TIMEOUT"


@eras
async def test_the_context_tells_who_calls_through_which_client(mode: str) -> None:
    options = ServeOptions(principal=Principal(subject="ada"))
    info = types.Implementation(name="the-client", version="3")
    async with client_of(declared.toolset(), mode, options, client_info=info) as client:
        result = await client.call_tool("whoami", {})
    assert result.structured_content is not None
    assert result.structured_content == {"subject": "ada", "client": "the-client", "asks": False}


@eras
async def test_handles_are_shared_by_all_calls(mode: str) -> None:
    async def keep(context: CallContext) -> Result[str]:
        """Keep a value."""
        return Result.ok(context.handles.put("kept", principal=context.principal.subject))

    async def fetch(handle: str, context: CallContext) -> Result[str]:
        """Fetch it."""
        return Result.ok(context.handles.get(handle, principal=context.principal.subject))

    async with client_of(StaticToolset([tool(keep), tool(fetch)]), mode) as client:
        kept: Any = (await client.call_tool("keep", {})).structured_content
        fetched = await client.call_tool("fetch", {"handle": kept["result"]})
    assert text_of(fetched) == "kept"


@eras
async def test_a_profile_changes_what_is_listed_and_not_what_can_be_called(mode: str) -> None:
    async def rare() -> Result[str]:
        """Rarely needed."""
        return Result.ok("called")

    only_full = tool(rare, profiles=frozenset({"full"}))
    options = ServeOptions(profiles=ProfileChoice(default="levels"))
    async with client_of(StaticToolset([only_full]), mode, options) as client:
        assert (await client.list_tools()).tools == []
        assert text_of(await client.call_tool("rare", {})) == "called"


@eras
async def test_lists_come_in_pages(mode: str) -> None:
    async with client_of(declared.toolset(), mode, ServeOptions(page_size=5)) as client:
        names: list[str] = []
        cursor = None
        while True:
            page = await client.list_tools(cursor=cursor)
            assert len(page.tools) <= 5
            names += [entry.name for entry in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
    assert names == [made.name for made in declared.toolset().tools()]


@eras
@pytest.mark.parametrize("cursor", ["no such cursor", "YWRkZA", "", "é", "\x00"])
async def test_a_wrong_cursor_is_refused(mode: str, cursor: str) -> None:
    async with client_of(declared.toolset(), mode) as client:
        for ask in (client.list_tools, client.list_prompts, client.list_resources, client.list_resource_templates):
            with pytest.raises(MCPError) as caught:
                await ask(cursor=cursor)
            assert caught.value.code == types.INVALID_PARAMS
            assert "cursor" in caught.value.message


async def test_lists_of_the_new_era_may_be_kept_by_clients() -> None:
    async with client_of(declared.toolset(), "2026-07-28", ServeOptions(list_ttl_ms=1234)) as client:
        tools = await client.list_tools()
        prompts = await client.list_prompts()
        notes = await client.read_resource("test://notes")
    assert (tools.ttl_ms, tools.cache_scope) == (1234, "public")
    assert (prompts.ttl_ms, prompts.cache_scope) == (1234, "public")
    assert (notes.ttl_ms, notes.cache_scope) == (0, "private")


async def test_a_client_that_shakes_hands_learns_what_the_server_can() -> None:
    async with client_of(declared.toolset(), "legacy", ServeOptions(name="mine", instructions="Be kind.")) as client:
        assert client.server_info is not None
        assert client.server_info.name == "mine"
        assert client.instructions == "Be kind."
        told = client.server_capabilities.model_dump(by_alias=True, exclude_none=True)
    assert told == snapshot(
        {
            "logging": {},
            "prompts": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "tools": {"listChanged": True},
            "completions": {},
        }
    )


async def test_a_client_that_discovers_learns_what_the_server_can() -> None:
    async with client_of(declared.toolset(), "auto") as client:
        told = client.server_capabilities.model_dump(by_alias=True, exclude_none=True)
        assert client.protocol_version == "2026-07-28"
    assert told["tools"] == {"listChanged": True}
    assert told["resources"] == {"subscribe": True, "listChanged": True}


@eras
async def test_many_calls_at_once_are_all_answered(mode: str) -> None:
    sums: dict[int, Any] = {}
    async with client_of(declared.toolset(), mode) as client, anyio.create_task_group() as tasks:

        async def call(number: int) -> None:
            sums[number] = (await client.call_tool("add", {"a": number, "b": 1})).structured_content

        for number in range(100):
            tasks.start_soon(call, number)
    assert {number: content["result"] for number, content in sums.items()} == {n: n + 1 for n in range(100)}


async def test_a_client_that_cannot_ask_gets_a_failure_that_says_so() -> None:
    async with client_of(declared.toolset(), "legacy") as client:
        result = await client.call_tool("converse", {"topic": "rain"})
    assert result.is_error
    assert about(result)["code"] == "CAPABILITY_NOT_SUPPORTED"


async def test_a_client_that_cannot_ask_gets_the_error_that_2026_07_28_has_for_it() -> None:
    async with client_of(declared.toolset(), "2026-07-28") as client:
        with pytest.raises(MCPError) as raised:
            await client.call_tool("converse", {"topic": "rain"})
    assert raised.value.error.code == -32021
    assert raised.value.error.data["requiredCapabilities"] == {"elicitation": {}}


@eras
async def test_two_questions_in_one_call_are_asked_one_after_the_other(mode: str) -> None:
    person = Person("wet", "cold")
    async with client_of(declared.toolset(), mode, elicitation_callback=person) as client:
        result = await client.call_tool("converse", {"topic": "rain"})
    assert text_of(result) == "wet cold"
    assert person.asked == ["First word about rain?", "A word after wet?"]


@eras
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_the_user_may_refuse_to_answer(mode: str, action: str) -> None:
    async with client_of(declared.toolset(), mode, elicitation_callback=Person(action=action)) as client:
        result = await client.call_tool("converse", {"topic": "rain"})
    assert result.is_error
    assert f"the person chose to {action}" in text_of(result)


@eras
async def test_a_toolset_that_changes_is_listed_anew(mode: str) -> None:
    toolset = changing()
    async with client_of(toolset, mode, ServeOptions(list_ttl_ms=0)) as client:
        before = await client.list_tools()
        toolset.replace(tools=toolset.tools()[:2])
        after = await client.list_tools()
    assert len(before.tools) > 2
    assert [entry.name for entry in after.tools] == ["add", "refuse"]


def test_a_short_state_key_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 32 bytes"):
        ServeOptions(state_keys=(b"short",))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_server_is_called_as_its_tools_say(mode: str) -> None:
    described = Tools("weather", instructions="Ask for a city.", version="2.1", title="Weather").toolset()
    async with client_of(described, mode) as client:
        assert client.server_info is not None
        assert client.server_info.model_dump(include={"name", "title", "version"}) == {
            "name": "weather", "title": "Weather", "version": "2.1"
        }  # fmt: skip
        assert client.instructions == "Ask for a city."
    async with client_of(CombinedToolset([described]), mode, ServeOptions(name="mine")) as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("mine", "2.1")
