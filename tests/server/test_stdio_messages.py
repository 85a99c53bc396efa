"""Messages over one pair of pipes: batches, cancellation, odd parameters, and a client that does not read."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.server.clients import MODERN_META
from tests.server.sample import changing
from trysquare import CallContext, DynamicToolset, StaticToolset, Toolset, tool
from trysquare.server.stdio import serve_descriptors

SECONDS = 20
JsonObject = dict[str, Any]


class Client:
    """The other end of a server's input and output."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, *messages: Any) -> None:
        lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in messages]
        self.writer.write(b"".join(line + b"\n" for line in lines))
        await self.writer.drain()

    async def read(self) -> Any:
        async with asyncio.timeout(SECONDS):
            return json.loads(await self.reader.readline())

    async def ask(self, method: str, request_id: int | str, **params: Any) -> Any:
        await self.send(request(method, request_id, **params))
        return await self.read()

    async def open(self, version: str, **hello: Any) -> Any:
        """Shake hands."""
        client = {"name": "raw", "version": "1"}
        params: JsonObject = {"protocolVersion": version, "capabilities": {}, "clientInfo": client, **hello}
        opened = await self.ask("initialize", 0, **params)
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return opened


def request(method: str, request_id: int | str, **params: Any) -> JsonObject:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def call(name: str, request_id: int | str, **arguments: Any) -> JsonObject:
    return request("tools/call", request_id, name=name, arguments=arguments, _meta={"progressToken": request_id})


def cancelled(request_id: int | str) -> JsonObject:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}


@asynccontextmanager
async def serving(toolset: Toolset) -> AsyncGenerator[Client]:
    """A server of the toolset in this process, over a pair of sockets."""
    ours, theirs = socket.socketpair()
    with theirs:
        number = theirs.fileno()
        server = asyncio.create_task(serve_descriptors(toolset, None, read_from=number, write_to=number, grace=1))
        reader, writer = await asyncio.open_connection(sock=ours, limit=64 * 1024 * 1024)
        try:
            yield Client(reader, writer)
        finally:
            writer.close()
            async with asyncio.timeout(SECONDS):
                await server


class Tools:
    """Tools that a test holds up."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.stopped = asyncio.Event()
        self.release = asyncio.Event()
        self.toolset = DynamicToolset([tool(self.add), tool(self.hold), tool(self.stubborn), tool(self.flood)])
        self.sent = 0

    async def add(self, a: int, b: int) -> int:
        """Add."""
        return a + b

    async def hold(self) -> str:
        """Wait for the test."""
        self.started.set()
        try:
            await self.release.wait()
        finally:
            self.stopped.set()
        return "released"

    async def stubborn(self) -> str:
        """Go on in spite of a cancellation."""
        self.started.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.stopped.set()
        return "unwanted"

    async def flood(self, context: CallContext, logs: bool) -> str:
        """Report without end."""
        try:
            while True:
                await (context.log("x" * 10_000) if logs else context.progress(self.sent, None, "x" * 10_000))
                self.sent += 1
        finally:
            self.stopped.set()


def value_of(answer: Any) -> Any:
    return answer["result"]["structuredContent"]["result"]


def by_id(answers: list[Any]) -> dict[Any, Any]:
    return {answer["id"]: answer for answer in answers}


async def test_a_batch_is_answered_as_one_with_each_of_its_requests() -> None:
    async with serving(Tools().toolset) as client:
        await client.open("2025-03-26")
        await client.send(
            [
                request("ping", 1),
                {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
                3,
                call("add", "two", a=1, b=2),
                {"jsonrpc": "2.0", "id": 4, "method": 3},
                request("no/such", 5),
                request("tools/call", 6),
                request("ping", 1),
            ]
        )
        answers = await client.read()
        assert (await client.ask("ping", 9)) == {"jsonrpc": "2.0", "id": 9, "result": {}}
    assert len(answers) == 7
    assert value_of(by_id(answers)["two"]) == 3
    codes = [(answer["id"], answer["error"]["code"]) for answer in answers if "error" in answer]
    assert sorted(codes, key=str) == [(1, -32600), (4, -32600), (5, -32601), (6, -32602), (None, -32600)]
    assert {"jsonrpc": "2.0", "id": 1, "result": {}} in answers


async def test_a_batch_of_notifications_is_not_answered() -> None:
    async with serving(Tools().toolset) as client:
        await client.open("2025-03-26")
        await client.send([cancelled(1), {"jsonrpc": "2.0", "id": 9, "result": {}}])
        assert (await client.ask("ping", 2))["id"] == 2


@pytest.mark.parametrize("batch", [[], [request("ping", number) for number in range(1001)]])
async def test_a_batch_without_messages_or_with_too_many_is_refused(batch: list[Any]) -> None:
    async with serving(Tools().toolset) as client:
        await client.open("2025-03-26")
        await client.send(batch)
        answer = await client.read()
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)
        assert str(len(batch)) in answer["error"]["message"]
        assert (await client.ask("ping", "next"))["id"] == "next"


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
async def test_versions_without_batches_refuse_them(version: str) -> None:
    async with serving(Tools().toolset) as client:
        await client.open(version)
        await client.send([request("ping", 1)])
        assert (await client.read())["error"]["code"] == -32600
        assert (await client.ask("ping", 2))["id"] == 2


async def test_a_batch_waits_for_none_of_its_requests_that_was_taken_back() -> None:
    tools = Tools()
    async with serving(tools.toolset) as client:
        await client.open("2025-03-26")
        await client.send([call("hold", 1), call("add", 2, a=1, b=2)])
        await tools.started.wait()
        await client.send(cancelled(1))
        [answer] = await client.read()
        assert value_of(answer) == 3
        await client.send([call("hold", 3)])
        tools.started.clear()
        await tools.started.wait()
        await client.send(cancelled(3))
        assert (await client.ask("ping", 4))["id"] == 4


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-11-25"])
@pytest.mark.parametrize("name", ["hold", "stubborn"])
async def test_a_call_that_is_taken_back_is_not_answered(version: str, name: str) -> None:
    tools = Tools()
    async with serving(tools.toolset) as client:
        await client.open(version)
        await client.send(call(name, "one"))
        await tools.started.wait()
        await client.send(cancelled("one"), cancelled("one"), cancelled("other"), cancelled(1))
        async with asyncio.timeout(SECONDS):
            await tools.stopped.wait()
        assert value_of(await client.ask("tools/call", "one", name="add", arguments={"a": 1, "b": 2})) == 3


async def test_a_call_of_the_new_version_can_be_taken_back() -> None:
    tools = Tools()
    async with serving(tools.toolset) as client:
        await client.send(request("tools/call", 1, name="hold", arguments={}, _meta=MODERN_META))
        await tools.started.wait()
        await client.send(cancelled(1))
        async with asyncio.timeout(SECONDS):
            await tools.stopped.wait()
        assert (await client.ask("server/discover", 2, _meta=MODERN_META))["id"] == 2


async def test_an_id_that_is_in_use_is_refused_and_the_first_call_goes_on() -> None:
    tools = Tools()
    async with serving(tools.toolset) as client:
        await client.open("2025-11-25")
        await client.send(call("hold", 1), call("add", 1, a=1, b=2), call("add", "1", a=1, b=2))
        refused, other = await client.read(), await client.read()
        assert (refused["id"], refused["error"]["code"]) == (1, -32600)
        assert (other["id"], value_of(other)) == ("1", 3)
        tools.release.set()
        assert value_of(await client.read()) == "released"


async def test_what_a_tool_leaves_running_reports_to_nobody(caplog: pytest.LogCaptureFixture) -> None:
    left: list[asyncio.Task[None]] = []
    go_on = asyncio.Event()

    async def later(context: CallContext) -> None:
        await go_on.wait()
        await context.progress(1)
        await context.log("late")

    async def leave(context: CallContext) -> str:
        """Leave work behind."""
        left.append(asyncio.create_task(later(context)))
        return "answered"

    async with serving(StaticToolset([tool(leave)])) as client:
        await client.open("2025-11-25")
        await client.send(call("leave", 1))
        assert value_of(await client.read()) == "answered"
        go_on.set()
        await asyncio.gather(*left)
        assert (await client.ask("ping", 2))["id"] == 2
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def until_still(count: Callable[[], int]) -> int:
    """The count once it has not changed for a while in which a free sender would have sent thousands."""
    async with asyncio.timeout(SECONDS):
        last = -1
        while (now := count()) != last or not now:
            last = now
            await asyncio.sleep(0.3)
    return last


@pytest.mark.parametrize("logs", [True, False])
async def test_a_client_that_does_not_read_stops_the_reports(logs: bool) -> None:
    tools = Tools()
    async with serving(tools.toolset) as client:
        await client.open("2025-11-25")
        client.writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
        await client.send(call("flood", 1, logs=logs))
        assert await until_still(lambda: tools.sent) < 500, "five megabytes are more than any buffer on the way"
        await client.send(cancelled(1))
        async with asyncio.timeout(SECONDS):
            await tools.stopped.wait()
        client.writer.transport.resume_reading()  # pyright: ignore[reportAttributeAccessIssue]
        await client.send(request("ping", "end"))
        while (await client.read()).get("id") != "end":
            pass


async def test_a_tool_that_only_reports_lets_others_run() -> None:
    tools = Tools()
    async with serving(tools.toolset) as client:
        await client.open("2025-11-25")
        await client.send(call("flood", 1, logs=False), call("add", 2, a=1, b=2))
        while (message := await client.read()).get("id") != 2:
            pass
        assert value_of(message) == 3


async def test_a_client_that_sends_and_does_not_read_is_served_once_it_does() -> None:
    bad = b'{"jsonrpc":"2.0","id":"%b","method":3}' % (b"x" * 10_000)
    count = 6000
    async with serving(Tools().toolset) as client:
        await client.open("2025-11-25")
        client.writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
        sending = asyncio.create_task(client.send(*[bad] * count, request("ping", "end")))
        await asyncio.wait({sending}, timeout=2)
        assert not sending.done(), "the server reads no more, since nothing of its answers is read"
        client.writer.transport.resume_reading()  # pyright: ignore[reportAttributeAccessIssue]
        answers = [await client.read() for _ in range(count + 1)]
        await sending
    assert answers[-1] == {"jsonrpc": "2.0", "id": "end", "result": {}}


async def test_changes_wait_once_each_for_a_client_that_does_not_read() -> None:
    tools = Tools()
    async with serving(tools.toolset) as client:
        await client.open("2025-11-25")
        await client.ask("ping", 1)
        client.writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
        await client.send(call("flood", 2, logs=False))
        await until_still(lambda: tools.sent)
        for _ in range(50):
            for change in ("tools", "prompts"):
                tools.toolset.notify(change)
            await asyncio.sleep(0)
        await client.send(cancelled(2))
        await tools.stopped.wait()
        client.writer.transport.resume_reading()  # pyright: ignore[reportAttributeAccessIssue]
        methods: list[str] = []
        while "notifications/prompts/list_changed" not in methods:
            methods.append((await client.read())["method"])
        await client.send(request("ping", "end"))
        while (message := await client.read()).get("id") != "end":
            methods.append(message["method"])
    changes = [method for method in methods if method != "notifications/progress"]
    # The first goes out at once, whatever waits already.
    assert 2 <= len(changes) <= 4


async def test_a_client_that_is_initialized_before_it_shakes_hands_is_notified_once_it_has() -> None:
    toolset = changing()
    async with serving(toolset) as client:
        await client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (await client.open("2025-11-25"))["result"]["protocolVersion"] == "2025-11-25"
        toolset.notify("tools")
        assert (await client.read())["method"] == "notifications/tools/list_changed"


async def test_a_client_of_the_new_version_gets_no_notification_that_it_did_not_ask_for() -> None:
    toolset = changing()
    async with serving(toolset) as client:
        await client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert "result" in await client.ask("server/discover", 1, _meta=MODERN_META)
        await client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        toolset.notify("tools")
        assert (await client.ask("server/discover", 2, _meta=MODERN_META))["id"] == 2


async def test_a_client_may_shake_hands_again() -> None:
    async with serving(changing()) as client:
        assert (await client.open("2025-03-26"))["result"]["protocolVersion"] == "2025-03-26"
        assert (await client.open("2025-06-18"))["result"]["protocolVersion"] == "2025-06-18"
        assert (await client.open("1999-01-01"))["result"]["protocolVersion"] == "2025-11-25"
        assert (await client.ask("tools/list", 1))["result"]["tools"]


async def test_requests_that_come_with_the_handshake_are_answered_after_it() -> None:
    client_info = {"name": "raw", "version": "1"}
    hello = request("initialize", 0, protocolVersion="2025-11-25", capabilities={}, clientInfo=client_info)
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    toolset = changing()
    async with serving(toolset) as client:
        await client.send(hello, ready, request("tools/list", 1))
        assert [(await client.read())["id"] for _ in range(2)] == [0, 1]
        toolset.notify("tools")
        assert (await client.read())["method"] == "notifications/tools/list_changed"


@pytest.mark.parametrize(
    "hello",
    [
        {"clientInfo": {"name": "x", "version": "1", "title": None, "icons": [], "websiteUrl": "u", "more": {}}},
        {"capabilities": {"elicitation": None, "sampling": {}, "roots": {"listChanged": True}, "odd": 3}},
        {"capabilities": {"experimental": {"x": {"y": [1, None]}}, "tasks": {"list": {}}}},
        {"_meta": None},
        {"_meta": {"odd": [[]]}},
        {"unknown": [1, 2, 3]},
    ],
)
async def test_a_handshake_with_more_than_the_protocol_has_is_accepted(hello: JsonObject) -> None:
    async with serving(changing()) as client:
        assert "result" in await client.open("2025-11-25", **hello)


@pytest.mark.parametrize(
    ("params", "names"),
    [
        ({"name": "add", "arguments": []}, "params.arguments"),
        ({"name": "add", "arguments": "{}"}, "params.arguments"),
        ({"name": 3}, "params.name"),
        ({}, "name"),
        ({"name": "add", "_meta": 3}, "params._meta"),
        ({"name": "add", "_meta": [1]}, "params._meta"),
    ],
)
async def test_wrong_parameters_are_answered_with_what_is_wrong(params: JsonObject, names: str) -> None:
    async with serving(Tools().toolset) as client:
        await client.open("2025-11-25")
        answer = await client.ask("tools/call", 1, **params)
        assert answer["error"]["code"] == -32602
        assert f"`{names}`" in answer["error"]["message"]


async def test_a_request_without_parameters_is_answered_with_what_is_missing() -> None:
    async with serving(Tools().toolset) as client:
        await client.open("2025-11-25")
        for body in ({}, {"params": None}):
            await client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", **body})
            answer = await client.read()
            assert (answer["error"]["code"], "`name`" in answer["error"]["message"]) == (-32602, True)


@pytest.mark.parametrize(
    "value",
    [
        b'"\\ud800"',
        b"1" + b"0" * 400,
        b"-1e400",
        b"[" * 900 + b"]" * 900,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 1000 + b"1" + b"}" * 1000,
        b'"\xc3\xa9\\u0000"',
    ],
)
@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":%b,"b":1}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%b}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":%b}}}',
        b'{"jsonrpc":"2.0","id":1,"method":%b}',
        b'{"jsonrpc":"2.0","id":%b,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":%b}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":%b}}',
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%b}}',
    ],
)
async def test_any_value_anywhere_is_answered_once(line: bytes, value: bytes) -> None:
    async with serving(Tools().toolset) as client:
        await client.open("2025-11-25")
        await client.send(line % value, request("ping", "next"))
        first, second = await client.read(), await client.read()
    assert {first["id"], second["id"]} >= {"next"}
    assert {"result", "error"} & (first.keys() if first["id"] != "next" else second.keys())
