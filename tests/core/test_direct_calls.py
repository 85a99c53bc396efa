"""Prompts and tools that call other tools, through the same call path."""

from __future__ import annotations

from tests.support import quoted_names
from trysquare import CallContext, Declarations, ErrorCode, PromptMessage, Result, Text
from trysquare.core.call import direct_calls
from trysquare.testing import ScriptedCaller, call, make_context

tools = Declarations()


@tools.declare
async def weather(place: str, context: CallContext) -> Result[str]:
    await context.progress(1, message=place)
    return Result.ok(f"Rain in {place}")


@tools.declare
async def crash() -> None:
    raise RuntimeError("secret")


@tools.declare
async def brief(place: str, context: CallContext) -> str:
    result = await context.call_tool("weather", {"place": place})
    return f"Briefly: {result.value}"


@tools.prompt
async def forecast(place: str, context: CallContext) -> str:
    """Ask for the weather."""
    result = await context.call_tool("weather", {"place": place})
    return f"The weather: {result.value}"


@tools.prompt
async def broken(context: CallContext) -> str:
    """Call what fails."""
    crashed = await context.call_tool("crash")
    refused = await context.call_tool("weather", {"plac": "Bern"})
    return f"{crashed.code} {refused.code} {refused.next}"


async def rendered(name: str, arguments: dict[str, str], context: CallContext) -> list[PromptMessage]:
    prompt = tools.toolset().find_prompt(name)
    assert prompt is not None
    return list(await prompt.render(arguments, context))


async def test_a_prompt_calls_a_tool_and_the_caller_hears_of_it() -> None:
    caller = ScriptedCaller()
    [message] = await rendered("forecast", {"place": "Bern"}, make_context(caller=caller, tools=tools))
    assert message.content == Text(text="The weather: Rain in Bern")
    assert [report.message for report in caller.progress_reports] == ["Bern"]


async def test_what_fails_inside_comes_back_as_a_result() -> None:
    [message] = await rendered("broken", {}, make_context(tools=tools))
    assert message.content == Text(
        text="INTERNAL_ERROR VALIDATION_UNKNOWN_PARAM {'tool': 'weather', 'arguments': {'place': 'Bern'}}"
    )


async def test_a_tool_calls_a_tool_with_the_same_context() -> None:
    context = CallContext(direct=direct_calls(tools.toolset()))
    assert (await call(tools, "brief", place="Rome", context=context)).value == "Briefly: Rain in Rome"


async def test_without_a_way_to_other_tools_the_failure_says_so() -> None:
    result = await call(tools, "brief", place="Rome", context=make_context())
    assert result.code is ErrorCode.CAPABILITY_NOT_SUPPORTED
    assert quoted_names(result.error) == ["weather", "direct"]


async def test_scopes_hold_for_direct_calls_too() -> None:
    context = make_context(tools=tools, scopes=["nothing"])
    [message] = await rendered("forecast", {"place": "Bern"}, context)
    assert message.content == Text(text="The weather: None")
