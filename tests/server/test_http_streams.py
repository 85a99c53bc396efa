"""Streams of events over HTTP: resumed, cancelled or not by a hang-up, and sent no faster than the client reads."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.server.clients import served_http
from tests.server.raw_http import (
    SECONDS,
    RawConnection,
    Response,
    connected,
    head_of,
    modern,
    usual_fields,
    whole_request,
)
from tests.server.sample import changing
from trysquare import CallContext, Result, StaticToolset, tool
from trysquare.server import HttpOptions, StaticTokens
from trysquare.server.http import streams

handshakes = pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
LATEST = "2025-11-25"


class Session:
    """A session over connections that its test opens and drops as it likes."""

    def __init__(self, base: str, version: str = LATEST, token: str | None = None) -> None:
        self.base = base
        self.version = version
        self._token = token
        self.id = ""

    def fields(self, **more: str) -> list[tuple[str, str]]:
        fields = [("Host", "127.0.0.1"), ("Content-Type", "application/json")]
        fields += [("Accept", "application/json, text/event-stream"), ("MCP-Protocol-Version", self.version)]
        if self._token is not None:
            fields.append(("Authorization", f"Bearer {self._token}"))
        if self.id:
            fields.append(("Mcp-Session-Id", self.id))
        return [*fields, *((name.replace("_", "-"), value) for name, value in more.items())]

    async def open(self) -> Session:
        client = {"name": "raw", "version": "1"}
        params = {"protocolVersion": self.version, "capabilities": {"elicitation": {}}, "clientInfo": client}
        opened = await self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        self.id = opened.headers["mcp-session-id"]
        await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    async def post(self, message: Any, **more: str) -> Response:
        async with connected(self.base) as connection:
            await connection.send(whole_request(self.fields(**more), json.dumps(message).encode()))
            return await connection.response()

    async def call(self, name: str, arguments: dict[str, Any] | None = None) -> Response:
        return await self.post(call(name, 1, arguments))

    @asynccontextmanager
    async def calling(self, name: str, request_id: int = 7) -> AsyncGenerator[RawConnection]:
        """A connection on which a call is answered with events; the head of the response is read."""
        async with connected(self.base) as connection:
            await connection.send(whole_request(self.fields(), json.dumps(call(name, request_id)).encode()))
            assert (await connection.head()).headers["content-type"] == "text/event-stream"
            yield connection

    @asynccontextmanager
    async def listening(self, last: str | None = None) -> AsyncGenerator[tuple[Response, RawConnection]]:
        """The response to a GET, of which the head is read."""
        more = {} if last is None else {"Last_Event_ID": last}
        async with connected(self.base) as connection:
            await connection.send(head_of(self.fields(**more), "GET"))
            yield await connection.head(), connection

    async def end(self) -> Response:
        async with connected(self.base) as connection:
            await connection.send(head_of(self.fields(), "DELETE"))
            return await connection.response()


def call(name: str, request_id: int, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments or {}, "_meta": {"progressToken": request_id}}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


class Steps:
    """A tool that reports progress when it is told to, and ends when it is told to."""

    def __init__(self) -> None:
        self._orders: asyncio.Queue[float | None] = asyncio.Queue()
        self.stopped = asyncio.Event()
        self.toolset = StaticToolset([tool(self.work), tool(self.add)])

    async def work(self, context: CallContext) -> str:
        """Report."""
        try:
            while (step := await self._orders.get()) is not None:
                await context.progress(step)
        finally:
            self.stopped.set()
        return "done"

    async def add(self, a: int, b: int) -> int:
        """Add."""
        return a + b

    def report(self, *steps: float) -> None:
        for step in steps:
            self._orders.put_nowait(step)

    def end(self) -> None:
        self._orders.put_nowait(None)


@asynccontextmanager
async def cuttable(base: str) -> AsyncGenerator[tuple[str, Callable[[], None]]]:
    """An address that leads to a server, and what cuts every connection through it."""
    writers: set[asyncio.StreamWriter] = set()
    target = urlsplit(base)

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(65536):
                writer.write(chunk)
        writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(target.hostname, target.port)
        writers.update((writer, far_writer))
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))

    def cut() -> None:
        for writer in writers:
            writer.transport.abort()
        writers.clear()

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", cut
    finally:
        server.close()
        cut()


async def progress_of(connection: RawConnection) -> tuple[str | None, float]:
    event_id, data = await connection.event()
    return event_id, json.loads(data)["params"]["progress"]


async def first_progress(connection: RawConnection, version: str) -> str:
    """The id of the first event with progress, after the empty one of versions that begin with it."""
    if version == LATEST:
        primed, data = await connection.event()
        assert primed is not None
        assert data == ""
    event_id, step = await progress_of(connection)
    assert step == 1
    assert event_id is not None
    return event_id


async def result_of(connection: RawConnection) -> Any:
    return json.loads((await connection.event())[1])["result"]["structuredContent"]["result"]


@handshakes
async def test_a_client_that_lost_its_call_comes_back_for_the_rest(version: str) -> None:
    steps = Steps()
    async with served_http(steps.toolset) as base:
        session = await Session(base, version).open()
        steps.report(1)
        async with session.calling("work") as lost:
            seen = await first_progress(lost, version)
        steps.report(2)
        async with session.listening(seen) as (head, resumed):
            assert head.status == 200
            assert (await progress_of(resumed))[1] == 2
            steps.report(3)
            assert (await progress_of(resumed))[1] == 3
            steps.end()
            assert await result_of(resumed) == "done"
            assert await resumed.chunk() == b""


async def test_a_real_client_whose_connection_is_cut_gets_the_rest_of_its_call() -> None:
    """The SDK's client comes back with `Last-Event-ID`, and misses nothing that was reported meanwhile."""
    steps, seen = Steps(), list[float]()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)
        if progress == 1:
            cut()
            steps.report(2, 3)
        elif progress == 3:
            steps.end()

    async with (
        served_http(steps.toolset) as base,
        cuttable(base) as (address, cut),
        Client(streamable_http_client(f"{address}/mcp"), mode="legacy") as client,
        asyncio.timeout(SECONDS),
    ):
        steps.report(1)
        result = await client.call_tool("work", {}, progress_callback=on_progress)
    assert (result.is_error, result.structured_content) == (False, {"result": "done"})
    assert seen == [1, 2, 3]


async def test_a_client_that_comes_back_after_the_end_gets_all_it_missed() -> None:
    steps = Steps()
    async with served_http(steps.toolset) as base:
        session = await Session(base).open()
        steps.report(1)
        async with session.calling("work") as lost:
            seen = await first_progress(lost, LATEST)
        steps.report(2)
        steps.end()
        await steps.stopped.wait()
        for _ in range(2):
            async with session.listening(seen) as (_, resumed):
                assert (await progress_of(resumed))[1] == 2
                assert await result_of(resumed) == "done"
                assert await resumed.chunk() == b""


async def test_the_empty_event_at_the_start_is_enough_to_come_back() -> None:
    steps = Steps()
    async with served_http(steps.toolset) as base:
        session = await Session(base).open()
        steps.report(1)
        async with session.calling("work") as lost:
            primed, _ = await lost.event()
        steps.end()
        async with session.listening(primed) as (_, resumed):
            assert (await progress_of(resumed))[1] == 1
            assert await result_of(resumed) == "done"


async def test_a_client_may_come_back_before_its_lost_connection_is_noticed() -> None:
    steps = Steps()
    async with served_http(steps.toolset) as base:
        session = await Session(base).open()
        steps.report(1)
        async with session.calling("work") as first:
            seen = await first_progress(first, LATEST)
            async with session.listening(seen) as (_, second):
                assert await first.chunk() == b"", "the former response has ended"
                steps.report(2)
                assert (await progress_of(second))[1] == 2
                async with session.listening(seen) as (_, third):
                    assert await second.chunk() == b""
                    assert (await progress_of(third))[1] == 2
                    steps.end()
                    assert await result_of(third) == "done"


async def test_a_connection_that_takes_no_more_does_not_hold_up_the_one_that_replaces_it() -> None:
    async def flood(context: CallContext) -> str:
        """Log more than any buffer holds."""
        for number in range(80):
            await context.log(f"{number} " + "x" * 100_000)
        return "done"

    async with served_http(StaticToolset([tool(flood)])) as base:
        session = await Session(base).open()
        async with session.calling("flood") as stuck:
            primed, _ = await stuck.event()
            async with session.listening(primed) as (_, resumed):
                numbers: list[int] = []
                while "result" not in (message := json.loads((await resumed.event())[1])):
                    numbers.append(int(message["params"]["data"].split()[0]))
                assert numbers == list(range(80))


async def test_a_result_larger_than_what_is_kept_can_still_be_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_MAX_EVENT_BYTES", 1000)
    go_on = asyncio.Event()

    async def large(context: CallContext) -> str:
        """Answer at length."""
        await context.progress(1)
        await go_on.wait()
        return "x" * 100_000

    async with served_http(StaticToolset([tool(large)])) as base:
        session = await Session(base).open()
        async with session.calling("large") as lost:
            seen = await first_progress(lost, LATEST)
        go_on.set()
        async with session.listening(seen) as (_, resumed):
            assert await result_of(resumed) == "x" * 100_000


async def test_streams_together_keep_no_more_than_their_budget() -> None:
    budget = streams.EventBudget(10_000)
    made = [streams.EventStream(Nowhere(), [], budget) for _ in range(10)]  # pyright: ignore[reportArgumentType]
    for stream in made:
        stream.leave()
        await stream.send(b"x" * 3000, is_last=True)
    assert [stream.can_resume for stream in made] == [False] * 7 + [True] * 3


class Nowhere:
    """An exchange that nothing is sent to."""


@pytest.mark.parametrize(
    "last", ["", "1", "_", "999999_1", "1_99999999999999999999", "1_-1", "x_1", "1_\xb2", "\xb9_1"]
)
async def test_an_unknown_event_is_refused(last: str) -> None:
    async with served_http(Steps().toolset) as base:
        session = await Session(base).open()
        async with session.listening(last) as (head, _):
            assert head.status == 400


async def test_the_stream_of_another_session_is_not_found() -> None:
    steps = Steps()
    async with served_http(steps.toolset) as base:
        session, other = await Session(base).open(), await Session(base).open()
        steps.report(1)
        async with session.calling("work") as connection:
            seen = await first_progress(connection, LATEST)
            async with other.listening(seen) as (head, _):
                assert head.status == 400


async def test_the_stream_of_another_principal_is_not_found() -> None:
    steps = Steps()
    tokens = HttpOptions(verifier=StaticTokens(["ada"], subject="ada"))
    async with served_http(steps.toolset, None, tokens) as base:
        session = await Session(base, token="ada").open()
        steps.report(1)
        async with session.calling("work") as connection:
            seen = await first_progress(connection, LATEST)
            stranger = Session(base, token="eve")
            stranger.id = session.id
            async with stranger.listening(seen) as (head, _):
                assert head.status == 401


async def changed(session: Session, connection: RawConnection) -> tuple[str | None, str]:
    """The next event with a notification."""
    while not (event := await connection.event())[1]:
        pass
    return event[0], json.loads(event[1])["method"]


@handshakes
async def test_notifications_that_came_while_nobody_listened_arrive_when_the_stream_is_resumed(version: str) -> None:
    toolset = changing()
    async with served_http(toolset) as base:
        session = await Session(base, version).open()
        async with session.listening() as (head, connection):
            assert head.status == 200
            toolset.notify("tools")
            seen, method = await changed(session, connection)
            assert method == "notifications/tools/list_changed"
        toolset.notify("prompts")
        for _ in range(1000):
            toolset.notify("resources")
        async with session.listening(seen) as (head, resumed):
            assert head.status == 200
            assert (await changed(session, resumed))[1] == "notifications/prompts/list_changed"
            assert (await changed(session, resumed))[1] == "notifications/resources/list_changed"
            toolset.notify("tools")
            assert (await changed(session, resumed))[1] == "notifications/tools/list_changed", "each waited once"


async def test_a_session_has_one_stream_of_notifications() -> None:
    toolset = changing()
    async with served_http(toolset) as base:
        session = await Session(base).open()
        async with session.listening() as (_, first):
            primed, _ = await first.event()
            async with session.listening() as (head, _):
                assert head.status == 409
            async with session.listening(primed) as (head, second):
                assert head.status == 200, "it may be taken over by who resumes it"
                toolset.notify("tools")
                assert (await changed(session, second))[1] == "notifications/tools/list_changed"


async def test_a_former_stream_of_notifications_can_be_resumed_once_there_is_no_other() -> None:
    toolset = changing()
    async with served_http(toolset) as base:
        session = await Session(base).open()
        async with session.listening() as (_, first):
            primed, _ = await first.event()
        await until_gone(session)
        async with session.listening(), session.listening(primed) as (head, _):
            assert head.status == 409
        await until_gone(session)
        async with session.listening(primed) as (head, resumed):
            assert head.status == 200
            toolset.notify("tools")
            assert (await changed(session, resumed))[1] == "notifications/tools/list_changed"


async def until_gone(session: Session) -> None:
    """Wait until the server has noticed that nobody listens."""
    async with asyncio.timeout(SECONDS):
        while True:
            async with session.listening() as (head, _):
                if head.status == 200:
                    return


async def test_the_end_of_a_session_ends_its_streams() -> None:
    steps = Steps()
    async with served_http(steps.toolset) as base:
        session = await Session(base).open()
        steps.report(1)
        async with session.calling("work") as calling, session.listening() as (_, listening):
            await first_progress(calling, LATEST)
            await listening.event()
            assert (await session.end()).status == 200
            assert await calling.chunk() == b""
            assert await listening.chunk() == b""
            await steps.stopped.wait()


@handshakes
async def test_a_hang_up_in_a_session_does_not_cancel_the_call(version: str) -> None:
    steps = Steps()
    async with served_http(steps.toolset) as base:
        session = await Session(base, version).open()
        steps.report(1)
        async with session.calling("work") as connection:
            await first_progress(connection, version)
        for number in range(3):
            assert (await session.call("add", {"a": number, "b": 1})).json["result"]["structuredContent"]["result"]
        assert not steps.stopped.is_set()


async def test_a_hang_up_without_a_session_cancels_the_call() -> None:
    steps = Steps()
    async with served_http(steps.toolset) as base:
        async with connected(base) as connection:
            body = modern("tools/call", name="work", arguments={})
            await connection.send(whole_request(usual_fields("tools/call", "work"), body))
        async with asyncio.timeout(SECONDS):
            await steps.stopped.wait()


def cancelled(request_id: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}


@handshakes
async def test_a_call_that_is_taken_back_ends_its_stream_without_a_result(version: str) -> None:
    steps = Steps()
    async with served_http(steps.toolset) as base:
        session = await Session(base, version).open()
        steps.report(1)
        async with session.calling("work", 7) as connection:
            await first_progress(connection, version)
            for request_id in (7, 7, 8):
                assert (await session.post(cancelled(request_id))).status == 202
            assert await connection.chunk() == b""
        assert steps.stopped.is_set()


async def test_a_call_that_goes_on_after_it_was_taken_back_is_not_answered(caplog: pytest.LogCaptureFixture) -> None:
    started = asyncio.Event()

    async def stubborn(context: CallContext) -> str:
        """Go on."""
        await context.progress(1)
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await context.progress(2)
        return "unwanted"

    async with served_http(StaticToolset([tool(stubborn)])) as base:
        session = await Session(base).open()
        async with session.calling("stubborn", 7) as connection:
            await first_progress(connection, LATEST)
            await started.wait()
            await session.post(cancelled(7))
            rest = b""
            while chunk := await connection.chunk():
                rest += chunk
    assert b"unwanted" not in rest
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("modern_era", [True, False])
async def test_what_a_tool_leaves_running_reports_to_nobody(modern_era: bool, caplog: pytest.LogCaptureFixture) -> None:
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

    async with served_http(StaticToolset([tool(leave)])) as base, connected(base) as connection:
        if modern_era:
            body = modern("tools/call", name="leave", arguments={})
            await connection.send(whole_request(usual_fields("tools/call", "leave"), body))
            answer = await connection.response()
        else:
            answer = await (await Session(base).open()).call("leave")
        assert answer.json["result"]["structuredContent"]["result"] == "answered"
        go_on.set()
        await asyncio.gather(*left)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


class Flood:
    """A tool that reports for as long as it is allowed to, and counts how far it came."""

    def __init__(self) -> None:
        self.sent = 0
        self.stopped = asyncio.Event()
        self.toolset = StaticToolset([tool(self.pour)])

    async def pour(self, context: CallContext, logs: bool = False) -> Result[str]:
        """Report without end."""
        try:
            while True:
                await (context.log("x" * 10_000) if logs else context.progress(self.sent, None, "x" * 10_000))
                self.sent += 1
        finally:
            self.stopped.set()


async def until_still(count: Callable[[], int]) -> int:
    """The count once it has not changed for a while in which a free sender would have sent thousands."""
    async with asyncio.timeout(SECONDS):
        last = -1
        while (now := count()) != last or not now:
            last = now
            await asyncio.sleep(0.3)
    return last


@pytest.mark.parametrize("modern_era", [True, False])
async def test_a_client_that_does_not_read_stops_the_reports(modern_era: bool) -> None:
    flood = Flood()
    async with served_http(flood.toolset) as base, connected(base) as connection:
        if modern_era:
            body = modern("tools/call", name="pour", arguments={"logs": False})
            named = json.loads(body)
            named["params"]["_meta"]["progressToken"] = 1
            await connection.send(whole_request(usual_fields("tools/call", "pour"), json.dumps(named).encode()))
        else:
            session = await Session(base).open()
            await connection.send(whole_request(session.fields(), json.dumps(call("pour", 1)).encode()))
        assert await until_still(lambda: flood.sent) < 3000, "thirty megabytes are more than any buffer on the way"
        before = flood.sent
        while flood.sent == before:
            assert await connection.reader.read(1_000_000)
    if modern_era:
        async with asyncio.timeout(SECONDS):
            await flood.stopped.wait()


async def test_what_a_lost_client_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_MAX_EVENTS", 10)
    steps = Steps()
    async with served_http(steps.toolset) as base:
        session = await Session(base).open()
        steps.report(1)
        async with session.calling("work") as lost:
            seen = await first_progress(lost, LATEST)
        await session.call("add", {"a": 1, "b": 1})
        steps.report(*range(2, 500))
        steps.end()
        await steps.stopped.wait()
        async with session.listening(seen) as (_, resumed):
            got = [await progress_of(resumed) for _ in range(9)]
            assert [step for _, step in got] == list(range(491, 500))
            assert await result_of(resumed) == "done"
