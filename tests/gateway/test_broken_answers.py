"""Answers that are not strict JSON, or no results: delivered, or refused at once with the reason."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.dictating import TRANSPORTS, Transport, answered, dictated, said
from tests.gateway.opened import Gateway
from tests.server.clients import client_of, text_of
from tests.support import about
from trysquare import ErrorCode
from trysquare.cli.gateway import outcome_of
from trysquare.gateway import ServerConfig

DEEP = b"[" * 100_000 + b"]" * 100_000
DELIVERED = {
    "half a character": (said(rb"abc \ud83d def"), "abc \ufffd def"),
    "the other half": (said(rb"\ude00"), "\ufffd"),
    "a whole one beside": (said(rb"\ud83d\ude00 \ud83d\ud83d\ude00"), "\U0001f600 \ufffd\U0001f600"),
    "no escape at all": (said(rb"\\ud83d \ud83d"), "\\ud83d \ufffd"),
    "bytes that are no UTF-8": (said(b"a\xffb"), "a\ufffdb"),
    "a tab in a text": (said(b"a\tb \\ud83d"), "a\tb \ufffd"),
    "double names": (answered('{"content":[],"content":[{"type":"text","text":"b","text":"c"}]}'), "c"),
    "an id with a point": (said("well").replace(b"ID", b"ID.0"), "well"),
    "an id as a text": (said("well").replace(b"ID", b'"ID"'), "well"),
    "nothing where something may be": (
        answered('{"content":[{"type":"text","text":"x","annotations":null}],"isError":null,"_meta":null}'),
        "x",
    ),
}
REFUSED = {
    "NaN": answered('{"content":[],"structuredContent":{"x":NaN}}'),
    "-Infinity before the id": b'{"result":{"content":[],"x":[-Infinity]},"id":ID,"jsonrpc":"2.0"}',
    "undefined": answered('{"content":[undefined]}'),
    "100,000 levels": answered(b'{"content":[],"structuredContent":{"x":' + DEEP + b"}}"),
    "300 levels": answered(b'{"content":[],"structuredContent":{"x":' + b"[" * 300 + b"]" * 300 + b"}}"),
    "cut off": b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"ab',
    "cut off before its id": b'{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"ab"}',
    "a comma too many": answered('{"content":[],}'),
    "5,000 digits": answered('{"content":[],"structuredContent":{"x":-' + "9" * 5000 + "}}"),
    "content is a text": answered('{"content":"text"}'),
    "content is an object": answered('{"content":{"type":"text","text":"x"}}'),
    "unknown block": answered('{"content":[{"type":"hologram","text":"x"}]}'),
    "block without a type": answered('{"content":[{"text":"x"}]}'),
    "block is a text": answered('{"content":["x"]}'),
    "text is a number": answered('{"content":[{"type":"text","text":5}]}'),
    "text is missing": answered('{"content":[{"type":"text"}]}'),
    "image without a type": answered('{"content":[{"type":"image","data":"aGk="}]}'),
    "resource without contents": answered('{"content":[{"type":"resource","resource":{"uri":"a://b"}}]}'),
    "link without a name": answered('{"content":[{"type":"resource_link","uri":"a://b"}]}'),
    "annotations are a text": answered('{"content":[{"type":"text","text":"x","annotations":"y"}]}'),
    "isError is a text": answered('{"content":[],"isError":"yes"}'),
    "_meta is a list": answered('{"content":[],"_meta":[]}'),
    "a list": answered("[]"),
    "null": answered("null"),
}


async def alone(gateway: Gateway) -> None:
    """Start the server and wait for its lists: a response without an id is only for the one pending request."""
    assert (await gateway.execute("odd", "plain")).success
    await gateway.toolset.wait_ready()


@pytest.mark.parametrize("case", DELIVERED)
async def test_an_answer_whose_meaning_is_plain_arrives(tmp_path: Path, case: str) -> None:
    sent, expected = DELIVERED[case]
    async with dictated(tmp_path, {"tools/call odd": sent}) as gateway:
        for mode in ("legacy", "2026-07-28"):
            async with client_of(gateway.toolset, mode) as client:
                result = await client.call_tool("mcp_odd", {"action": "execute", "tool_name": "odd"})
            assert not result.is_error
            assert text_of(result) == expected


@pytest.mark.parametrize("case", REFUSED)
async def test_an_answer_that_cannot_be_passed_on_is_refused_at_once(tmp_path: Path, case: str) -> None:
    async with dictated(tmp_path, {"tools/call odd": REFUSED[case]}) as gateway:
        await alone(gateway)
        for mode in ("legacy", "2026-07-28"):
            async with client_of(gateway.toolset, mode) as client:
                # A client that connects may have the lists read again.
                await gateway.toolset.wait_ready()
                result = await client.call_tool("mcp_odd", {"action": "execute", "tool_name": "odd"})
                plain = await client.call_tool("mcp_odd", {"action": "execute", "tool_name": "plain"})
            assert result.is_error
            assert (about(result)["code"], about(result)["outcome"]) == (ErrorCode.UPSTREAM_MALFORMED, "done")
            assert text_of(plain) == "plain"


@pytest.mark.parametrize("modern", [False, True], ids=["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_every_transport_tells_at_once(tmp_path: Path, transport: Transport, modern: bool) -> None:
    answers = {"tools/call odd": said(rb"\ud83d"), "tools/call plain": REFUSED["NaN"]}
    async with dictated(tmp_path, answers, transport=transport, modern=modern) as gateway:
        delivered = await gateway.execute("odd", "odd")
        refused = await gateway.execute("odd", "plain")
    assert delivered.success
    assert refused.error is not None
    assert refused.code == ErrorCode.UPSTREAM_MALFORMED


@pytest.mark.parametrize("number", ["1e999", "9" * 4000, "-0.0", "1E400"])
async def test_a_number_of_any_size_arrives(tmp_path: Path, number: str) -> None:
    answers = {"tools/call odd": answered('{"content":[],"structuredContent":{"x":' + number + "}}")}
    async with dictated(tmp_path, answers) as gateway:
        for mode in ("legacy", "2026-07-28"):
            async with client_of(gateway.toolset, mode) as client:
                result = await client.call_tool("mcp_odd", {"action": "execute", "tool_name": "odd"})
            assert not result.is_error
            assert result.structured_content is not None


async def test_any_json_arrives_as_structured_content_where_the_version_has_it(tmp_path: Path) -> None:
    values: dict[str, Any] = {"odd": [1, {"a": None}, []], "plain": "text"}
    answers = {
        f"tools/call {tool}": answered(
            json.dumps({"content": [{"type": "text", "text": "said"}], "structuredContent": value})
        )
        for tool, value in values.items()
    }
    async with dictated(tmp_path, answers) as gateway:
        for mode in ("legacy", "2026-07-28"):
            async with client_of(gateway.toolset, mode) as client:
                for tool, value in values.items():
                    result = await client.call_tool("mcp_odd", {"action": "execute", "tool_name": tool})
                    assert text_of(result) == "said"
                    # Before 2026-07-28 it had to be an object.
                    assert result.structured_content == (None if mode == "legacy" else value)


async def test_a_bad_definition_leaves_the_rest_of_a_server_usable(tmp_path: Path) -> None:
    def tool(name: str, description: str = "Well.", schema: str = '{"type":"object"}') -> str:
        return f'{{"name":"{name}","description":"{description}","inputSchema":{schema}}}'

    deep = '{"type":"object","properties":{"a":' + '{"items":' * 5000 + "{}" + "}" * 5001 + "}"
    shallow = '{"type":"object","properties":{"a":' + '{"items":' * 150 + "{}" + "}" * 151 + "}"
    tools = [
        tool("good"),
        tool("cut", r"\ud83d is half"),
        tool("nan", schema='{"type":"object","properties":{"a":{"default":NaN}}}'),
        tool("huge", schema='{"type":"object","properties":{"a":{"maximum":1e999}}}'),
        tool("deep", schema=deep),
        tool("rather_deep", schema=shallow),
    ]
    listed = answered('{"tools":[' + ",".join(tools) + "]}")
    async with dictated(tmp_path, {"tools/list": listed}) as gateway:
        entry = gateway.toolset.servers.entries["odd"]
        assert isinstance(entry, ServerConfig)
        outcome = await outcome_of(gateway.toolset.servers, entry)
        assert outcome["works"] is True
        assert outcome["tools"] == ["good", "cut"]
        assert [next(name for name in ("nan", "huge", "rather_deep", "deep") if f"`{name}`" in told)
                for told in outcome["left_out"]] == ["nan", "huge", "deep", "rather_deep"]  # fmt: skip


async def test_noise_is_counted_and_reported_and_harms_no_call(tmp_path: Path) -> None:
    noise = b'Starting up\n{ port: 8080, id: ID }\n{"id":ID,"level":"info",\n[debug] ready\n'
    async with dictated(tmp_path, {"tools/call odd": noise + said("well")}) as gateway:
        result = await gateway.execute("odd", "odd")
        assert result.success
        entry = gateway.toolset.servers.entries["odd"]
        assert isinstance(entry, ServerConfig)
        assert (await outcome_of(gateway.toolset.servers, entry))["noise"] == 4


async def test_a_question_that_cannot_be_read_is_refused_and_the_call_goes_on(tmp_path: Path) -> None:
    question = b'{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"maxTokens":NaN}}\n'
    told = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":ID,"progress":NaN}}\n'
    async with dictated(tmp_path, {"tools/call odd": question + told + said("well")}) as gateway:
        assert (await gateway.execute("odd", "odd")).success


async def test_a_refusal_without_an_id_ends_the_only_call(tmp_path: Path) -> None:
    refusal = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'
    async with dictated(tmp_path, {"tools/call odd": refusal}) as gateway:
        await alone(gateway)
        result = await gateway.execute("odd", "odd")
    assert result.error is not None
    assert result.code == ErrorCode.UPSTREAM_REFUSED


async def test_calls_parallel_to_a_broken_answer_are_not_touched(tmp_path: Path) -> None:
    async with dictated(tmp_path, {"tools/call odd": REFUSED["100,000 levels"]}) as gateway:
        calls = [gateway.execute("odd", name) for name in ("plain", "odd") * 5]
        results = await asyncio.gather(*calls)
    assert [result.success for result in results] == [True, False] * 5


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "1e999"])
async def test_what_json_cannot_say_is_not_sent(tmp_path: Path, value: Any) -> None:
    schema = '{"type":"object","properties":{"rows":{"type":"array","items":{"type":"number"}}}}'
    listed = answered('{"tools":[{"name":"odd","inputSchema":' + schema + "}]}")
    async with dictated(tmp_path, {"tools/list": listed}) as gateway:
        result = await gateway.execute("odd", "odd", rows=[1.5, value])
    assert result.error is not None
    assert result.code == ErrorCode.VALIDATION_INVALID_PARAM
    assert "rows[1]" in str(result.error)
