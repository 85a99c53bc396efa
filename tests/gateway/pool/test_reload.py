"""A changed configuration is taken up while calls are under way, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.gateway.toys import AskedLater, called_by, has_ended, hear_nothing, say, toy, words
from trysquare.core.errors import InputRequired, NotFound
from trysquare.gateway.pool.pool import open_pool


async def test_servers_whose_entry_did_not_change_go_on() -> None:
    async with open_pool({"a": toy("a"), "b": toy("b")}, on_change=hear_nothing) as pool:
        a, b = [int(await words(pool, "pid", server=name)) for name in ("a", "b")]
        await pool.replace({"a": toy("a"), "b": toy("b", env={"NEW": "1"}), "c": toy("c")})
        assert int(await words(pool, "pid", server="a")) == a
        assert int(await words(pool, "pid", server="b")) != b
        assert await words(pool, "echo", "hi", server="c") == "hi"
        with anyio.fail_after(20):
            await has_ended(b)


async def test_a_call_under_way_comes_to_its_end_on_the_server_that_has_it(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    async with open_pool({"toy": toy()}, on_change=hear_nothing) as pool:
        pid = int(await words(pool, "pid"))
        answers: list[str] = []

        async def call() -> None:
            answers.append(await words(pool, "slow", gate))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await words(pool, "echo")
            await pool.replace({})
            with pytest.raises(NotFound):
                await say(pool, "echo")
            gate.unlink()
        assert answers == ["slow"]
        with anyio.fail_after(20):
            await has_ended(pid)


async def test_a_call_that_waits_for_the_user_survives_a_reload() -> None:
    person = AskedLater("Ada")
    async with open_pool({"toy": toy()}, on_change=hear_nothing) as pool:
        pid = int(await words(pool, "pid"))
        with pytest.raises(InputRequired):
            await say(pool, "ask", context=called_by(person))
        await pool.replace({"toy": toy("toy", env={"NEW": "1"})})
        assert int(await words(pool, "pid")) != pid
        person.has_answers = True
        assert '"Ada"' in await words(pool, "ask", context=called_by(person))
        with anyio.fail_after(20):
            await has_ended(pid)
