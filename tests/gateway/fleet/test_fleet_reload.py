"""A changed configuration is taken up while calls are under way, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.gateway.toys import AskedLater, called_by, has_ended, hear_nothing, say, toy, words
from trysquare.core.errors import InputRequired, NotFound
from trysquare.gateway.fleet.fleet import open_fleet


async def test_servers_whose_entry_did_not_change_go_on() -> None:
    async with open_fleet({"a": toy("a"), "b": toy("b")}, on_change=hear_nothing) as fleet:
        a, b = [int(await words(fleet, "pid", server=name)) for name in ("a", "b")]
        await fleet.replace({"a": toy("a"), "b": toy("b", env={"NEW": "1"}), "c": toy("c")})
        assert int(await words(fleet, "pid", server="a")) == a
        assert int(await words(fleet, "pid", server="b")) != b
        assert await words(fleet, "echo", "hi", server="c") == "hi"
        with anyio.fail_after(20):
            await has_ended(b)


async def test_a_call_under_way_comes_to_its_end_on_the_server_that_has_it(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    async with open_fleet({"toy": toy()}, on_change=hear_nothing) as fleet:
        pid = int(await words(fleet, "pid"))
        answers: list[str] = []

        async def call() -> None:
            answers.append(await words(fleet, "slow", gate))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await words(fleet, "echo")
            await fleet.replace({})
            with pytest.raises(NotFound):
                await say(fleet, "echo")
            gate.unlink()
        assert answers == ["slow"]
        with anyio.fail_after(20):
            await has_ended(pid)


async def test_a_call_that_waits_for_a_person_survives_a_reload() -> None:
    person = AskedLater("Ada")
    async with open_fleet({"toy": toy()}, on_change=hear_nothing) as fleet:
        pid = int(await words(fleet, "pid"))
        with pytest.raises(InputRequired):
            await say(fleet, "ask", context=called_by(person))
        await fleet.replace({"toy": toy("toy", env={"NEW": "1"})})
        assert int(await words(fleet, "pid")) != pid
        person.has_answers = True
        assert '"Ada"' in await words(fleet, "ask", context=called_by(person))
        with anyio.fail_after(20):
            await has_ended(pid)
