"""The loop: what a model says is run, what came of it is told, and the run ends when its work is shown to be done."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.agents.scripted import FINISH, GIVE_UP, ScriptedModel, call, definition, run_script, workbench
from trysquare import Answer, CallContext, ConfigurationError, DynamicToolset, ErrorCode, Result, Tool, ToolError, tool
from trysquare.agents.budget import Budget
from trysquare.agents.completion import Criteria
from trysquare.core.context import ElicitRequest, SilentCaller
from trysquare.models import CallRequest, ModelResponse, Usage


def echo_tool(name: str = "echo", **options: Any) -> Tool:
    async def echo(text: str) -> str:
        """Say it again."""
        return text

    return tool(echo, name=name, **options)


def suite_tool(outcomes: list[bool]) -> Tool:
    """Tests that pass or fail as it is written."""

    async def suite() -> Result[Any]:
        """Run the tests."""
        passed = outcomes.pop(0)
        return Result(success=passed, error=None if passed else "1 failed", fields={"passed": passed})

    return tool(suite, name="test")


async def test_a_run_goes_through_real_tools_and_changes_a_file(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("total = 1\n", encoding="utf-8")
    said = [
        call("file", action="read", path="shop.py"),
        call("file", action="replace", path="shop.py", old="total = 1", new="total = 2"),
        call("finish", summary="Set the total to 2.", files=["shop.py"]),
    ]
    async with workbench(tmp_path) as toolset:
        outcome = await run_script(said, toolset, root=tmp_path)
    assert (tmp_path / "shop.py").read_text(encoding="utf-8") == "total = 2\n"
    assert outcome.finished
    assert outcome.summary == "Set the total to 2."
    assert outcome.modified_files == ("shop.py",)
    assert outcome.spent.steps == 3


async def test_the_result_of_a_call_is_in_the_next_request() -> None:
    model = ScriptedModel([call("echo", text="hello there"), FINISH])
    await run_script(model, [echo_tool()])
    assert [message.role for message in model.messages()] == ["system", "user", "assistant", "tool"]
    assert model.told() == "hello there"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit, SystemExit])
async def test_a_tool_that_raises_what_ends_programs_does_not_end_the_run(kind: type[BaseException]) -> None:
    def interrupted() -> str:
        """Raise."""
        raise kind

    model = ScriptedModel([call("interrupted"), call("echo", text="still here"), FINISH])
    outcome = await run_script(model, [tool(interrupted), echo_tool()])
    assert outcome.finished
    assert model.told() == "still here"


async def test_calls_in_plain_text_are_run_and_dropped_pieces_are_reported() -> None:
    model = ScriptedModel(
        ['I will echo.\n```json\n{"tool": "echo", "args": {"text": "a"}}\n```\n{"name": "nothing", "args": {}}', FINISH]
    )
    await run_script(model, [echo_tool()])
    assert model.messages()[-2].text == "a"
    _, dropped = model.told().splitlines()
    assert dropped.startswith('- {"name": "nothing", "args": {}}: ')
    assert "`nothing`" in dropped
    assert "echo, give_up, note" in dropped


async def test_saying_that_it_is_done_ends_nothing() -> None:
    model = ScriptedModel(["I am finished. TASK_COMPLETE.", GIVE_UP])
    outcome = await run_script(model, [echo_tool()])
    assert outcome.status == "gave_up"
    assert "no valid call" in model.told()


async def test_finish_is_offered_only_once_its_criteria_hold() -> None:
    agent = definition(criteria=Criteria(tests_pass=True))
    model = ScriptedModel([call("test"), call("test"), FINISH])
    outcome = await run_script(model, [suite_tool([False, True, True])], agent=agent)
    assert outcome.finished
    assert [("finish" in model.offered(number)) for number in range(3)] == [False, False, True]
    assert model.requests[0].messages[0] == model.requests[2].messages[0], "the text stays the same, for caches"


async def test_finish_runs_the_tests_once_more_and_does_not_believe_a_model() -> None:
    agent = definition(criteria=Criteria(tests_pass=True))
    model = ScriptedModel([call("test"), FINISH, call("give_up", reason="They fail now and then.")])
    outcome = await run_script(model, [suite_tool([True, False])], agent=agent)
    assert outcome.status == "gave_up"
    assert "some fail" in model.told()


async def test_finish_with_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "there.txt").write_text("", encoding="utf-8")
    said = [
        call("echo", text="x"),
        call("finish", summary="Done.", files=["gone.txt", "/etc/passwd", "../up.txt"]),
        call("finish", summary="Done.", files=["there.txt"]),
    ]
    model = ScriptedModel(said)
    outcome = await run_script(model, [echo_tool()], root=tmp_path)
    assert outcome.finished
    wrong = model.told().partition("not finished: ")[2].splitlines()[0]
    for file, reason in zip(("gone.txt", "/etc/passwd", "../up.txt"), wrong.split("; "), strict=True):
        assert reason.startswith(f"`{file}` ")


async def test_finish_that_is_called_before_it_is_open_is_refused() -> None:
    agent = definition(criteria=Criteria(called=("echo",)))
    model = ScriptedModel([FINISH, call("echo", text="now"), FINISH])
    outcome = await run_script(model, [echo_tool()], agent=agent)
    assert outcome.finished
    assert "call `echo` successfully" in model.requests[1].messages[-1].text


async def test_calls_that_only_read_run_at_the_same_time_and_others_one_after_the_other() -> None:
    running, most = 0, 0
    both = asyncio.Event()

    async def look(name: str) -> str:
        """Look."""
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        if running == 2:
            both.set()
        with anyio.fail_after(5):
            await both.wait()
        running -= 1
        return name

    order: list[str] = []

    async def change(name: str) -> str:
        """Change."""
        order.append(name)
        return name

    tools = [tool(look, read_only=True), tool(change)]
    said = [
        [call("look", name="a"), call("look", name="b"), call("change", name="c"), call("change", name="d")],
        FINISH,
    ]
    model = ScriptedModel(said)
    await run_script(model, tools)
    assert most == 2
    assert order == ["c", "d"]
    assert [message.text for message in model.messages()[-4:]] == ["a", "b", "c", "d"]


async def test_a_run_ends_with_its_steps_its_tokens_and_its_cost() -> None:
    forever = [call("echo", text=str(number)) for number in range(20)]
    steps = await run_script(list(forever), [echo_tool()], agent=definition(budget=Budget(steps=4)))
    assert (steps.status, steps.summary) == ("out_of_budget", "All 4 steps are used.")
    tokens = await run_script(list(forever), [echo_tool()], agent=definition(budget=Budget(tokens=300)))
    assert (tokens.status, tokens.spent.steps) == ("out_of_budget", 3)
    dear = [ModelResponse(text='{"name": "echo", "args": {"text": "x"}}', usage=Usage(cost=0.75))] * 3
    cost = await run_script(list(dear), [echo_tool()], agent=definition(budget=Budget(cost=1.0)))
    assert (cost.status, cost.spent.steps) == ("out_of_budget", 2)


async def test_a_model_that_does_not_answer_in_time_ends_the_run() -> None:
    class Slow(ScriptedModel):
        async def answer(self, request: Any) -> ModelResponse:
            await asyncio.Event().wait()
            raise AssertionError

    agent = definition(budget=Budget(seconds=0.01))
    with anyio.fail_after(20):
        outcome = await run_script(Slow([]), [echo_tool()], agent=agent)
    assert outcome.status == "out_of_budget"


async def test_a_model_that_repeats_itself_is_warned_and_then_stopped() -> None:
    model = ScriptedModel([call("echo", text="again")] * 10)
    outcome = await run_script(model, [echo_tool()])
    assert (outcome.status, outcome.spent.steps) == ("stuck", 4)
    assert "`echo`" in outcome.summary
    assert "4 times" in outcome.summary
    assert "`echo` 3 times" in model.told()


def counting_tool(**options: Any) -> Tool:
    """A tool that never answers the same."""
    answers = itertools.count()

    async def count() -> int:
        """Count."""
        return next(answers)

    return tool(count, name="count", **options)


async def test_the_same_call_is_noticed_whatever_it_answers() -> None:
    note = call("note", action="open_task", text="Fix the tests")
    noted = await run_script([note] * 20)
    assert (noted.status, noted.spent.steps) == ("stuck", 6)
    counted = await run_script([call("count")] * 20, [counting_tool()])
    assert (counted.status, counted.spent.steps) == ("stuck", 6)
    model = ScriptedModel([call("count")] * 20)
    polled = await run_script(model, [counting_tool(read_only=True)])
    assert (polled.status, polled.spent.steps) == ("stuck", 12)
    assert any("same call of `count`" in message.text for message in model.messages())


async def test_notes_alone_are_no_progress() -> None:
    notes = [call("note", action="open_task", text=str(number)) for number in range(20)]
    outcome = await run_script(notes)
    assert (outcome.status, outcome.spent.steps) == ("stuck", 6)


async def test_a_call_may_come_again_after_something_was_done() -> None:
    said = [step for number in range(8) for step in (call("edit", text=str(number)), call("count"))]
    outcome = await run_script([*said, GIVE_UP], [echo_tool("edit"), counting_tool()])
    assert outcome.status == "gave_up"
    assert (await run_script([*said, GIVE_UP], [echo_tool("edit"), echo_tool("count")])).status == "gave_up"


async def test_two_calls_that_undo_each_other_are_noticed() -> None:
    said = [step for _ in range(20) for step in (call("edit", text="a"), call("count"), call("edit", text="b"))]
    outcome = await run_script(said, [echo_tool("edit"), counting_tool()])
    assert outcome.status == "stuck"
    assert outcome.spent.steps < 15


async def test_a_tool_that_comes_while_the_run_goes_on_is_offered_and_one_that_goes_is_not() -> None:
    toolset = DynamicToolset([echo_tool("first")])

    async def swap() -> str:
        """Put another tool in place."""
        toolset.replace(tools=[swapping, echo_tool("second")])
        return "swapped"

    swapping = tool(swap)
    toolset.replace(tools=[swapping, echo_tool("first")])
    model = ScriptedModel([call("swap"), call("second", text="here"), FINISH])
    outcome = await run_script(model, toolset)
    assert outcome.finished
    assert "first" in model.offered(0)
    assert "second" not in model.offered(0)
    assert model.offered(1)[:2] == ["swap", "second"]
    assert model.told() == "here"


async def test_a_missing_required_tool_is_reported_before_the_first_request() -> None:
    agent = definition('name = "a"\ndescription = "d"\ninstructions = "i"\n[tools]\nrequired = ["file"]')
    model = ScriptedModel([])
    with pytest.raises(ConfigurationError, match="file: "):
        await run_script(model, [echo_tool()], agent=agent)


async def test_a_tool_whose_capability_is_missing_is_not_offered_and_the_reason_is_given() -> None:
    async def missing() -> str | None:
        return "git is not installed"

    async def there() -> str | None:
        return None

    tools = [echo_tool("branches", needs=("git",), requirement="conditional"), echo_tool("weather", needs=("network",))]
    model = ScriptedModel([GIVE_UP])
    outcome = await run_script(model, tools, probes={"git": missing, "network": there})
    assert "branches" not in model.offered()
    assert "weather" in model.offered()
    assert "- branches: git is not installed" in model.messages()[0].text
    assert outcome.missing == {"branches": "git is not installed"}


async def test_of_many_optional_tools_those_that_fit_the_task_are_offered_and_others_are_found() -> None:
    subjects = ["invoices", "weather", "postcards", "recipes", "trains", "music", "plants", "chess", "taxes", "boats"]
    tools = [
        echo_tool(f"{verb}_{subject}", category=subject, use_when=f"you want to {verb} {subject}")
        for subject in subjects
        for verb in ("find", "delete")
    ]
    model = ScriptedModel([call("find_tools", query="delete recipes"), call("delete_recipes", text="x"), FINISH])
    outcome = await run_script(model, tools, task="Find the invoices of the last year.")
    assert outcome.finished
    assert "find_invoices" in model.offered(0)
    assert "delete_recipes" not in model.offered(0)
    assert "delete_recipes" in model.offered(1)
    assert len(model.offered(0)) < 17


async def test_a_long_result_is_cut_in_its_middle() -> None:
    async def shout() -> str:
        """Say much."""
        return "a" * 50_000 + "END"

    model = ScriptedModel([call("shout"), FINISH])
    await run_script(model, [tool(shout, result_limit=None)])
    assert len(model.told()) <= 8_000
    assert model.told().endswith("END")
    assert "characters omitted" in model.told()


async def test_a_long_dialogue_keeps_the_task_the_notes_and_the_handles() -> None:
    async def open_session(number: int) -> Result[Any]:
        """Open one."""
        return Result.ok("x" * 2_000, fields={"session_id": f"session-{number}"})

    said: list[Any] = [
        call("note", action="decide", text="keep the old format"),
        call("note", action="open_task", text="update the docs"),
        *(call("open_session", number=number) for number in range(12)),
        FINISH,
    ]
    model = ScriptedModel(said, context_tokens=6_000)
    outcome = await run_script(model, [tool(open_session)], task="Mend the parser.")
    assert outcome.finished
    whole = "\n".join(message.text for message in model.messages())
    for kept in ("Mend the parser.", "decided: keep the old format", "open task 1: update the docs", "session-0"):
        assert kept in whole
    assert model.count(whole) < 6_000


async def test_a_server_that_finds_the_dialogue_too_long_gets_a_shorter_one() -> None:
    def full(request: Any) -> Any:
        raise ToolError("too long", code=ErrorCode.MODEL_CONTEXT_FULL)

    model = ScriptedModel([*(call("echo", text=str(n) * 3_000) for n in range(4)), full, FINISH], context_tokens=20_000)
    outcome = await run_script(model, [echo_tool(result_limit=None)])
    assert outcome.finished
    lengths = [sum(len(message.text) for message in request.messages) for request in model.requests]
    assert lengths[-1] < lengths[-2]


async def test_a_failure_of_the_model_itself_is_raised() -> None:
    def gone(request: Any) -> Any:
        raise ToolError("the server is gone", code=ErrorCode.MODEL_UNAVAILABLE)

    with pytest.raises(ToolError, match="the server is gone"):
        await run_script([gone], [echo_tool()])


class Person(SilentCaller):
    """Somebody who answers."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.questions: list[ElicitRequest] = []

    def can_ask(self) -> bool:
        return True

    async def ask(self, question: ElicitRequest) -> Answer:
        self.questions.append(question)
        return self._answer


async def test_a_model_can_ask_the_user_and_reads_the_answer() -> None:
    person = Person(Answer(action="accept", content={"answer": "trim them"}))
    model = ScriptedModel([call("ask_person", question="Refuse empty names, or trim them?"), GIVE_UP])
    await run_script(model, [echo_tool()], context=CallContext(caller=person))
    assert model.told() == "trim them"
    assert "ask_person" in model.offered(0)


async def test_an_unsure_model_gets_further_tools_first_and_else_the_user_is_asked() -> None:
    person = Person(Answer(action="accept", content={"answer": "use echo"}))
    unsure = ModelResponse(
        text='{"name": "echo", "args": {"text": "x"}}', choice={"echo": 0.3, "other": 0.28, "third": 0.2}
    )
    model = ScriptedModel([unsure, GIVE_UP])
    await run_script(model, [echo_tool(), echo_tool("other"), echo_tool("third")], context=CallContext(caller=person))
    assert "`echo` (30%), `other` (28%), `third` (20%)" in person.questions[0].message
    assert model.told().endswith(": use echo")


async def test_a_toolset_whose_names_are_those_of_the_loop_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="finish"):
        await run_script([], [echo_tool("finish")])


async def test_a_run_in_which_nothing_was_done_cannot_finish() -> None:
    model = ScriptedModel([FINISH, GIVE_UP])
    outcome = await run_script(model, [echo_tool()])
    assert outcome.status == "gave_up"
    assert "finish" not in model.offered(0)
    assert "no tool call has succeeded yet" in model.told()


def cut(text: str = "Let me think about") -> ModelResponse:
    return ModelResponse(text=text, stop="length", usage=Usage(prompt_tokens=10, completion_tokens=10))


async def test_a_truncated_answer_is_reported_and_the_run_continues() -> None:
    model = ScriptedModel([cut(), call("echo", text="a"), GIVE_UP])
    outcome = await run_script(model, [echo_tool()], agent=definition(answer_tokens=500))
    assert outcome.status == "gave_up"
    assert [request.max_tokens for request in model.requests] == [500] * 3
    assert "truncated at 500 tokens" in model.told(1)


async def test_a_model_whose_answers_are_all_cut_is_stopped_with_the_reason() -> None:
    outcome = await run_script([cut("")] * 5, [echo_tool()])
    assert (outcome.status, outcome.spent.steps) == ("stuck", 3)
    assert "answer_tokens" in outcome.summary


async def test_the_calls_of_an_answer_that_was_cut_behind_them_are_run() -> None:
    answer = replace(cut("text"), calls=(CallRequest(id="1", name="echo", arguments={"text": "a"}),))
    model = ScriptedModel([answer, GIVE_UP])
    outcome = await run_script(model, [echo_tool()])
    assert outcome.calls == 2
    assert "was truncated" in model.told()


@pytest.mark.parametrize(
    ("context", "own", "given", "most"),
    [(32_768, None, None, 4_096), (8_000, None, None, 2_000), (32_768, 9_000, 100, 9_000), (32_768, None, 100, 100),
     (8_000, 50_000, None, 4_000)],
)  # fmt: skip
async def test_how_long_an_answer_may_be_is_a_setting(
    context: int, own: int | None, given: int | None, most: int
) -> None:
    model = ScriptedModel([GIVE_UP], context_tokens=context)
    await run_script(model, [echo_tool()], agent=definition(answer_tokens=own), answer_tokens=given)
    assert model.requests[0].max_tokens == most


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, GeneratorExit, BaseExceptionGroup])
@pytest.mark.parametrize("threaded", [True, False])
def test_whatever_a_tool_raises_does_not_end_the_run(raised: type[BaseException], threaded: bool) -> None:
    def error() -> BaseException:
        return BaseExceptionGroup("both", [KeyboardInterrupt()]) if raised is BaseExceptionGroup else raised()

    async def breaks() -> str:
        """Break."""
        raise error()

    def breaks_in_a_thread() -> str:
        """Break."""
        raise error()

    broken = tool(breaks_in_a_thread if threaded else breaks, name="breaks")
    model = ScriptedModel([call("breaks"), GIVE_UP])
    # As `trysquare run` does it: only a loop that asyncio runs can tell Ctrl-C from an exception of the same name.
    outcome = asyncio.run(run_script(model, [broken]))
    assert outcome.status == "gave_up"
    assert "incident" in model.told()
