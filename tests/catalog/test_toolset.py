"""catalogued: tools are found, called by name and read about, however little is listed."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from inline_snapshot import snapshot

from tests.support import quoted_names, raises_code
from trysquare import (
    Answer,
    CallContext,
    Consent,
    DeclarationError,
    Declarations,
    DynamicToolset,
    ErrorCode,
    Result,
    StaticToolset,
    ToolError,
    Toolset,
    call_tool,
    tool,
)
from trysquare.catalog import with_catalog
from trysquare.core.context import ElicitRequest
from trysquare.testing import make_context

tools = Declarations()
seen: list[CallContext] = []


@tools.declare(use_when="somebody arrives", toolset="guide")
async def greet(name: str, context: CallContext) -> Result[str]:
    """Greet a person by name.

    Args:
        name: Who to greet
    """
    seen.append(context)
    return Result[str].ok(f"Hello, {name}", next={"tool": "wave", "arguments": {"hand": "left"}})


@tools.declare(consent=Consent(question="Wave?"))
def wave(hand: str) -> str:
    """Wave with a hand.

    Args:
        hand: left or right
    """
    return f"waved with {hand}"


@tools.declare
async def collapse() -> str:
    """Fall over."""
    raise RuntimeError("a secret detail")


@tools.declare(toolset="vault")
async def open_vault() -> str:
    """Open the vault with the gold."""
    return "gold"


TOOLSET = with_catalog(tools.toolset())


async def _find(query: str, **arguments: Any) -> Result[Any]:
    return await call_tool(TOOLSET, "find_tools", {"query": query, **arguments})


async def _matches(query: str, toolset: Toolset = TOOLSET, **arguments: Any) -> list[dict[str, Any]]:
    found = await call_tool(toolset, "find_tools", {"query": query, **arguments})
    assert found.value is not None
    return list(found.value)


async def _call(name: str, arguments: Any = None, context: CallContext | None = None) -> Result[Any]:
    return await call_tool(TOOLSET, "call_tool", {"name": name, "arguments": arguments or {}}, context)


async def _read(uri: str, context: CallContext | None = None, toolset: Toolset = TOOLSET) -> str:
    resource = toolset.find_resource(uri)
    assert resource is not None
    [contents] = await resource.read(uri, {}, context or CallContext())
    assert contents.mime_type == "text/markdown"
    assert contents.text is not None
    return contents.text


async def test_a_found_tool_comes_with_all_that_a_call_needs() -> None:
    found = await call_tool(TOOLSET, "find_tools", {"query": "greet a person", "limit": 1})
    assert "call_tool" in str(found.instruction)
    assert json.loads(found.to_json_str())["value"] == snapshot(
        [
            {
                "name": "greet",
                "server": "guide",
                "fit": "likely",
                "signature": "greet(name: string)",
                "description": """\
Greet a person by name.
Use when: somebody arrives.\
""",
                "input_schema": {
                    "type": "object",
                    "properties": {"name": {"type": "string", "description": "Who to greet"}},
                    "required": ["name"],
                    "additionalProperties": False,
                },
            }
        ]
    )


async def test_less_or_more_is_told_on_request() -> None:
    [short] = await _matches("wave", detail="names", limit=1)
    assert set(short) == {"name", "server", "fit", "signature", "description"}
    assert short["signature"] == "wave(hand: string)"
    assert short["name"] == "wave"
    assert short["description"].startswith("Wave with a hand. REQUIRES EXPLICIT USER INSTRUCTION")
    [full] = await _matches("wave", detail="full", limit=1)
    assert full["description"].startswith("# wave\n\n## Description")


async def test_a_search_always_finds_something_while_there_are_tools() -> None:
    assert len(await _matches("quantum entanglement")) == len(tools.toolset().tools())
    assert await _matches("quantum entanglement", with_catalog(StaticToolset([]))) == []


async def test_each_match_is_likely_or_unsure_and_all_unsure_is_said() -> None:
    sure = await _find("wave with a hand")
    assert (sure.value[0]["name"], sure.value[0]["fit"], sure.message) == ("wave", "likely", None)
    unsure = await _find("quantum entanglement")
    assert {one["fit"] for one in unsure.value} == {"unsure"}
    assert "nearest" in str(unsure.message)
    assert "one thing at a time" in str(unsure.instruction)


async def test_a_search_can_be_narrowed_to_a_server_and_to_what_changes_nothing() -> None:
    assert [one["name"] for one in await _matches("fall over", server="GUIDE")] == ["greet"]
    assert await _matches("fall over", read_only=True) == []
    refused = await _find("fall over", server="guid")
    assert refused.code == ErrorCode.VALIDATION_INVALID_PARAM
    assert "`guide`" in str(refused.error)


async def test_the_limit_is_kept_and_checked() -> None:
    assert len(await _matches("person hand vault wave greet", limit=1)) <= 1
    refused = await _find("wave", limit=0)
    assert refused.code == ErrorCode.VALIDATION_INVALID_PARAM
    assert refused.next == {"tool": "find_tools", "arguments": {"query": "wave", "limit": 1}}
    assert (await _find("wave", limit=99)).code == ErrorCode.VALIDATION_INVALID_PARAM
    assert (await _find("wave " * 300)).code == ErrorCode.VALIDATION_INVALID_PARAM


async def test_a_tool_is_called_with_the_same_context() -> None:
    context = CallContext(request_id="seven")
    result = await _call("greet", {"name": "Ada"}, context)
    assert result.value == "Hello, Ada"
    assert seen[-1].caller is context.caller
    assert seen[-1].request_id == "seven"


async def test_the_next_call_goes_the_same_way() -> None:
    result = await _call("greet", {"name": "Ada"})
    assert result.next == {"tool": "call_tool", "arguments": {"name": "wave", "arguments": {"hand": "left"}}}


async def test_a_wrong_argument_is_healed_by_the_inner_tool() -> None:
    refused = await _call("greet", {"nme": "Ada"})
    assert refused.code == ErrorCode.VALIDATION_UNKNOWN_PARAM
    assert quoted_names(refused.error) == ["nme", "name"]
    assert refused.next is not None
    assert refused.next == {"tool": "call_tool", "arguments": {"name": "greet", "arguments": {"name": "Ada"}}}
    healed = await call_tool(TOOLSET, refused.next["tool"], refused.next["arguments"])
    assert healed.value == "Hello, Ada"


async def test_an_unknown_tool_is_answered_with_the_nearest() -> None:
    refused = await _call("gret")
    assert refused.code == ErrorCode.TOOL_NOT_FOUND
    assert quoted_names(refused.error) == ["gret", "greet"]


@pytest.mark.parametrize("name", ["call_tool", "find_tools"])
async def test_the_catalog_does_not_call_itself(name: str) -> None:
    refused = await _call(name, {"name": "greet", "arguments": {"name": "Ada"}})
    assert not refused.success
    assert quoted_names(refused.error) == [name, "call_tool"]


async def test_a_crash_tells_no_details() -> None:
    crashed = await _call("collapse")
    assert crashed.code == ErrorCode.INTERNAL_ERROR
    assert "secret" not in crashed.to_json_str()


async def test_arguments_that_are_no_object_are_refused() -> None:
    refused = await call_tool(TOOLSET, "call_tool", {"name": "greet", "arguments": "Ada"})
    assert refused.code == ErrorCode.VALIDATION_INVALID_PARAM


async def test_cancelling_reaches_the_inner_tool() -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def wait_forever() -> str:
        """Wait."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    toolset = with_catalog(StaticToolset([tool(wait_forever)]))
    running = asyncio.create_task(call_tool(toolset, "call_tool", {"name": "wait_forever"}))
    async with asyncio.timeout(10):
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert ended.is_set()


async def test_a_question_of_the_inner_tool_reaches_the_person() -> None:
    asked: list[str] = []

    class Person:
        async def progress(self, done: float, total: float | None, message: str | None) -> None: ...

        async def log(self, level: str, message: str) -> None: ...

        def can_ask(self) -> bool:
            return True

        async def ask(self, question: ElicitRequest) -> Answer:
            asked.append(question.message)
            return Answer(action="accept", content={})

    async def ask_first(context: CallContext) -> str:
        """Ask first."""
        return (await context.ask("May I?", {"type": "object", "properties": {}})).action

    toolset = with_catalog(StaticToolset([tool(ask_first)]))
    person: Any = Person()
    result = await call_tool(toolset, "call_tool", {"name": "ask_first"}, CallContext(caller=person))
    assert result.value == "accept"
    assert asked == ["May I?"]


async def test_a_principal_finds_calls_and_reads_only_what_it_may_use() -> None:
    visitor = make_context(principal="visitor", scopes={"guide"})
    found = await call_tool(TOOLSET, "find_tools", {"query": "open the vault with gold"}, visitor)
    assert found.value is not None
    assert "open_vault" not in [one["name"] for one in found.value]
    refused = await _call("open_vault", context=visitor)
    assert refused.code == ErrorCode.TOOL_NOT_FOUND
    assert "vault" not in (await _read("trysquare://tools", visitor))
    with raises_code(ErrorCode.TOOL_NOT_FOUND):
        await _read("trysquare://tools/open_vault", visitor)
    assert (await _call("greet", {"name": "Ada"}, visitor)).success


async def test_the_list_of_tools_can_be_read() -> None:
    entries = re.findall(
        r"^- \[(\w+)\]\(trysquare://tools/(\w+)\): (\w+)", await _read("trysquare://tools"), re.MULTILINE
    )
    assert entries == [
        ("greet", "greet", "Greet"),
        ("wave", "wave", "Wave"),
        ("collapse", "collapse", "Fall"),
        ("open_vault", "open_vault", "Open"),
    ]


async def test_the_page_of_a_tool_can_be_read() -> None:
    assert (await _read("trysquare://tools/greet")).startswith("# greet\n\n## Description\n\nGreet a person by name.")


async def test_the_page_of_an_unknown_tool_names_the_nearest() -> None:
    with pytest.raises(ToolError, match=r"`greeet`.*`greet`"):
        await _read("trysquare://tools/greeet")


async def test_names_are_completed() -> None:
    [template] = TOOLSET.templates()
    assert template.complete is not None
    assert await template.complete("name", "gr", {}) == ["greet"]
    assert await template.complete("name", "VE", {}) == ["wave"]
    assert await template.complete("name", "", {}) == ["collapse", "greet", "open_vault", "wave"]


async def test_the_search_follows_a_changing_toolset() -> None:
    changing = DynamicToolset(tools.toolset().tools())
    catalog = with_catalog(changing)

    async def sing_song() -> str:
        """Sing a song."""
        return "la"

    assert "sing_song" not in [one["name"] for one in await _matches("song", catalog)]
    changing.replace(tools=[tool(sing_song)])
    [found] = await _matches("song", catalog)
    assert found["name"] == "sing_song"
    assert "greet" not in [one["name"] for one in await _matches("greet", catalog)]
    assert "sing_song" in await _read("trysquare://tools", toolset=catalog)


def test_those_who_listen_are_told_that_the_list_of_tools_changed() -> None:
    changing = DynamicToolset(tools.toolset().tools())
    heard: list[str] = []
    unsubscribe = with_catalog(changing).subscribe(heard.append)
    changing.replace(tools=[])
    changing.notify("prompts")
    assert heard == ["tools", "trysquare://tools", "prompts"]
    unsubscribe()
    changing.notify("tools")
    assert len(heard) == 3


def test_a_tool_is_found_by_name_without_listing_the_others() -> None:
    class Unlistable(StaticToolset):
        listings = 0

        def tools(self) -> Any:
            self.listings += 1
            return super().tools()

    inner = Unlistable(tools.toolset().tools())
    catalog = with_catalog(inner)
    before = inner.listings
    assert catalog.find("greet") is not None
    assert catalog.find("call_tool") is not None
    assert inner.listings == before


def test_cataloguing_twice_is_refused_with_a_hint() -> None:
    with pytest.raises(DeclarationError, match="`find_tools`"):
        with_catalog(TOOLSET)
