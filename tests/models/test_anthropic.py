"""The Messages API is spoken as documented; the server is a stand-in."""

from __future__ import annotations

import pytest
from inline_snapshot import snapshot

from tests.models.constraints import OFFER
from tests.models.stand_in import FREE_TEXT, serving
from trysquare import ErrorCode, ToolError
from trysquare.models import CallRequest, Message, ModelOptions, ModelRequest, open_model

KEY = {"ANTHROPIC_API_KEY": "k"}
USER = Message(role="user", text="Read a.py.")


async def test_an_answer_has_its_text_and_its_calls() -> None:
    with serving("anthropic", key="k") as server:
        async with open_model(f"anthropic:m@{server.url}", None, KEY) as model:
            answer = await model.answer(ModelRequest(messages=(USER,), tools=(OFFER,), must_call=True))
    assert (answer.text, answer.stop, answer.constrained_by) == (FREE_TEXT, "calls", "native")
    assert answer.calls == (CallRequest(id="toolu_1", name="read", arguments={"path": "a.py"}),)
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (10, 4)
    assert server.headers[-1]["anthropic-version"] == "2023-06-01"


async def test_the_dialogue_is_sent_in_the_blocks_of_the_api() -> None:
    calls = tuple(CallRequest(id=f"t{number}", name="read", arguments={"path": f"{number}.py"}) for number in (1, 2))
    messages = (
        Message(role="system", text="Be brief."),
        USER,
        Message(role="assistant", text="I look.", calls=calls),
        Message(role="tool", text="one", answers="t1"),
        Message(role="tool", text="gone", answers="t2", failed=True),
        Message(role="user", text="Go on."),
    )
    with serving("anthropic") as server:
        async with open_model(f"anthropic:m@{server.url}", None, KEY) as model:
            await model.answer(ModelRequest(messages=messages, tools=(OFFER,), parallel=True))
    assert server.asked[-1] == snapshot(
        {
            "model": "m",
            "max_tokens": 1024,
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Read a.py."}]},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "text", "text": "I look."},
                        {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "1.py"}},
                        {"type": "tool_use", "id": "t2", "name": "read", "input": {"path": "2.py"}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "t1", "content": "one"},
                        {"type": "tool_result", "tool_use_id": "t2", "content": "gone", "is_error": True},
                        {"type": "text", "text": "Go on."},
                    ],
                },
            ],
            "system": "Be brief.",
            "temperature": 0.0,
            "tools": [
                {
                    "name": "read",
                    "description": "Reads a file.",
                    "input_schema": {
                        "type": "object",
                        "properties": {"path": {"type": "string", "enum": ["a.py"]}},
                        "required": ["path"],
                        "additionalProperties": False,
                    },
                }
            ],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": False},
        }
    )


async def test_without_a_key_nothing_is_sent() -> None:
    with serving("anthropic") as server, pytest.raises(ToolError) as caught:
        async with open_model(f"anthropic:m@{server.url}", None, {}):
            pass
    assert caught.value.code == ErrorCode.MODEL_REFUSED
    assert "ANTHROPIC_API_KEY" in (caught.value.instruction or "")
    assert server.asked == []


@pytest.mark.parametrize(("reason", "stop"), [("refusal", "refused"), ("max_tokens", "length"), ("end_turn", "text")])
async def test_the_stop_reason_is_preserved(reason: str, stop: str) -> None:
    found = {"content": [{"type": "text", "text": "x"}], "stop_reason": reason, "usage": {}}
    with serving("anthropic", answer=found) as server:
        async with open_model(f"anthropic:m@{server.url}", None, KEY) as model:
            assert (await model.answer(ModelRequest(messages=(USER,)))).stop == stop


async def test_a_refused_key_is_reported() -> None:
    with serving("anthropic", key="other") as server:
        async with open_model(f"anthropic:m@{server.url}", ModelOptions(retries=0), KEY) as model:
            with pytest.raises(ToolError, match="API key"):
                await model.answer(ModelRequest(messages=(USER,)))
