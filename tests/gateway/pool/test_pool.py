"""Servers behind the gateway: started when needed, kept, started anew, and none in another's way."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
from pathlib import Path

import anyio
import pytest
from inline_snapshot import snapshot

from tests.gateway.toys import ERAS, Person, called_by, has_ended, hear_nothing, say, text_of, toy, words
from trysquare import CallContext, ErrorCode, ToolError
from trysquare.core.errors import NotFound
from trysquare.gateway import ServerConfig
from trysquare.gateway.pool.pool import open_pool


@pytest.mark.parametrize("era", [*ERAS, "old"])
async def test_a_call_answers_with_the_very_bytes_of_the_server(era: str) -> None:
    async with open_pool({"toy": toy("toy", "--era", era)}, on_change=hear_nothing) as pool:
        answer = await say(pool, "echo", "Grüße")
    assert json.loads(answer.body)["content"] == [{"type": "text", "text": "Grüße"}]
    assert rb"Gr\u00fc\u00dfe" in answer.body
    assert not answer.is_error


@pytest.mark.parametrize("probe", ["ignore", "exit"])
async def test_a_server_of_the_earlier_era_that_cannot_stand_the_probe_is_served(
    probe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trysquare.gateway.upstream.session._PROBE_SECONDS", 0.3)
    async with open_pool({"toy": toy("toy", "--probe", probe)}, on_change=hear_nothing) as pool:
        assert await words(pool, "echo", "hi") == "hi"
        assert pool.status()["toy"].version == "2025-11-25"


@pytest.mark.parametrize("era", ERAS)
async def test_all_pages_of_a_list_are_followed(era: str) -> None:
    entry = toy("toy", "--era", era, "--page", "4", exclude_tools=frozenset({"kill"}))
    async with open_pool({"toy": entry}, on_change=hear_nothing) as pool:
        definitions = await pool.definitions("toy")
    names = [definition.name for definition in definitions]
    assert names[:3] == ["echo", "count", "fail"]
    assert len(names) == len(set(names)) > 15
    assert "kill" not in names
    assert definitions[0].is_repeatable


async def test_nothing_is_started_before_it_is_needed(tmp_path: Path) -> None:
    started = tmp_path / "started"
    async with open_pool({"toy": toy("toy", "--started", str(started))}, on_change=hear_nothing) as pool:
        assert pool.status()["toy"].state == "asleep"
        assert not started.exists()
        await pool.definitions("toy")
        await words(pool, "echo")
        assert pool.status()["toy"].state == "running"
    assert len(started.read_text().splitlines()) == 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_killed_server_is_reported_at_once_and_the_next_call_gets_a_new_one(era: str) -> None:
    async with open_pool({"toy": toy("toy", "--era", era)}, on_change=hear_nothing) as pool:
        pids = [await words(pool, "pid")]
        errors: list[ToolError] = []
        for _ in range(3):
            with pytest.raises(ToolError) as caught:
                await say(pool, "kill")
            errors.append(caught.value)
            pids.append(await words(pool, "pid"))
    assert len(set(pids)) == 4
    assert {error.fields["outcome"] for error in errors} == {"sent_unknown"}
    assert {error.code for error in errors} == {ErrorCode.UPSTREAM_LOST}
    assert "SIGKILL" in errors[0].message
    assert errors[0].message.endswith(": about to die")


async def test_a_server_that_ended_between_calls_is_replaced_without_anybody_noticing() -> None:
    async with open_pool({"toy": toy()}, on_change=hear_nothing) as pool:
        pid = int(await words(pool, "pid"))
        os.kill(pid, signal.SIGKILL)
        with anyio.fail_after(20):
            await has_ended(pid)
        assert int(await words(pool, "pid")) != pid


async def test_a_call_to_a_server_that_just_died_under_another_call_gets_a_new_one() -> None:
    async with open_pool({"toy": toy()}, on_change=hear_nothing) as pool:
        pid = int(await words(pool, "pid"))
        lost: list[ToolError] = []

        async def hang() -> None:
            with pytest.raises(ToolError) as caught:
                await say(pool, "hang")
            lost.append(caught.value)

        async with anyio.create_task_group() as group:
            group.start_soon(hang)
            await words(pool, "echo")
            os.kill(pid, signal.SIGKILL)
            # Blocks the loop on purpose: the server is gone, and nobody here can have heard of it yet.
            _wait_until_ended(pid)
            assert int(await words(pool, "pid")) != pid
    assert [error.fields["outcome"] for error in lost] == ["sent_unknown"]


def _wait_until_ended(pid: int) -> None:
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


async def test_a_call_that_a_killed_server_never_read_is_sent_to_a_new_one() -> None:
    async with open_pool({"toy": toy()}, on_change=hear_nothing) as pool:
        pid = int(await words(pool, "pid"))
        os.kill(pid, signal.SIGSTOP)
        await anyio.to_thread.run_sync(os.waitid, os.P_PID, pid, os.WSTOPPED)

        def kill_it() -> None:
            if pool.status()["toy"].connections and not killed:
                killed.append(pid)
                asyncio.get_running_loop().call_soon(os.kill, pid, signal.SIGKILL)

        killed: list[int] = []
        answer = await pool.call("toy", "pid", b"{}", CallContext(), on_sent=kill_it)
    assert killed == [pid]
    assert text_of(answer) != str(pid)


async def test_an_error_of_the_server_says_that_the_call_is_done() -> None:
    async with open_pool({"toy": toy()}, on_change=hear_nothing) as pool:
        with pytest.raises(ToolError) as caught:
            await say(pool, "refuse")
        answer = await say(pool, "fail")
    assert caught.value.fields == {"outcome": "done", "server": "toy", "upstream_code": -32000}
    assert caught.value.message == snapshot("`toy` refused `refuse`: not today")
    assert answer.is_error


async def test_a_call_that_runs_out_of_time_is_cancelled_and_the_server_goes_on() -> None:
    async with open_pool({"toy": toy("toy", timeout=0.2)}, on_change=hear_nothing) as pool:
        pid = await words(pool, "pid")
        with pytest.raises(ToolError) as caught:
            await say(pool, "late")
        assert caught.value.code == ErrorCode.TOOL_TIMEOUT
        assert caught.value.fields["outcome"] == "sent_unknown"
        assert len(json.loads(await words(pool, "cancelled"))) == 1
        assert await words(pool, "pid") == pid


async def test_a_server_that_hangs_is_given_up_and_the_next_call_gets_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trysquare.gateway.upstream.session._ALIVE_SECONDS", 0.1)
    async with open_pool({"toy": toy("toy", timeout=0.3)}, on_change=hear_nothing) as pool:
        pid = int(await words(pool, "pid"))
        with pytest.raises(ToolError):
            await say(pool, "freeze")
        with anyio.fail_after(20):
            await has_ended(pid)
        assert int(await words(pool, "pid")) != pid


async def test_a_caller_that_goes_has_its_call_cancelled() -> None:
    async with open_pool({"toy": toy()}, on_change=hear_nothing) as pool:
        await words(pool, "echo")
        async with anyio.create_task_group() as group:
            group.start_soon(say, pool, "hang")
            await words(pool, "echo")
            group.cancel_scope.cancel()
        assert len(json.loads(await words(pool, "cancelled"))) == 1
        assert pool.status()["toy"].under_way == 0


async def test_garbage_floods_and_second_answers_do_no_harm() -> None:
    async with open_pool({"toy": toy()}, on_change=hear_nothing) as pool:
        assert await words(pool, "garbage") == "clean"
        assert await words(pool, "twice") == "first"
        assert await words(pool, "flood", 20_000) == "dry"
        assert await words(pool, "echo", "well") == "well"


async def test_a_large_answer_comes_whole_while_others_are_served() -> None:
    async with open_pool({"toy": toy(), "other": toy("other")}, on_change=hear_nothing) as pool:
        await words(pool, "echo", server="other")
        large: list[str] = []
        async with anyio.create_task_group() as group:

            async def fetch() -> None:
                large.append(await words(pool, "large", 50_000_000))

            group.start_soon(fetch)
            while not large:
                assert await words(pool, "echo", "quick", server="other") == "quick"
    assert len(large[0]) == 50_000_000


async def test_a_large_answer_counts_even_if_the_server_ends_right_after_it() -> None:
    async with open_pool({"toy": toy()}, on_change=hear_nothing) as pool:
        assert len(await words(pool, "farewell", 3_000_000)) == 3_000_000
        assert await words(pool, "echo", "again") == "again"


async def test_a_message_over_the_limit_ends_the_connection_with_a_reason() -> None:
    async with open_pool({"toy": toy("toy", max_line=10_000)}, on_change=hear_nothing) as pool:
        with pytest.raises(ToolError, match="more than 10000 bytes"):
            await say(pool, "large", 20_000)
        assert await words(pool, "echo", "again") == "again"


async def test_a_mute_server_delays_no_call_to_another() -> None:
    servers = {"toy": toy(), "mute": toy("mute", "--era", "mute", start_timeout=60.0)}
    async with open_pool(servers, on_change=hear_nothing) as pool, anyio.create_task_group() as group:
        group.start_soon(pool.definitions, "mute")
        assert await words(pool, "echo", "hi") == "hi"
        assert pool.status()["mute"].state == "starting"
        group.cancel_scope.cancel()


async def test_a_server_that_says_nothing_is_reported_and_nothing_was_sent() -> None:
    entry = toy("mute", "--era", "mute", start_timeout=0.3)
    async with open_pool({"mute": entry}, on_change=hear_nothing) as pool:
        with pytest.raises(ToolError) as caught:
            await pool.definitions("mute")
    assert caught.value.fields["outcome"] == "not_sent"
    assert caught.value.code == ErrorCode.UPSTREAM_UNAVAILABLE
    assert "within 0.3 seconds" in caught.value.message


async def test_a_server_that_keeps_failing_is_left_alone_for_a_while(tmp_path: Path) -> None:
    started = tmp_path / "started"
    entry = toy("toy", "--exit", "4", "--started", str(started))
    async with open_pool({"toy": entry}, on_change=hear_nothing) as pool:
        errors: list[ToolError] = []
        for _ in range(4):
            with pytest.raises(ToolError) as caught:
                await say(pool, "echo")
            errors.append(caught.value)
        status = pool.status()["toy"]
    assert all("status 4" in error.message for error in errors)
    assert all(error.message.endswith(": cannot read its licence") for error in errors)
    assert "2 times in a row" in errors[3].message
    assert {error.fields["outcome"] for error in errors} == {"not_sent"}
    assert (status.state, status.failures) == ("resting", 2)
    # A server that ends during the probe is given the handshake of the earlier era before it counts as failed.
    assert len(started.read_text().splitlines()) == 4


async def test_a_command_that_does_not_exist_is_named_with_its_place() -> None:
    entry = dataclasses.replace(toy(), command="no-such-command")
    async with open_pool({"toy": entry}, on_change=hear_nothing) as pool:
        with pytest.raises(ToolError) as caught:
            await pool.definitions("toy")
    assert caught.value.code == ErrorCode.UPSTREAM_UNAVAILABLE
    assert "`no-such-command`" in caught.value.message
    assert "mcp.json:3" in caught.value.message


async def test_an_unknown_server_names_those_that_exist() -> None:
    async with open_pool({"toy": toy()}, on_change=hear_nothing) as pool:
        with pytest.raises(NotFound, match="`toy`"):
            await say(pool, "echo", server="tay")


async def test_an_idle_server_is_put_to_sleep_and_woken_by_the_next_call() -> None:
    async with open_pool({"toy": toy("toy", idle=0.05)}, on_change=hear_nothing) as pool:
        pid = int(await words(pool, "pid"))
        with anyio.fail_after(20):
            await has_ended(pid)
        assert pool.status()["toy"].state == "asleep"
        assert int(await words(pool, "pid")) != pid


async def test_callers_share_a_server_or_have_one_each() -> None:
    servers = {"shared": toy("shared"), "own": toy("own", sharing="caller")}
    ada, bob = called_by(Person(), "ada"), called_by(Person(), "bob")
    async with open_pool(servers, on_change=hear_nothing) as pool:
        shared = {await words(pool, "pid", server="shared", context=who) for who in (ada, bob)}
        own = {await words(pool, "pid", server="own", context=who) for who in (ada, bob, ada)}
        assert pool.status()["own"].connections == 2
    assert (len(shared), len(own)) == (1, 2)


async def test_only_so_many_calls_are_under_way_at_once() -> None:
    entry = toy("toy", concurrency=1, timeout=0.3)
    async with open_pool({"toy": entry}, on_change=hear_nothing) as pool:
        await words(pool, "echo")
        errors: list[ToolError] = []

        async def hang() -> None:
            try:
                await say(pool, "hang")
            except ToolError as error:
                errors.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(hang)
            group.start_soon(hang)
        outcomes = sorted(str(error.fields["outcome"]) for error in errors)
        assert outcomes in (["not_sent", "sent_unknown"], ["sent_unknown", "sent_unknown"])
        assert await words(pool, "echo", "free") == "free"


async def test_a_server_gets_its_own_variables_and_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRYSQUARE_TOKEN", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    async with open_pool({"toy": toy("toy", env={"KEY": "k"})}, on_change=hear_nothing) as pool:
        environment = json.loads(await words(pool, "environment"))
    assert (environment["KEY"], environment["LANG"]) == ("k", "C.UTF-8")
    assert not {"TRYSQUARE_TOKEN", "AWS_SECRET_ACCESS_KEY"} & set(environment)


@pytest.mark.parametrize("era", ERAS)
async def test_a_changed_list_is_announced(era: str) -> None:
    changed = anyio.Event()
    changes: list[tuple[str, str]] = []

    def hear(server: str, kind: str) -> None:
        changes.append((server, kind))
        if kind == "tools":
            changed.set()

    async with open_pool({"toy": toy("toy", "--era", era)}, on_change=hear) as pool:
        before = len(await pool.definitions("toy"))
        await words(pool, "change")
        with anyio.fail_after(20):
            await changed.wait()
        assert len(await pool.definitions("toy")) == before + 1
    assert changes == [("toy", "connected"), ("toy", "tools")]


async def test_a_change_is_not_reported_after_the_pool_was_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Longer than the pool takes to close, so that its timer would be due afterwards.
    monkeypatch.setattr("trysquare.gateway.pool.pool._CHANGE_SECONDS", 0.5)
    late: list[str] = []
    is_closed = asyncio.Event()

    def hear(server: str, kind: str) -> None:
        if is_closed.is_set():
            late.append(kind)

    async with open_pool({"toy": toy()}, on_change=hear) as pool:
        await pool.server_info("toy")
    is_closed.set()
    is_due = asyncio.Event()
    asyncio.get_running_loop().call_later(0.5, is_due.set)
    await is_due.wait()
    assert late == []


async def test_a_server_that_is_not_admitted_is_not_started(tmp_path: Path) -> None:
    def refuse(config: ServerConfig) -> None:
        raise ToolError(f"{config.name} is held", code=ErrorCode.CONSENT_REQUIRED)

    started = tmp_path / "started"
    entry = toy("toy", "--started", str(started))
    async with open_pool({"toy": entry}, on_change=hear_nothing, admit=refuse) as pool:
        for _ in range(3):
            with pytest.raises(ToolError, match="toy is held"):
                await pool.definitions("toy")
        assert pool.status()["toy"].failures == 0
    assert not started.exists()


@pytest.mark.parametrize("era", ERAS)
async def test_progress_reaches_a_caller_that_wants_it(era: str) -> None:
    caller = Person()
    wanting = called_by(caller, meta={"progress_token": 7})
    async with open_pool({"toy": toy("toy", "--era", era)}, on_change=hear_nothing) as pool:
        assert await words(pool, "progress", context=wanting) == "done"
        assert await words(pool, "progress", context=CallContext()) == "no token"
    assert caller.told == [(1.0, 2.0)]


@pytest.mark.parametrize("era", ERAS)
async def test_progress_that_came_during_a_notification_is_sent_before_the_answer(era: str) -> None:
    class SlowPerson(Person):
        async def progress(self, done: float, total: float | None, message: str | None) -> None:
            # What the server said before it answered this has been heard by then.
            await words(pool, "echo")
            await super().progress(done, total, message)

    caller = SlowPerson()
    async with open_pool({"toy": toy("toy", "--era", era)}, on_change=hear_nothing) as pool:
        assert await words(pool, "steps", context=called_by(caller, meta={"progress_token": 7})) == "done"
    assert caller.told[-1] == (2.0, 2.0)


async def test_other_requests_go_the_same_way() -> None:
    async with open_pool({"toy": toy()}, on_change=hear_nothing) as pool:
        assert await pool.listed("toy", "resources") == [{"uri": "toy://one", "name": "one"}]
        assert (await pool.server_info("toy")).instructions == "Be kind."
        assert (await pool.server_info("toy")).offers("resources", "subscribe")
