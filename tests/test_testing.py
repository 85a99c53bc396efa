"""The helpers for people who test their own tools."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated

import pytest
from pydantic import BaseModel

from trysquare import (
    Answer,
    CallContext,
    Client,
    Consent,
    DeclarationError,
    Declarations,
    Depends,
    ErrorCode,
    Tools,
    tool,
)
from trysquare.core.errors import NobodyToAsk
from trysquare.testing import Progress, ScriptedCaller, accept, approve, call, cancel, decline, make_context, override

tools = Declarations()


@tools.declare
async def wipe(folder: str, context: CallContext) -> str:
    await context.progress(0, 1, "asking")
    answer = await context.ask(f"Wipe {folder}?", {"type": "object", "properties": {"sure": {"type": "boolean"}}})
    await context.log("answered")
    return f"{answer.action} {dict(answer.content)}"


async def test_a_call_is_checked_like_a_clients() -> None:
    assert (await call(tools, "wipe", folder=3)).code is ErrorCode.VALIDATION_INVALID_PARAM


async def test_arguments_may_be_given_as_an_object_or_by_name() -> None:
    made = tool(lambda: "x", name="x")
    assert (await call(made, "x", {})).value == "x"
    assert (await call(tools.toolset(), "wipe", {"folder": "a"}, extra=1)).code is ErrorCode.VALIDATION_UNKNOWN_PARAM


async def test_a_script_answers_in_order_and_remembers_what_it_was_told() -> None:
    caller = ScriptedCaller(answers=[accept(sure=True), decline()])
    context = make_context(caller=caller)
    assert (await call(tools, "wipe", folder="a", context=context)).value == "accept {'sure': True}"
    assert (await call(tools, "wipe", folder="b", context=context)).value == "decline {}"
    assert [question.message for question in caller.questions] == ["Wipe a?", "Wipe b?"]
    assert caller.progress_reports == [Progress(done=0, total=1, message="asking")] * 2
    assert caller.log_lines == [("info", "answered")] * 2


async def test_a_script_without_answers_reaches_nobody() -> None:
    caller = ScriptedCaller()
    assert not caller.can_ask()
    with pytest.raises(NobodyToAsk):
        await make_context(caller=caller).ask("Sure?", {"type": "object"})


@pytest.mark.parametrize(
    ("human", "code", "ran"),
    [
        ((), ErrorCode.CONSENT_REQUIRED, 0),
        (decline(), ErrorCode.CONSENT_REFUSED, 0),
        (cancel(), ErrorCode.CONSENT_REFUSED, 0),
        ([accept()], ErrorCode.CONSENT_REFUSED, 0),
        (approve(), None, 1),
        ([approve()], None, 1),
    ],
)
async def test_a_tool_that_needs_consent_runs_only_after_a_scripted_yes(
    human: Answer | list[Answer], code: ErrorCode | None, ran: int
) -> None:
    done: list[str] = []
    burn = tool(lambda: done.append("burnt"), name="burn", consent=Consent(question="Burn it?"))
    result = await call(burn, "burn", human=human)
    assert (result.code, len(done)) == (code, ran)


async def test_either_a_context_or_a_human_answers() -> None:
    with pytest.raises(ValueError, match="either"):
        await call(tools, "wipe", human=accept(), context=make_context(), folder="/tmp/x")


class Sure(BaseModel):
    sure: bool


@pytest.mark.parametrize("schema", [Sure(sure=True), "object", [], {"properties": {"a": int}}])
async def test_a_schema_that_no_client_could_be_sent_is_refused_in_a_test_too(schema: object) -> None:
    async def ask(context: CallContext) -> str:
        return (await context.ask("Sure?", schema)).action  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]

    result = await call(tool(ask), "ask", human=accept(sure=True))
    assert result.code == ErrorCode.VALIDATION_INVALID_REQUEST


def test_contexts_do_not_share_handles() -> None:
    first, second = make_context(), make_context(principal="ada", scopes=["bots"], meta={"a": 1})
    assert first.handles is not second.handles
    assert (second.principal.subject, second.principal.scopes, second.meta) == ("ada", frozenset({"bots"}), {"a": 1})


class Database:
    def __init__(self, name: str) -> None:
        self.name = name


opened: list[str] = []
stocked = Tools()


@stocked.lifespan
async def open_database() -> AsyncGenerator[Database]:
    opened.append("open")
    yield Database("real")
    opened.append("close")


def current_user() -> str:
    return "nobody"


def greeting(user: Annotated[str, Depends(current_user)], database: Database) -> str:
    return f"{user} of {database.name}"


@stocked.tool
def show(database: Database, greeted: Annotated[str, Depends(greeting)]) -> str:
    return f"{database.name}, {greeted}"


@pytest.fixture
def was_opened() -> list[str]:
    opened.clear()
    return opened


async def test_values_stand_for_dependencies_at_any_depth_and_for_lifespans(was_opened: list[str]) -> None:
    with override(stocked, {open_database: Database("fake"), current_user: "ada"}):
        assert (await call(stocked, "show")).value == "fake, ada of fake"
        with override(stocked, {current_user: "eve"}):
            assert (await call(stocked, "show")).value == "fake, eve of fake"
        assert (await call(stocked, "show")).value == "fake, ada of fake"
    assert was_opened == []
    assert (await call(stocked, "show")).value == "real, nobody of real"
    assert was_opened == ["open", "close"]


async def test_another_function_may_run_in_their_place(was_opened: list[str]) -> None:
    async def other() -> AsyncGenerator[Database]:
        was_opened.append("other")
        yield Database("other")
        was_opened.append("end of other")

    def user(database: Database) -> str:
        return database.name.upper()

    with override(stocked, {open_database: Depends(other), current_user: Depends(user)}):
        assert (await call(stocked, "show")).value == "other, OTHER of other"
    assert was_opened == ["other", "end of other"]


async def test_overrides_reach_tools_that_are_mounted_and_those_that_clients_call(was_opened: list[str]) -> None:
    outer = Tools()
    outer.mount(stocked, "stock")
    with override(outer, {open_database: Database("fake"), current_user: "ada"}):
        async with Client(outer) as client:
            assert (await client.call_tool("stock_show")).text == "fake, ada of fake"
    assert was_opened == []


async def test_an_override_of_an_open_lifespan_counts_too(was_opened: list[str]) -> None:
    async with stocked.open() as toolset:
        with override(toolset, {open_database: Database("fake")}):
            assert (await call(toolset, "show")).value == "fake, nobody of fake"
        assert (await call(toolset, "show")).value == "real, nobody of real"


def test_a_function_that_nothing_depends_on_is_refused() -> None:
    def unknown() -> None: ...

    with pytest.raises(DeclarationError, match="current_user"), override(stocked, {unknown: 1}):
        pass
    with pytest.raises(DeclarationError, match="Nothing fills in"), override(stocked, {current_user: Depends(len)}):
        pass
    with pytest.raises(DeclarationError), override(stocked, {"current_user": 1}):  # pyright: ignore[reportArgumentType]
        pass
