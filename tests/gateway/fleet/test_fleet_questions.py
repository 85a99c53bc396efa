"""Questions of a server reach the person behind the call, in either era on either side; nothing is sent twice."""

from __future__ import annotations

import json
import os
import signal

import anyio
import pytest

from tests.gateway.toys import ERAS, AskedLater, Person, SlowPerson, called_by, hear_nothing, say, text_of, toy, words
from trysquare.core.client_requests import Question
from trysquare.core.errors import InputRequired, ToolError
from trysquare.gateway.fleet.fleet import open_fleet


@pytest.mark.parametrize("era", ERAS)
async def test_a_question_is_answered_by_the_person_and_names_who_asks(era: str) -> None:
    person = Person("Ada")
    async with open_fleet({"toy": toy("toy", "--era", era)}, on_change=hear_nothing) as fleet:
        told = await words(fleet, "ask", context=called_by(person))
    assert '"Ada"' in told
    question = person.questions[0]
    assert isinstance(question, Question)
    assert question.message == "toy asks: Who are you?"


@pytest.mark.parametrize("era", ERAS)
async def test_a_model_of_the_client_is_asked(era: str) -> None:
    async with open_fleet({"toy": toy("toy", "--era", era)}, on_change=hear_nothing) as fleet:
        told = await words(fleet, "sample", context=called_by(Person()))
    assert '"Hello."' in told


async def test_folders_are_told_only_over_a_connection_of_the_caller_alone() -> None:
    servers = {"shared": toy("shared"), "own": toy("own", sharing="caller")}
    async with open_fleet(servers, on_change=hear_nothing) as fleet:
        own = await words(fleet, "roots", server="own", context=called_by(Person()))
        early = await words(fleet, "early_roots", server="own", context=called_by(Person()))
        capabilities = await words(fleet, "capabilities", server="shared", context=called_by(Person()))
    assert json.loads(own) == {"roots": [{"uri": "file:///work"}]}
    assert json.loads(early) == [{"roots": [{"uri": "file:///work"}]}]
    assert sorted(json.loads(capabilities)) == ["elicitation", "sampling"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_question_that_ends_the_call_is_answered_when_it_comes_again(era: str) -> None:
    person = AskedLater("Ada")
    async with open_fleet({"toy": toy("toy", "--era", era)}, on_change=hear_nothing) as fleet:
        with pytest.raises(InputRequired) as caught:
            await say(fleet, "ask", context=called_by(person))
        assert list(caught.value.questions)
        with pytest.raises(InputRequired):
            await say(fleet, "ask", context=called_by(person))
        person.has_answers = True
        told = await words(fleet, "ask", context=called_by(person))
        assert '"Ada"' in told
        # What asks back in the modern era is called a second time with the answer; otherwise nothing is sent again.
        assert await words(fleet, "count") == ("3" if era == "modern" else "2")


async def test_a_call_that_waits_for_a_person_is_nobody_elses() -> None:
    ada, bob = AskedLater("Ada"), AskedLater("Bob")
    entry = toy("toy", sharing="caller")
    async with open_fleet({"toy": entry}, on_change=hear_nothing) as fleet:
        for person, subject in ((ada, "ada"), (bob, "bob")):
            with pytest.raises(InputRequired):
                await say(fleet, "ask", context=called_by(person, subject))
            person.has_answers = True
        assert '"Bob"' in await words(fleet, "ask", context=called_by(bob, "bob"))
        assert '"Ada"' in await words(fleet, "ask", context=called_by(ada, "ada"))


async def test_a_call_that_waits_too_long_is_cancelled() -> None:
    entry = {"toy": toy()}
    async with open_fleet(entry, on_change=hear_nothing, parked_seconds=0.05) as fleet:
        with pytest.raises(InputRequired):
            await say(fleet, "ask", context=called_by(AskedLater()))
        with anyio.fail_after(20):
            while await words(fleet, "cancelled") == "[]":
                pass


async def test_a_server_that_dies_while_a_person_thinks_is_told_when_the_call_comes_again() -> None:
    person = AskedLater()
    async with open_fleet({"toy": toy()}, on_change=hear_nothing) as fleet:
        with pytest.raises(InputRequired):
            await say(fleet, "ask", context=called_by(person))
        with pytest.raises(ToolError, match="ended by SIGKILL"):
            await say(fleet, "kill")
        with pytest.raises(ToolError, match="may or may not have taken effect"):
            await say(fleet, "ask", context=called_by(person))


async def test_a_server_that_dies_while_the_client_asks_is_told_at_once() -> None:
    person = SlowPerson()
    async with open_fleet({"toy": toy()}, on_change=hear_nothing) as fleet:
        pid = int(await words(fleet, "pid"))

        async def kill_it() -> None:
            await person.is_asked.wait()
            os.kill(pid, signal.SIGKILL)

        async with anyio.create_task_group() as group:
            group.start_soon(kill_it)
            with anyio.fail_after(20), pytest.raises(ToolError, match="ended by SIGKILL"):
                await say(fleet, "ask", context=called_by(person))


async def test_a_person_who_cannot_be_asked_is_told_to_the_server() -> None:
    async with open_fleet({"toy": toy()}, on_change=hear_nothing) as fleet:
        told = json.loads(await words(fleet, "ask"))
    assert "elicitation" in told["message"]


async def test_a_question_that_could_be_anybodys_is_declined_with_the_way_out() -> None:
    ada, bob = called_by(Person("Ada"), "ada"), called_by(Person("Bob"), "bob")
    async with open_fleet({"toy": toy()}, on_change=hear_nothing) as fleet:
        await words(fleet, "echo")
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: say(fleet, "hang", context=ada))
            await words(fleet, "echo")
            answer = await say(fleet, "ask", context=bob)
            assert "cannot be known" in text_of(answer)
            assert '"sharing": "caller"' in answer.notes[0]
            group.cancel_scope.cancel()


async def test_a_list_that_is_fetched_meanwhile_makes_no_question_ambiguous() -> None:
    async with open_fleet({"toy": toy("toy", "--silent-list")}, on_change=hear_nothing) as fleet:
        await words(fleet, "echo")
        async with anyio.create_task_group() as group:
            group.start_soon(fleet.definitions, "toy")
            await words(fleet, "echo")
            assert '"Ada"' in await words(fleet, "ask", context=called_by(Person("Ada"), "ada"))
            group.cancel_scope.cancel()


async def test_a_question_in_parallel_calls_of_one_person_reaches_that_person() -> None:
    person = Person("Ada")
    async with open_fleet({"toy": toy()}, on_change=hear_nothing) as fleet:
        await words(fleet, "echo")
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: say(fleet, "hang", context=called_by(person)))
            await words(fleet, "echo", context=called_by(person))
            assert '"Ada"' in await words(fleet, "ask", context=called_by(person))
            group.cancel_scope.cancel()
