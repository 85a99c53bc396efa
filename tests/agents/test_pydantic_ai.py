"""An agent of pydantic-ai on our models: what it calls is held to its own tools."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.models.tiny_gguf import write_tiny_gguf
from tests.support import missing_component
from trysquare import ToolError
from trysquare.models import CallRequest, Message, ModelOptions, ModelRequest, ModelResponse, open_model

if importlib.util.find_spec("pydantic_ai") is None:
    missing_component("pydantic-ai-slim", "install the extra `pydantic-ai`")

from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ImageUrl

from trysquare.integrations.pydantic_ai import SPEAK, pydantic_ai_model


class Scripted:
    """A model whose answers are given beforehand, and that keeps what it was asked."""

    name = "scripted"
    context_tokens = 1000

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self._calls = list(calls)
        self.asked: list[ModelRequest] = []

    def count(self, text: str) -> int:
        return len(text)

    async def answer(self, request: ModelRequest) -> ModelResponse:
        self.asked.append(request)
        if not request.tools:
            return ModelResponse(text="Only words.")
        name, arguments = self._calls.pop(0)
        call = CallRequest(id=f"call_{len(self.asked)}", name=name, arguments=arguments)
        return ModelResponse(text="", calls=(call,), stop="calls")


async def test_an_agent_calls_its_tool_and_then_speaks() -> None:
    model = Scripted(("double", {"number": 21}), (SPEAK, {"text": "It is 42."}))
    agent = Agent(pydantic_ai_model(model), instructions="Be brief.")

    @agent.tool_plain
    def double(number: int) -> int:
        """Doubles a number."""
        return 2 * number

    result = await agent.run("Double 21.")
    assert result.output == "It is 42."
    first, second = model.asked
    assert [tool.name for tool in first.tools] == ["double", SPEAK]
    assert first.constraint is not None
    assert first.messages[0].text.startswith("Be brief.\n\n")
    assert second.messages[-1] == Message(role="tool", text="42", answers="call_1")


async def test_a_tool_that_asks_for_another_try_is_a_failed_result() -> None:
    model = Scripted(("pick", {"n": 1}), ("pick", {"n": 2}), (SPEAK, {"text": "ok"}))
    agent = Agent(pydantic_ai_model(model))

    @agent.tool_plain
    def pick(n: int) -> str:
        if n == 1:
            raise ModelRetry("Take another.")
        return "fine"

    assert (await agent.run("Pick.")).output == "ok"
    told = model.asked[1].messages[-1]
    assert (told.role, told.failed, told.answers) == ("tool", True, "call_1")
    assert "Take another." in told.text


async def test_a_structured_output_is_one_of_the_tools() -> None:
    model = Scripted(("final_result", {"response": 7}))
    result = await Agent(pydantic_ai_model(model), output_type=int).run("Seven?")
    assert result.output == 7
    assert [tool.name for tool in model.asked[0].tools] == ["final_result"]


async def test_an_agent_without_tools_gets_words() -> None:
    assert (await Agent(pydantic_ai_model(Scripted())).run("Hello")).output == "Only words."


async def test_an_image_is_refused() -> None:
    agent = Agent(pydantic_ai_model(Scripted()))
    with pytest.raises(ToolError, match="reads text only"):
        await agent.run(["Look:", ImageUrl(url="https://example.org/a.png")])


async def test_random_weights_call_only_what_the_agent_has(tmp_path: Path) -> None:
    """The whole way on the real runtime: whatever such a model writes is a valid call or words."""
    if importlib.util.find_spec("xllamacpp") is None or importlib.util.find_spec("gguf") is None:
        missing_component("xllamacpp or gguf", "install the extra `local` and the group `dev`")
    seen: list[int] = []
    async with open_model(f"local:{write_tiny_gguf(tmp_path / 'tiny.gguf')}", ModelOptions(threads=1)) as model:
        agent = Agent(pydantic_ai_model(model), output_type=[str, int], model_settings={"max_tokens": 200})

        @agent.tool_plain
        def note(number: int) -> str:
            """Notes a number."""
            seen.append(number)
            return "noted"

        output = (await agent.run("Note a number.")).output
    assert isinstance(output, str | int)
    assert all(isinstance(number, int) for number in seen)
