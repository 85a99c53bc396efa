"""Sessions: each belongs to one principal, is found by its name or as the default, and ends with its program."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from tests.debug.calling import Tools, line_of, opened, status_of
from trysquare import ToolError
from trysquare.debug.sessions import manager
from trysquare.debug.sessions.launch import AttachSpec, LaunchedProgram, LaunchEnvironment, LaunchSpec, Target
from trysquare.processes.supervisor import supervise

COUNTING = "x = 1\nx = 2\nx = 3\nx = 4\nprint(x)\n"
WAITING = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncGenerator[Tools]:
    async with opened(tmp_path) as tools:
        yield tools


async def test_a_session_is_never_visible_to_another_principal(tools: Tools) -> None:
    program = tools.write("count.py", COUNTING)
    mine = (await tools.start(program, 2, session_id="shared-name"))["session_id"]
    bob = tools.of("bob")
    assert await bob.sessions() == []
    for tool in ("session", "step", "inspect", "execute"):
        refused = await bob.refused(tool, session_id=mine)
        assert refused["error"]["code"] == "SESSION_NOT_FOUND"
        assert "Start one" in refused["instruction"]
    theirs = await bob.start(program, 3, session_id="shared-name")
    assert line_of(theirs) == 3
    assert line_of(await tools.call("step")) == 3
    assert [each["session_id"] for each in await tools.sessions()] == ["shared-name"]


async def test_the_default_is_kept_for_each_principal_and_a_given_name_wins(tools: Tools) -> None:
    program = tools.write("count.py", COUNTING)
    first = (await tools.start(program, 1))["session_id"]
    second = (await tools.start(program, 3))["session_id"]
    other = (await tools.of("bob").start(program, 4))["session_id"]
    assert (await tools.call("session"))["session_id"] == second
    await tools.call("session", action="switch", session_id=first)
    assert (await tools.call("step"))["session_id"] == first
    assert line_of(await tools.call("step", session_id=second)) == 4
    assert (await tools.call("session"))["session_id"] == first
    assert (await tools.of("bob").call("session"))["session_id"] == other


async def test_a_session_is_started_again_with_its_breakpoints_or_without(tools: Tools) -> None:
    program = tools.write("count.py", COUNTING)
    started = await tools.start(program, 2, 4, session_id="again")
    await tools.call("step")
    stop = await tools.call("session", action="restart")
    assert (line_of(stop), stop["session_id"]) == (2, started["session_id"])
    assert line_of(await tools.call("execute")) == 4
    ended = await tools.call("session", action="restart", keep_breakpoints=False)
    assert (status_of(ended), ended["data"]["exit_code"]) == ("terminated", 0)


async def test_a_session_under_way_is_not_started_but_an_ended_one_is(tools: Tools) -> None:
    program = tools.write("count.py", COUNTING)
    await tools.start(program, 2)
    refused = await tools.refused("session", action="begin")
    assert refused["error"]["code"] == "STATE_CONFLICT"
    assert status_of(await tools.call("execute")) == "terminated"
    assert line_of(await tools.call("session", action="start")) == 2


@pytest.mark.parametrize("word", ["stop", "end", "terminate", "kill"])
async def test_stopping_ends_the_program_by_every_word_for_it(tools: Tools, word: str) -> None:
    stop = await tools.start(tools.write("count.py", COUNTING), 2, session_id="gone")
    assert stop["session_id"] == "gone"
    await tools.call("session", action=word)
    assert (await tools.refused("step"))["error"]["code"] == "SESSION_NOT_FOUND"


async def test_cleaning_up_forgets_what_has_ended_and_nothing_else(tools: Tools) -> None:
    program = tools.write("count.py", COUNTING)
    await tools.start(program)
    alive = (await tools.start(program, 2))["session_id"]
    await tools.call("session", action="clean")
    assert [each["session_id"] for each in await tools.sessions()] == [alive]


async def test_a_name_in_use_is_refused(tools: Tools) -> None:
    program = tools.write("count.py", COUNTING)
    await tools.start(program, 2, session_id="mine")
    refused = await tools.refused("session_start", target=program.name, session_id="mine")
    assert refused["error"]["code"] == "STATE_CONFLICT"
    refused = await tools.refused("session_start", target=program.name, session_id="no name")
    assert refused["error"]["code"] == "VALIDATION_INVALID_PARAM"


async def test_an_ended_session_still_tells_how_and_what_it_wrote(tools: Tools) -> None:
    await tools.start(tools.write("count.py", COUNTING))
    told = await tools.call("session", action="status")
    assert told["data"]["ended"] == "exit code 0"
    assert "4" in (await tools.call("inspect", target="output"))["data"]["output"]
    assert (await tools.refused("step"))["error"]["code"] == "SESSION_TERMINATED"


async def test_events_are_sent_once_to_each_subscriber(tools: Tools) -> None:
    await tools.start(tools.write("fail.py", "x = 1\nx.y\n"), 1, subscribe_events=["exception"])
    await tools.call("execute")
    await tools.call("execute")
    told = (await tools.call("session", action="status"))["data"]["events"]
    assert [event.split(":")[0] for event in told] == ["breakpoint", "exception", "terminated"]
    assert "events" not in (await tools.call("session"))["data"]
    kinds = (await tools.call("session", action="subscribe", events=["stopped"]))["data"]["subscribed"]
    assert kinds == ["breakpoint", "stopped", "terminated"]


async def test_a_running_program_is_paused_while_another_call_waits_for_it(tools: Tools) -> None:
    stop = await tools.start(tools.write("wait.py", "import time\nx = 1\nwhile True:\n    time.sleep(0.01)\n"), 2)
    answers: list[str] = []

    async def run() -> None:
        answers.append(status_of(await tools.call("execute", timeout=60)))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            while (await tools.call("session"))["data"]["status"] != "running":
                await anyio.lowlevel.checkpoint()
            paused = await tools.call("execute", action="pause", session_id=stop["session_id"])
            answers.append(status_of(paused))
    assert answers == ["paused", "paused"]


async def test_a_call_that_does_not_wait_answers_while_the_program_runs(tools: Tools) -> None:
    await tools.start(tools.write("wait.py", WAITING), 2)
    running = await tools.call("execute", wait_for_stop=False)
    assert status_of(running) == "running"
    assert (await tools.refused("inspect"))["error"]["code"] == "STATE_NOT_PAUSED"
    assert (await tools.refused("execute"))["error"]["code"] == "STATE_NOT_PAUSED"


async def test_the_number_of_sessions_is_bounded_and_ended_ones_are_dropped(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "MOST", 2)
    program = tools.write("count.py", COUNTING)
    await tools.start(program, session_id="ended")
    for name in ("first", "second"):
        await tools.start(program, 2, session_id=name)
    assert [each["session_id"] for each in await tools.sessions()] == ["first", "second"]
    refused = await tools.refused("session_start", target=program.name)
    assert refused["error"]["code"] == "STATE_CONFLICT"


class _Clinging:
    """An engine that leaves something behind which never ends."""

    async def launch(self, spec: LaunchSpec, environment: LaunchEnvironment) -> LaunchedProgram:
        environment.run_in_background(_for_ever())
        raise ToolError("There is nothing to start.")

    async def attach(self, spec: AttachSpec, environment: LaunchEnvironment) -> LaunchedProgram:
        raise AssertionError("nothing is attached to here")


async def _for_ever() -> None:
    await anyio.sleep_forever()


async def test_closing_waits_no_longer_than_a_moment_for_work_that_never_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "_CLOSE_TIMEOUT", 0.1)
    async with supervise() as supervisor:
        all_sessions = manager.DebugSessionRegistry(supervisor, {"python": _Clinging()})
        spec = LaunchSpec(target=Target(kind="program", words=("x.py",)), root=tmp_path)
        with pytest.raises(ToolError, match="nothing to start"):
            await all_sessions.start("python", spec, principal="ann")
        with anyio.fail_after(60):
            await all_sessions.close()
