"""The helpers for people who test their own tools."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from trysquare import Answer, CallContext, Consent, Declarations, ErrorCode, tool
from trysquare.core.errors import NobodyToAsk
from trysquare.testing import Progress, ScriptedCaller, accept, approve, call, cancel, decline, make_context

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
