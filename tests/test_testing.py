"""The helpers for people who test their own tools."""

from __future__ import annotations

import pytest

from trysquare import CallContext, Declarations, ErrorCode, tool
from trysquare.testing import Progress, ScriptedCaller, accept, call, decline, make_context

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
    with pytest.raises(AssertionError, match=r"no answer left for: Sure\?"):
        await make_context(caller=caller).ask("Sure?", {"type": "object"})


def test_contexts_do_not_share_handles() -> None:
    first, second = make_context(), make_context(principal="ada", scopes=["bots"], meta={"a": 1})
    assert first.handles is not second.handles
    assert (second.principal.subject, second.principal.scopes, second.meta) == ("ada", frozenset({"bots"}), {"a": 1})
