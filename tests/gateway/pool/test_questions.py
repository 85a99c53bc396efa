"""Questions of a server reach the person behind the call, in either era on either side; nothing is sent twice."""

from __future__ import annotations

import json
import os
import signal

import anyio
import pytest

from tests.gateway.toys import ERAS, AskedLater, Person, SlowPerson, called_by, hear_nothing, say, text_of, toy, words
from trysquare import ToolError
from trysquare.core.context import ElicitRequest
from trysquare.core.errors import InputRequired
from trysquare.gateway.pool.pool import open_pool


@pytest.mark.parametrize("era", ERAS)
async def test_a_question_is_answered_by_the_user_and_names_the_server(era: str) -> None:
    person = Person("Ada")
    async with open_pool({"toy": toy("toy", "--era", era)}, on_change=hear_nothing) as pool:
        told = await words(pool, "ask", context=called_by(person))
    assert '"Ada"' in told
    question = person.questions[0]
    assert isinstance(question, ElicitRequest)
    assert question.message == "toy asks: Who are you?"


@pytest.mark.parametrize("era", ERAS)
async def test_a_model_of_the_client_is_asked(era: str) -> None:
    async with open_pool({"toy": toy("toy", "--era", era)}, on_change=hear_nothing) as pool:
        told = await words(pool, "sample", context=called_by(Person()))
    assert '"Hello."' in told


async def test_roots_are_sent_only_over_an_unshared_connection() -> None:
    servers = {"shared": toy("shared"), "own": toy("own", sharing="caller")}
    async with open_pool(servers, on_change=hear_nothing) as pool:
        own = await words(pool, "roots", server="own", context=called_by(Person()))
        early = await words(pool, "early_roots", server="own", context=called_by(Person()))
        capabilities = await words(pool, "capabilities", server="shared", context=called_by(Person()))
    assert json.loads(own) == {"roots": [{"uri": "file:///work"}]}
    assert json.loads(early) == [{"roots": [{"uri": "file:///work"}]}]
    assert sorted(json.loads(capabilities)) == ["elicitation", "extensions", "sampling"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_question_that_ends_the_call_is_answered_when_it_comes_again(era: str) -> None:
    person = AskedLater("Ada")
    async with open_pool({"toy": toy("toy", "--era", era)}, on_change=hear_nothing) as pool:
        with pytest.raises(InputRequired) as caught:
            await say(pool, "ask", context=called_by(person))
        assert list(caught.value.questions)
        with pytest.raises(InputRequired):
            await say(pool, "ask", context=called_by(person))
        person.has_answers = True
        told = await words(pool, "ask", context=called_by(person))
        assert '"Ada"' in told
        # What asks back in the modern era is called a second time with the answer; otherwise nothing is sent again.
        assert await words(pool, "count") == ("3" if era == "modern" else "2")


async def test_a_call_that_waits_for_the_user_belongs_to_its_caller() -> None:
    ada, bob = AskedLater("Ada"), AskedLater("Bob")
    entry = toy("toy", sharing="caller")
    async with open_pool({"toy": entry}, on_change=hear_nothing) as pool:
        for person, subject in ((ada, "ada"), (bob, "bob")):
            with pytest.raises(InputRequired):
                await say(pool, "ask", context=called_by(person, subject))
            person.has_answers = True
        assert '"Bob"' in await words(pool, "ask", context=called_by(bob, "bob"))
        assert '"Ada"' in await words(pool, "ask", context=called_by(ada, "ada"))


async def test_a_call_that_waits_too_long_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trysquare.gateway.pool.server.SUSPEND_SECONDS", 0.05)
    async with open_pool({"toy": toy()}, on_change=hear_nothing) as pool:
        with pytest.raises(InputRequired):
            await say(pool, "ask", context=called_by(AskedLater()))
        with anyio.fail_after(20):
            while await words(pool, "cancelled") == "[]":
                pass


async def test_a_server_that_dies_before_the_user_answers_is_reported_on_the_retry() -> None:
    person = AskedLater()
    async with open_pool({"toy": toy()}, on_change=hear_nothing) as pool:
        with pytest.raises(InputRequired):
            await say(pool, "ask", context=called_by(person))
        with pytest.raises(ToolError, match="SIGKILL"):
            await say(pool, "kill")
        with pytest.raises(ToolError, match="may or may not have taken effect"):
            await say(pool, "ask", context=called_by(person))


async def test_a_server_that_dies_while_the_client_asks_is_reported_at_once() -> None:
    person = SlowPerson()
    async with open_pool({"toy": toy()}, on_change=hear_nothing) as pool:
        pid = int(await words(pool, "pid"))

        async def kill_it() -> None:
            await person.is_asked.wait()
            os.kill(pid, signal.SIGKILL)

        async with anyio.create_task_group() as group:
            group.start_soon(kill_it)
            with anyio.fail_after(20), pytest.raises(ToolError, match="SIGKILL"):
                await say(pool, "ask", context=called_by(person))


async def test_a_server_learns_that_the_user_cannot_be_asked() -> None:
    async with open_pool({"toy": toy()}, on_change=hear_nothing) as pool:
        told = json.loads(await words(pool, "ask"))
    assert "elicitation" in told["message"]


async def test_a_question_that_could_be_anybodys_is_declined_with_the_way_out() -> None:
    ada, bob = called_by(Person("Ada"), "ada"), called_by(Person("Bob"), "bob")
    async with open_pool({"toy": toy()}, on_change=hear_nothing) as pool:
        await words(pool, "echo")
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: say(pool, "hang", context=ada))
            await words(pool, "echo")
            answer = await say(pool, "ask", context=bob)
            assert "cannot be assigned" in text_of(answer)
            assert '"sharing": "caller"' in answer.notes[0]
            group.cancel_scope.cancel()


async def test_a_list_that_is_fetched_meanwhile_makes_no_question_ambiguous() -> None:
    async with open_pool({"toy": toy("toy", "--silent-list")}, on_change=hear_nothing) as pool:
        await words(pool, "echo")
        async with anyio.create_task_group() as group:
            group.start_soon(pool.definitions, "toy")
            await words(pool, "echo")
            assert '"Ada"' in await words(pool, "ask", context=called_by(Person("Ada"), "ada"))
            group.cancel_scope.cancel()


async def test_a_question_in_parallel_calls_of_one_user_reaches_that_user() -> None:
    person = Person("Ada")
    async with open_pool({"toy": toy()}, on_change=hear_nothing) as pool:
        await words(pool, "echo")
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: say(pool, "hang", context=called_by(person)))
            await words(pool, "echo", context=called_by(person))
            assert '"Ada"' in await words(pool, "ask", context=called_by(person))
            group.cancel_scope.cancel()
