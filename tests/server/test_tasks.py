"""Calls as tasks: what a client gets, asks, answers and cancels, and who may."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.server.clients import client_of
from tests.server.task_calls import RefusedRequest, TaskClient, stored_tasks, task_client, until
from trysquare import CallContext, Consent, Declarations, TaskOptions, ToolError, Toolset
from trysquare.core.json import JsonObject
from trysquare.store import LazyDatabase
from trysquare.store.tasks import StoredTasks, TaskFile

MISSING_CAPABILITY, INVALID_PARAMS, METHOD_NOT_FOUND = -32021, -32602, -32601
YES: JsonObject = {"action": "accept", "content": {"approve": True}}


class Work:
    """Tools with tasks, and what they did."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.stopped = asyncio.Event()

    def toolset(self) -> Toolset:
        tools = Declarations()

        @tools.declare()
        async def plain() -> str:
            """Answer."""
            return "plain"

        @tools.declare(task=True)
        async def wait(context: CallContext) -> str:
            """Wait until the test lets it end."""
            self.begun.set()
            await context.progress(1, 2, "half of it")
            try:
                await self.may_end.wait()
            except asyncio.CancelledError:
                self.stopped.set()
                raise
            self.effects.append("waited")
            return "done"

        @tools.declare(task=TaskOptions(required=True))
        async def needs_task() -> str:
            """Run as a task only."""
            return "as a task"

        @tools.declare(task=True)
        async def fails() -> str:
            """Fail."""
            raise ToolError("It did not work.")

        self._declare_asking(tools)
        self._declare_becoming(tools)
        return tools.toolset()

    def _declare_asking(self, tools: Declarations) -> None:
        @tools.declare(task=True)
        async def names(context: CallContext) -> str:
            """Ask for two names, one after the other."""
            first = await context.ask("First?", str, key="first")
            second = await context.ask("Second?", str, key="second")
            self.effects.append(f"{first} and {second}")
            return f"{first} and {second}"

        @tools.declare(task=True, consent=Consent(question="Let it run?"))
        async def agreed() -> str:
            """Ask before it runs."""
            self.effects.append("agreed")
            return "ran"

    def _declare_becoming(self, tools: Declarations) -> None:
        @tools.declare(task=TaskOptions(after=None))
        async def becomes(told: bool, context: CallContext) -> str:
            """Answer, or become a task."""
            if told:
                assert await context.become_task()
                await self.may_end.wait()
            return context.request_id or ""

        @tools.declare(task=TaskOptions(after=0.05))
        async def slow(quick: bool) -> str:
            """Answer at once, or take longer than a call waits."""
            if not quick:
                await self.may_end.wait()
            return "slow"


@pytest.fixture
def work() -> Work:
    return Work()


async def test_a_call_of_a_client_with_tasks_is_answered_with_a_task_and_its_result_later(
    work: Work, tmp_path: Path
) -> None:
    async with task_client(work.toolset(), stored_tasks(tmp_path)) as client:
        created = await client.call("wait")
        assert created["resultType"] == "task"
        assert created["status"] == "working"
        assert created.keys() >= {"taskId", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"}
        work.may_end.set()
        done = await client.until(created["taskId"])
    assert done["status"] == "completed"
    assert done["result"]["content"][0]["text"] == "done"


async def test_a_client_without_tasks_gets_the_result_itself(work: Work, tmp_path: Path) -> None:
    work.may_end.set()
    async with task_client(work.toolset(), stored_tasks(tmp_path), declares=False) as client:
        result = await client.call("wait")
    assert result["content"][0]["text"] == "done"


async def test_a_tool_without_tasks_is_answered_directly(work: Work, tmp_path: Path) -> None:
    async with task_client(work.toolset(), stored_tasks(tmp_path)) as client:
        assert (await client.call("plain"))["content"][0]["text"] == "plain"
    assert not (tmp_path / "state.db").exists()


async def test_a_tool_that_needs_a_task_refuses_a_client_without_tasks(work: Work, tmp_path: Path) -> None:
    async with task_client(work.toolset(), stored_tasks(tmp_path), declares=False) as client:
        with pytest.raises(RefusedRequest) as caught:
            await client.call("needs_task")
    assert caught.value.code == MISSING_CAPABILITY
    assert caught.value.data["requiredCapabilities"] == {"extensions": {"io.modelcontextprotocol/tasks": {}}}


async def test_a_failure_of_the_tool_is_a_completed_task(work: Work, tmp_path: Path) -> None:
    async with task_client(work.toolset(), stored_tasks(tmp_path)) as client:
        done = await client.until(await client.begin("fails"))
    assert (done["status"], done["result"]["isError"]) == ("completed", True)


async def test_progress_is_the_message_of_the_task(work: Work, tmp_path: Path) -> None:
    async with task_client(work.toolset(), stored_tasks(tmp_path)) as client:
        task = await client.begin("wait")
        found = await client.until_that(task, lambda found: "statusMessage" in found)
        work.may_end.set()
    assert found["statusMessage"] == "1 of 2: half of it"


async def test_questions_are_asked_one_after_the_other_and_their_work_is_done_once(work: Work, tmp_path: Path) -> None:
    async with task_client(work.toolset(), stored_tasks(tmp_path)) as client:
        task = await client.begin("names")
        asks = await client.until(task, "input_required")
        assert list(asks["inputRequests"]) == ["first"]
        await client.answer(task, first={"action": "accept", "content": {"value": "Ada"}})
        await client.until_that(task, lambda found: list(found.get("inputRequests", ())) == ["second"])
        await client.answer(task, first={"action": "accept", "content": {"value": "Eve"}})
        assert (await client.get(task))["status"] == "input_required"
        await client.answer(task, second={"action": "accept", "content": {"value": "Grace"}})
        done = await client.until(task)
    assert done["result"]["content"][0]["text"] == "Ada and Grace"
    assert work.effects == ["Ada and Grace"]


@pytest.mark.parametrize(("approve", "effects"), [(True, ["agreed"]), (False, [])])
async def test_consent_is_asked_in_the_task(approve: bool, effects: list[str], work: Work, tmp_path: Path) -> None:
    async with task_client(work.toolset(), stored_tasks(tmp_path)) as client:
        task = await client.begin("agreed")
        [key] = (await client.until(task, "input_required"))["inputRequests"]
        assert work.effects == []
        await client.answer(task, **{key: {"action": "accept", "content": {"approve": approve}}})
        done = await client.until(task)
    assert done["status"] == "completed"
    assert work.effects == effects


async def test_a_running_task_is_cancelled_and_stays_so(work: Work, tmp_path: Path) -> None:
    async with task_client(work.toolset(), stored_tasks(tmp_path)) as client, asyncio.timeout(30):
        task = await client.begin("wait")
        await work.begun.wait()
        assert (await client.cancel(task))["resultType"] == "complete"
        assert (await client.until(task))["status"] == "cancelled"
        await work.stopped.wait()
        await client.cancel(task)
        await client.answer(task, answer=YES)
        assert (await client.get(task))["status"] == "cancelled"
    assert work.effects == []


async def test_a_task_that_asks_is_cancelled(work: Work, tmp_path: Path) -> None:
    async with task_client(work.toolset(), stored_tasks(tmp_path)) as client:
        task = await client.begin("agreed")
        [key] = (await client.until(task, "input_required"))["inputRequests"]
        await client.cancel(task)
        await client.answer(task, **{key: YES})
        assert (await client.get(task))["status"] == "cancelled"
    assert work.effects == []


@pytest.mark.parametrize("request_of", [TaskClient.get, TaskClient.cancel, TaskClient.answer])
async def test_a_task_of_another_principal_does_not_exist(
    request_of: Callable[[TaskClient, str], asyncio.Future[JsonObject]], work: Work, tmp_path: Path
) -> None:
    async with (
        task_client(work.toolset(), stored_tasks(tmp_path)) as ada,
        task_client(work.toolset(), stored_tasks(tmp_path), principal="eve") as eve,
    ):
        task = await ada.begin("wait")
        with pytest.raises(RefusedRequest) as caught:
            await request_of(eve, task)
        with pytest.raises(RefusedRequest) as unknown:
            await request_of(eve, "no-such-task")
        assert (await ada.get(task))["status"] == "working"
        work.may_end.set()
        assert (await ada.until(task))["status"] == "completed"
    assert (caught.value.code, caught.value.data["code"]) == (INVALID_PARAMS, "TASK_NOT_FOUND")
    assert (unknown.value.code, unknown.value.data["code"]) == (INVALID_PARAMS, "TASK_NOT_FOUND")


async def test_the_methods_need_the_extension(work: Work, tmp_path: Path) -> None:
    async with task_client(work.toolset(), stored_tasks(tmp_path), declares=False) as client:
        with pytest.raises(RefusedRequest) as caught:
            await client.get("any")
    assert caught.value.code == MISSING_CAPABILITY


async def test_a_principal_with_too_many_tasks_is_answered_directly_or_refused(work: Work, tmp_path: Path) -> None:
    async with task_client(work.toolset(), stored_tasks(tmp_path, most_open=1)) as client:
        task = await client.begin("wait")
        direct = await client.call("fails")
        refused = await client.call("needs_task")
        work.may_end.set()
        await client.until(task)
        again = await client.until(await client.begin("needs_task"))
    assert (direct["resultType"], direct["isError"]) == ("complete", True)
    assert refused["_meta"]["trysquare/result"]["code"] == "BUDGET_EXHAUSTED"
    assert again["result"]["content"][0]["text"] == "as a task"


async def test_a_function_becomes_a_task_when_it_says_so(work: Work, tmp_path: Path) -> None:
    async with task_client(work.toolset(), stored_tasks(tmp_path)) as client:
        direct = await client.call("becomes", told=False)
        task = await client.begin("becomes", told=True)
        work.may_end.set()
        done = await client.until(task)
    assert direct["resultType"] == "complete"
    assert done["result"]["content"][0]["text"] == task


async def test_a_call_that_takes_longer_becomes_a_task(work: Work, tmp_path: Path) -> None:
    async with task_client(work.toolset(), stored_tasks(tmp_path)) as client:
        direct = await client.call("slow", quick=True)
        task = await client.begin("slow", quick=False)
        work.may_end.set()
        done = await client.until(task)
    assert direct["content"][0]["text"] == "slow"
    assert done["result"]["content"][0]["text"] == "slow"


async def test_a_server_without_a_store_offers_no_tasks(work: Work) -> None:
    work.may_end.set()
    async with client_of(work.toolset(), "2026-07-28") as client:
        result = await client.call_tool("needs_task", {})
    assert not result.is_error


def kept_tools(cancelled: list[JsonObject]) -> Toolset:
    """Tools whose tasks hold secrets, are large, or leave something to end elsewhere."""
    tools = Declarations()

    async def on_cancel(checkpoints: Mapping[str, Any], context: CallContext) -> None:
        cancelled.append({"checkpoints": dict(checkpoints), "principal": context.principal.subject})

    @tools.declare(task=True)
    async def sign_in(password: str, context: CallContext) -> str:
        """Ask, and sign in."""
        await context.ask("Now?")
        return f"{len(password)} characters"

    @tools.declare(task=True, result_limit=None)
    async def large() -> str:
        """Return much."""
        return "x" * 10_000

    @tools.declare(task=TaskOptions(resumes=True, on_cancel=on_cancel))
    async def elsewhere(context: CallContext) -> str:
        """Begin something elsewhere, and ask."""
        if not context.checkpoints:
            await context.checkpoint("begun", {"id": 7})
        await context.ask("Go on?")
        return str(context.checkpoints["begun"])

    return tools.toolset()


def stored_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("state.db*"))


async def test_secrets_are_not_stored_and_work_while_the_server_lives(tmp_path: Path) -> None:
    secret = "correct horse battery"
    async with task_client(kept_tools([]), stored_tasks(tmp_path)) as client:
        done, lost = await client.begin("sign_in", password=secret), await client.begin("sign_in", password=secret)
        for task in (done, lost):
            await client.until(task, "input_required")
        await client.answer(done, answer={"action": "accept", "content": {}})
        assert (await client.until(done))["result"]["content"][0]["text"] == f"{len(secret)} characters"
        assert secret.encode() not in stored_bytes(tmp_path)
        # Nobody else may read them, nor see which processes have tasks.
        assert {path.stat().st_mode & 0o077 for path in (tmp_path, tmp_path / "tasks")} == {0}
    async with task_client(kept_tools([]), stored_tasks(tmp_path)) as client:
        await client.answer(lost, answer={"action": "accept", "content": {}})
        ended = await client.until(lost)
    assert (ended["status"], ended["error"]["data"]["code"]) == ("failed", "TASK_INTERRUPTED")


async def test_a_result_that_is_too_large_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trysquare.server.tasks.MAX_RESULT", 5_000)
    async with task_client(kept_tools([]), stored_tasks(tmp_path)) as client:
        ended = await client.until(await client.begin("large"))
    assert (ended["status"], ended["error"]["data"]["code"]) == ("failed", "BUDGET_EXHAUSTED")


async def test_a_cancelled_task_ends_what_it_began_elsewhere(tmp_path: Path) -> None:
    cancelled: list[JsonObject] = []
    async with task_client(kept_tools(cancelled), stored_tasks(tmp_path)) as client:
        answered, left = await client.begin("elsewhere"), await client.begin("elsewhere")
        for task in (answered, left):
            await client.until(task, "input_required")
        await client.answer(answered, answer={"action": "accept", "content": {}})
        assert (await client.until(answered))["result"]["content"][0]["text"] == "{'id': 7}"
        await client.cancel(left)
        await until(lambda: bool(cancelled))
    assert cancelled == [{"checkpoints": {"begun": {"id": 7}}, "principal": "ada"}]


async def test_a_task_is_gone_after_its_time(tmp_path: Path) -> None:
    now = [1000.0]
    tasks = StoredTasks(TaskFile(LazyDatabase(tmp_path / "state.db")), clock=lambda: now[0])
    async with task_client(kept_tools([]), tasks) as client:
        task = await client.begin("large")
        await client.until(task)
        now[0] += 3599
        assert (await client.get(task))["status"] == "completed"
        now[0] += 2
        with pytest.raises(RefusedRequest) as caught:
            await client.get(task)
    assert caught.value.data["code"] == "TASK_NOT_FOUND"
