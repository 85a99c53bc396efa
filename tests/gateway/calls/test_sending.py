"""Sending: a call goes out once, and what is known of it stands in the ledger."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from trysquare import CallContext, ErrorCode, Principal, ToolError
from trysquare.core.context import ElicitRequest
from trysquare.core.errors import DeadlineExceeded, InputRequired
from trysquare.core.json import JsonObject
from trysquare.gateway import ServerConfig
from trysquare.gateway.models import ConfigLocation, ToolDefinition, UpstreamResult
from trysquare.gateway.sender import MAX_STORED_RESULT, CallSender
from trysquare.store.call_ledger import CallEnd, CallLedger, KeyedCall, NewCall

SERVER = ServerConfig(name="files", tool_name="mcp_files", transport="stdio", location=ConfigLocation(file="mcp.json"))
WRITE = ToolDefinition(name="write")
READ = ToolDefinition(name="read", annotations={"readOnlyHint": True})
PUT = ToolDefinition(name="put", annotations={"idempotentHint": True})
ME = CallContext(principal=Principal(subject="me"))
OK = UpstreamResult(body=b'{"content":[{"type":"text","text":"ok"}]}')


class Servers:
    """Servers that answer as they were told, and count what reaches them."""

    def __init__(self, *script: UpstreamResult | BaseException | Callable[[], Any], unsent: bool = False) -> None:
        self._script = list(script)
        self._unsent = unsent
        self.received: list[Any] = []

    async def cancel_task(self, server: str, id: str, context: CallContext) -> None:
        raise AssertionError("these servers have no tasks")

    async def call(
        self,
        server: str,
        tool: str,
        arguments_json: bytes,
        context: CallContext,
        *,
        on_sent: Callable[[], None],
        checkpoint: JsonObject,
    ) -> UpstreamResult:
        step = self._script.pop(0)
        if not self._unsent:
            on_sent()
            self.received.append(json.loads(arguments_json))
        if callable(step):
            step = await step()
        if isinstance(step, BaseException):
            raise step
        assert isinstance(step, UpstreamResult)
        return step


def lost() -> ToolError:
    return ToolError("The connection was lost.", fields={"outcome": "sent_unknown"})


@asynccontextmanager
async def opened(tmp_path: Path, servers: Servers, **options: Any) -> AsyncGenerator[tuple[CallSender, CallLedger]]:
    ledger = CallLedger(tmp_path / "ledger.db")
    sender = CallSender(servers.call, ledger, servers.cancel_task, **options)
    try:
        yield sender, ledger
    finally:
        await sender.close()


def states(ledger: CallLedger) -> list[str]:
    return [record.state for record in ledger.recent()]


async def test_an_answered_call_is_done_and_its_digest_is_kept(tmp_path: Path) -> None:
    async with opened(tmp_path, Servers(OK)) as (sender, ledger):
        sent = await sender.send(SERVER, WRITE, {"path": "x", "token": "secret"}, context=ME)
        (record,) = ledger.recent()
    assert (sent.answer, sent.replayed) == (OK, False)
    assert (record.state, record.server, record.tool, record.principal) == ("done", "files", "write", "me")
    assert json.loads(record.arguments) == {"path": "x", "token": "***"}
    assert record.result_bytes == len(OK.body)


async def test_the_text_of_a_result_is_kept_where_that_is_wanted_without_what_is_secret(tmp_path: Path) -> None:
    said = UpstreamResult(body=b'{"content":[{"type":"text","text":"hunter2 opens 12345"}]}')
    redacting = replace(SERVER, redact=("path",))
    async with opened(tmp_path, Servers(said, said), kept_characters=14) as (sender, ledger):
        await sender.send(SERVER, WRITE, {"token": "hunter2"}, context=ME)
        await sender.send(redacting, WRITE, {"token": "hunter2"}, context=ME)
        assert [record.note for record in ledger.recent()] == [None, "*** opens 1234"]


@pytest.mark.parametrize(("unsent", "outcome"), [(True, "not_sent"), (False, "sent_unknown")])
async def test_a_failure_says_what_is_known_of_the_call(tmp_path: Path, unsent: bool, outcome: str) -> None:
    async with opened(tmp_path, Servers(ToolError("It failed."), unsent=unsent)) as (sender, ledger):
        with pytest.raises(ToolError) as failed:
            await sender.send(SERVER, WRITE, {}, context=ME)
        assert failed.value.fields["outcome"] == outcome
        assert states(ledger) == [outcome]


async def test_the_outcome_that_a_failure_names_counts(tmp_path: Path) -> None:
    failure = ToolError("The server is not there.", fields={"outcome": "not_sent"})
    async with opened(tmp_path, Servers(failure)) as (sender, ledger):
        with pytest.raises(ToolError):
            await sender.send(SERVER, WRITE, {}, context=ME)
        assert states(ledger) == ["not_sent"]


async def test_a_call_that_is_taken_back_is_unknown(tmp_path: Path) -> None:
    reached = anyio.Event()

    async def wait() -> UpstreamResult:
        reached.set()
        await anyio.sleep_forever()
        return OK

    async with opened(tmp_path, Servers(wait)) as (sender, ledger):
        task = asyncio.create_task(sender.send(SERVER, WRITE, {}, context=ME))
        with anyio.fail_after(30):
            await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert states(ledger) == ["sent_unknown"]
        assert [call.note for call in ledger.recent()] == ["cancelled by the caller"]


@pytest.mark.parametrize("definition", [READ, PUT])
async def test_a_repeatable_call_whose_answer_was_lost_is_sent_again(
    tmp_path: Path, definition: ToolDefinition
) -> None:
    servers = Servers(lost(), lost(), OK)
    async with opened(tmp_path, servers) as (sender, ledger):
        await sender.send(SERVER, definition, {"a": 1}, context=ME)
        assert states(ledger) == ["done"]
    assert servers.received == [{"a": 1}] * 3


async def test_a_repeatable_call_is_not_sent_for_ever(tmp_path: Path) -> None:
    servers = Servers(lost(), lost(), lost(), OK)
    async with opened(tmp_path, servers) as (sender, _):
        with pytest.raises(ToolError, match="lost"):
            await sender.send(SERVER, READ, {}, context=ME)
    assert len(servers.received) == 3


async def test_any_other_call_is_never_sent_twice(tmp_path: Path) -> None:
    servers = Servers(lost(), OK)
    async with opened(tmp_path, servers) as (sender, _):
        with pytest.raises(ToolError, match="lost"):
            await sender.send(SERVER, WRITE, {}, context=ME)
    assert len(servers.received) == 1


async def test_a_call_that_took_too_long_is_not_sent_again(tmp_path: Path) -> None:
    late = DeadlineExceeded("It took too long.", fields={"outcome": "sent_unknown"})
    servers = Servers(late, OK)
    async with opened(tmp_path, servers) as (sender, _):
        with pytest.raises(DeadlineExceeded):
            await sender.send(SERVER, READ, {}, context=ME)
    assert len(servers.received) == 1


async def test_a_repeated_key_gets_the_first_answer_also_from_the_next_process(tmp_path: Path) -> None:
    servers = Servers(OK)
    async with opened(tmp_path, servers) as (sender, _):
        first = await sender.send(SERVER, WRITE, {"a": 1, "b": 2}, context=ME, request_key="k")
    async with opened(tmp_path, servers) as (sender, _):
        again = await sender.send(SERVER, WRITE, {"b": 2, "a": 1}, context=ME, request_key="k")
    assert (again.answer, again.replayed, first.replayed) == (OK, True, False)
    assert len(servers.received) == 1


async def test_a_key_with_other_inputs_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path, Servers(OK)) as (sender, _):
        await sender.send(SERVER, WRITE, {"a": 1}, context=ME, request_key="k")
        with pytest.raises(ToolError, match="other inputs") as refused:
            await sender.send(SERVER, WRITE, {"a": 2}, context=ME, request_key="k")
    assert refused.value.code == ErrorCode.STATE_CONFLICT


async def test_a_key_whose_call_is_unknown_is_not_sent_again(tmp_path: Path) -> None:
    servers = Servers(lost())
    async with opened(tmp_path, servers) as (sender, _):
        for _ in range(2):
            with pytest.raises(ToolError) as refused:
                await sender.send(SERVER, WRITE, {}, context=ME, request_key="k")
            assert refused.value.fields["outcome"] == "sent_unknown"
    assert len(servers.received) == 1


async def test_a_key_whose_call_runs_is_answered_with_wait(tmp_path: Path) -> None:
    reached, go_on = anyio.Event(), anyio.Event()

    async def wait() -> UpstreamResult:
        reached.set()
        await go_on.wait()
        return OK

    async with opened(tmp_path, Servers(wait)) as (sender, _):
        task = asyncio.create_task(sender.send(SERVER, WRITE, {}, context=ME, request_key="k"))
        with anyio.fail_after(30):
            await reached.wait()
        with pytest.raises(ToolError, match="still running"):
            await sender.send(SERVER, WRITE, {}, context=ME, request_key="k")
        go_on.set()
        assert (await task).answer == OK


async def test_a_key_is_free_after_a_call_that_was_not_sent(tmp_path: Path) -> None:
    servers = Servers(ToolError("Not there.", fields={"outcome": "not_sent"}), OK)
    async with opened(tmp_path, servers) as (sender, _):
        with pytest.raises(ToolError, match="Not there"):
            await sender.send(SERVER, WRITE, {}, context=ME, request_key="k")
        assert (await sender.send(SERVER, WRITE, {}, context=ME, request_key="k")).answer == OK


async def test_an_answer_too_large_to_record_is_reported_as_done(tmp_path: Path) -> None:
    large = UpstreamResult(body=b'{"content":[{"type":"text","text":"' + b"x" * MAX_STORED_RESULT + b'"}]}')
    servers = Servers(large)
    async with opened(tmp_path, servers) as (sender, _):
        assert (await sender.send(SERVER, WRITE, {}, context=ME, request_key="k")).answer == large
        with pytest.raises(ToolError, match="too large") as refused:
            await sender.send(SERVER, WRITE, {}, context=ME, request_key="k")
    assert refused.value.fields["outcome"] == "done"
    assert len(servers.received) == 1


@pytest.mark.parametrize("key", [None, "k"])
async def test_a_call_that_waits_for_the_user_continues_under_the_same_entry(tmp_path: Path, key: str | None) -> None:
    question = InputRequired({"q": ElicitRequest(message="Which?", schema={}, key="q")})
    async with opened(tmp_path, Servers(question, OK)) as (sender, ledger):
        with pytest.raises(InputRequired):
            await sender.send(SERVER, WRITE, {"a": 1}, context=ME, request_key=key)
        assert states(ledger) == ["sending"]
        assert (await sender.send(SERVER, WRITE, {"a": 1}, context=ME, request_key=key)).answer == OK
        assert states(ledger) == ["done"]


async def test_the_ledger_keeps_a_reference_in_place_of_what_it_stands_for(tmp_path: Path) -> None:
    servers = Servers(OK)
    async with opened(tmp_path, servers) as (sender, ledger):
        await sender.send(SERVER, WRITE, {"text": "x" * 9999}, context=ME, arguments={"text": {"$from": "h1"}})
        (record,) = ledger.recent()
    assert json.loads(record.arguments) == {"text": {"$from": "h1"}}
    assert servers.received == [{"text": "x" * 9999}]


class SlowLedger(CallLedger):
    """A ledger whose claims take their time."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.claimed, self.go_on, self.released = threading.Event(), threading.Event(), threading.Event()

    def claim(self, call: NewCall, key: str) -> str | KeyedCall:
        found = super().claim(call, key)
        self.claimed.set()
        assert self.go_on.wait(30)
        return found

    def end_claimed(self, id: str, end: CallEnd, result: bytes | None = None) -> None:
        super().end_claimed(id, end, result)
        self.released.set()


async def test_a_call_taken_back_while_its_key_is_claimed_leaves_the_key_free(tmp_path: Path) -> None:
    calls, servers = SlowLedger(tmp_path / "ledger.db"), Servers(OK)
    sender = CallSender(servers.call, calls, servers.cancel_task)
    task = asyncio.create_task(sender.send(SERVER, WRITE, {}, context=ME, request_key="k"))
    assert await asyncio.to_thread(calls.claimed.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    calls.go_on.set()
    assert await asyncio.to_thread(calls.released.wait, 30)
    assert servers.received == []
    assert (await sender.send(SERVER, WRITE, {}, context=ME, request_key="k")).replayed is False
    await sender.close()
