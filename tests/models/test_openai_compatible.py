"""A chat completions server is held in the best way that it honours; the servers are a stand-in."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from inline_snapshot import snapshot

from tests.models.constraints import OFFER, OneCall
from tests.models.stand_in import FREE_TEXT, Kind, StandIn, serving
from trysquare import ErrorCode, ToolError
from trysquare.models import CallRequest, Message, ModelOptions, ModelRequest, ModelResponse, Sampling, open_model
from trysquare.models.base import Prices

READ = CallRequest(id="call_1", name="read", arguments={"path": "a.py"})
QUICK = ModelOptions(retries=2)


def asking(**more: Any) -> ModelRequest:
    """A request that may be answered in any way."""
    words: dict[str, Any] = {"tools": (OFFER,), "constraint": OneCall(), "must_call": True, **more}
    return ModelRequest(messages=(Message(role="user", text="Read a.py."),), **words)


async def ask(server: StandIn, request: ModelRequest, options: ModelOptions = QUICK) -> ModelResponse:
    """One answer of a stand-in."""
    async with open_model(f"openai:m@{server.url}", options, {"OPENAI_API_KEY": "key"}) as model:
        return await model.answer(request)


@pytest.mark.parametrize(
    ("kind", "field", "held"),
    [
        ("llama.cpp", "grammar", "grammar"),
        ("sglang", "ebnf", "grammar"),
        ("vllm", "structured_outputs", "schema"),
        ("old vllm", "guided_json", "schema"),
        ("tools", "tools", "native"),
        ("schema", "response_format", "schema"),
    ],
)
async def test_a_server_is_asked_in_the_way_that_it_honours(kind: Kind, field: str, held: str) -> None:
    with serving(kind) as server:
        answer = await ask(server, asking())
    assert field in server.requests[-1]
    assert len(server.requests) == 1
    assert (answer.constrained_by, answer.stop) == (held, "calls")
    assert [(call.name, call.arguments) for call in answer.calls] == [("read", {"path": "a.py"})]


def completion(finish: str, **message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": finish}]}


CALLED = [{"id": "1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a.py"}'}}]
BROKEN = [{"id": "1", "type": "function", "function": {"name": "read", "arguments": '{"path":'}}]
GOOD = completion("tool_calls", content=None, tool_calls=CALLED)


async def offered_natively(answers: list[dict[str, Any]], caplog: pytest.LogCaptureFixture) -> list[bool]:
    """Whether each request offered tools natively, with a server that takes tools and answers so."""
    caplog.clear()
    with serving("tools") as server:
        async with open_model(f"openai:m@{server.url}", QUICK, {"OPENAI_API_KEY": "key"}) as model:
            await model.answer(asking())
            for each in answers:
                server.answer = each
                await model.answer(asking())
    return ["tools" in body for body in server.requests[1:]]


async def test_one_answer_does_not_decide_that_tools_are_not_offered_natively(caplog: pytest.LogCaptureFixture) -> None:
    text = completion("stop", content="I think that I should read it.")
    cut, thought = (
        completion("length", content="I th"),
        completion("length", content=None, reasoning_content="Hm. " * 50),
    )
    refused = completion("content_filter", content="")
    broken, broken_cut = completion("tool_calls", tool_calls=BROKEN), completion("length", tool_calls=BROKEN)
    for harmless in (cut, thought, refused, broken, broken_cut):
        assert await offered_natively([harmless] * 4, caplog) == [True] * 4
    assert await offered_natively([text, GOOD, text, GOOD, text, cut, text], caplog) == [True] * 7
    assert not caplog.records
    assert await offered_natively([text, text, text], caplog) == [True, True, False, False]
    assert [record.levelname for record in caplog.records if "native tools disabled" in record.getMessage()] == [
        "WARNING"
    ]


async def test_the_text_among_the_parts_of_a_message_is_read_and_its_thinking_is_not() -> None:
    parts = [{"type": "thinking", "text": "Hm."}, {"type": "text", "text": "It is "}, {"type": "text", "text": "so."}]
    with serving("free", answer=completion("stop", content=parts)) as server:
        answer = await ask(server, asking(constraint=None, tools=(), must_call=False))
    assert answer.text == "It is so."


async def test_calls_that_come_back_as_fenced_text_are_not_taken_for_tool_calling() -> None:
    with serving("fenced") as server:
        answer = await ask(server, asking())
    assert "tools" not in server.requests[-1]
    assert (answer.constrained_by, answer.text, answer.calls) == ("free", FREE_TEXT, ())


async def test_what_a_server_honours_is_found_out_once() -> None:
    with serving("vllm") as server:
        async with open_model(f"openai:m@{server.url}", QUICK, {}) as model:
            for _ in range(3):
                await model.answer(asking())
    assert len(server.requests) == 3
    assert len(server.asked) - len(server.requests) == 3  # grammar and ebnf are ignored, structured_outputs is not


async def test_a_text_is_asked_for_without_any_probe() -> None:
    with serving("llama.cpp") as server:
        answer = await ask(server, asking(constraint=None, tools=(), must_call=False))
    assert len(server.asked) == 1
    assert (answer.text, answer.stop, answer.constrained_by) == (FREE_TEXT, "text", "free")


async def test_a_way_can_be_chosen_by_hand() -> None:
    with serving("tools") as server:
        answer = await ask(server, asking(), ModelOptions(hold="free"))
        assert answer.constrained_by == "free"
        answer = await ask(server, asking(), ModelOptions(hold="native"))
        assert answer.constrained_by == "native"


async def test_the_dialogue_is_sent_with_native_calls_and_results() -> None:
    messages = (
        Message(role="system", text="Be brief."),
        Message(role="user", text="Read a.py."),
        Message(role="assistant", calls=(READ,)),
        Message(role="tool", text="no such file", answers="call_1", failed=True),
    )
    with serving("tools") as server:
        await ask(server, ModelRequest(messages=messages, tools=(OFFER,), sampling=Sampling(temperature=0.5, seed=3)))
    assert server.requests[-1] == snapshot(
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Read a.py."},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "read", "arguments": '{"path": "a.py"}'},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "FAILED: no such file"},
            ],
            "max_tokens": 1024,
            "temperature": 0.5,
            "seed": 3,
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "read",
                        "description": "Reads a file.",
                        "parameters": {
                            "type": "object",
                            "properties": {"path": {"type": "string", "enum": ["a.py"]}},
                            "required": ["path"],
                            "additionalProperties": False,
                        },
                    },
                }
            ],
            "tool_choice": "auto",
            "parallel_tool_calls": False,
        }
    )


async def test_the_dialogue_is_sent_as_plain_text_where_a_grammar_holds_the_answer() -> None:
    messages = (
        Message(role="user", text="Read a.py."),
        Message(role="assistant", text='{"name":"read","args":{"path":"a.py"}}', calls=(READ,)),
        Message(role="tool", text="print()", answers="call_1"),
        Message(role="user", text="And now?"),
    )
    with serving("llama.cpp") as server:
        await ask(server, ModelRequest(messages=messages, constraint=OneCall()))
    assert server.requests[-1]["messages"] == snapshot(
        [
            {"role": "user", "content": "Read a.py."},
            {"role": "assistant", "content": '{"name":"read","args":{"path":"a.py"}}'},
            {
                "role": "user",
                "content": """\
Result of read:
print()

And now?\
""",
            },
        ]
    )


async def test_a_busy_server_is_asked_again() -> None:
    troubles = [(429, {"retry-after": "0"}, ""), (0, {}, "")]
    with serving("free", troubles=troubles) as server:
        answer = await ask(server, asking(constraint=None, tools=(), must_call=False))
    assert answer.text == FREE_TEXT
    assert len(server.headers) == 3


async def test_a_busy_server_is_reported_with_its_message() -> None:
    troubles = [(503, {"retry-after": "0"}, '{"error": {"message": "Loading model"}}')] * 3
    with serving("free", troubles=troubles) as server, pytest.raises(ToolError) as caught:
        await ask(server, asking(constraint=None, tools=(), must_call=False))
    assert caught.value.code == ErrorCode.MODEL_UNAVAILABLE
    assert caught.value.message.endswith("3 attempts: 503 Loading model")


async def test_an_unreachable_server_is_reported() -> None:
    async with open_model("openai:m@http://127.0.0.1:9/v1", ModelOptions(retries=0), {}) as model:
        with pytest.raises(ToolError, match=r"127\.0\.0\.1:9/v1 is unavailable") as caught:
            await model.answer(asking())
    assert caught.value.code == ErrorCode.MODEL_UNAVAILABLE


async def test_a_wrong_key_is_reported_with_its_variable_and_without_the_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    options = ModelOptions(key_variable="OUR_KEY")
    with serving("llama.cpp", key="right") as server:
        async with open_model(f"openai:m@{server.url}", options, {"OUR_KEY": "wr0ng-k3y"}) as model:
            with pytest.raises(ToolError) as caught:
                await model.answer(asking())
    assert caught.value.code == ErrorCode.MODEL_REFUSED
    assert "OUR_KEY" in str(caught.value.instruction)
    assert server.headers[-1]["authorization"] == "Bearer wr0ng-k3y"
    assert "wr0ng-k3y" not in f"{caught.value} {caught.value.instruction} {caplog.text}"


async def test_fields_that_a_server_refuses_are_renamed_or_left_out() -> None:
    with serving("free", refuses=["max_tokens", "temperature"]) as server:
        async with open_model(f"openai:m@{server.url}", QUICK, {}) as model:
            for _ in range(2):
                await model.answer(asking(constraint=None, tools=(), must_call=False))
    assert len(server.asked) == 4
    assert server.asked[-1].keys() == {"model", "messages", "max_completion_tokens"}


async def test_a_dialogue_that_is_too_long_has_a_code_of_its_own() -> None:
    said = "This model's maximum context length is 8192 tokens."
    troubles = [(400, {}, json.dumps({"error": {"message": said}}))]
    with serving("free", troubles=troubles) as server, pytest.raises(ToolError) as caught:
        await ask(server, asking(constraint=None, tools=(), must_call=False))
    assert caught.value.code == ErrorCode.MODEL_CONTEXT_FULL
    assert said in caught.value.message


async def test_arguments_that_are_no_json_stay_in_the_text() -> None:
    function = {"name": "read", "arguments": '{"path": '}
    message = {"content": "Here:", "tool_calls": [{"id": "1", "type": "function", "function": function}]}
    with serving("tools", answer={"choices": [{"message": message, "finish_reason": "length"}]}) as server:
        answer = await ask(server, asking(must_call=False), ModelOptions(hold="free"))
    assert (answer.text, answer.calls, answer.stop) == ('Here:\n{"name":"read","args":{"path": }', (), "length")


async def test_an_invalid_answer_is_reported() -> None:
    with serving("free", answer={"hello": 1}) as server, pytest.raises(ToolError, match="without choices"):
        await ask(server, asking(constraint=None, tools=(), must_call=False))


async def test_the_length_of_a_dialogue_is_what_the_server_says() -> None:
    with serving("free", models={"data": [{"id": "m", "max_model_len": 4096}]}) as server:
        async with open_model(f"openai:m@{server.url}", QUICK, {}) as model:
            await model.answer(asking(constraint=None, tools=(), must_call=False))
            assert model.context_tokens == 4096


async def test_tokens_cost_what_the_prices_say() -> None:
    options = ModelOptions(prices=Prices(prompt=100_000.0, completion=200_000.0))
    with serving("free") as server:
        answer = await ask(server, asking(constraint=None, tools=(), must_call=False), options)
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.cost) == (11, 5, 2.1)
