"""Answers count only with the sealed proof that we asked, in this call, of this client."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from tests.serve.clients import Person, client_of
from tests.serve.sample import declared

from trysquare import CallContext, FixedToolset, Result, tool
from trysquare.core.client_requests import Answer, ModelRequest, Question, RootsRequest
from trysquare.serve.answers import Answers
from trysquare.serve.server import ServeOptions

KEY = b"k" * 32
ACCEPTED = {"first": types.ElicitResult(action="accept", content={"word": "wet"})}


def _client(options: ServeOptions | None = None) -> Client:
    return client_of(declared.toolset(), "auto", options, elicitation_callback=Person())


async def _try(client: Client, topic: str, answers: Any = None, state: str | None = None) -> Any:
    return await client.session.call_tool(
        "converse", {"topic": topic}, input_responses=answers, request_state=state, allow_input_required=True
    )


async def test_a_question_ends_the_call_and_the_answer_continues_it() -> None:
    async with _client() as client:
        asked = await _try(client, "rain")
        assert isinstance(asked, types.InputRequiredResult)
        assert list(asked.input_requests or {}) == ["first"]
        again = await _try(client, "rain", ACCEPTED, asked.request_state)
        assert list(again.input_requests or {}) == ["second"]
        second = {"second": types.ElicitResult(action="accept", content={"word": "cold"})}
        done = await _try(client, "rain", second, again.request_state)
    assert done.structured_content == {"success": True, "value": "wet cold"}


async def test_an_answer_without_the_state_is_asked_for_again() -> None:
    async with _client() as client:
        await _try(client, "rain")
        again = await _try(client, "rain", ACCEPTED)
    assert list(again.input_requests) == ["first"]


@pytest.mark.parametrize("forged", ["forged", "v1.AAAA", '{"asked":{},"answered":{}}', ""])
async def test_a_forged_state_is_refused(forged: str) -> None:
    async with _client() as client:
        with pytest.raises(MCPError) as caught:
            await _try(client, "rain", ACCEPTED, forged)
    assert caught.value.code == types.INVALID_PARAMS


async def test_the_state_of_another_call_is_refused() -> None:
    async with _client() as client:
        asked = await _try(client, "rain")
        with pytest.raises(MCPError) as caught:
            await _try(client, "snow", ACCEPTED, asked.request_state)
    assert caught.value.code == types.INVALID_PARAMS


async def test_workers_with_the_same_keys_take_each_others_states() -> None:
    options = ServeOptions(state_keys=(KEY,))
    async with _client(options) as one, _client(options) as other:
        asked = await _try(one, "rain")
        again = await _try(other, "rain", ACCEPTED, asked.request_state)
    assert list(again.input_requests) == ["second"]


async def test_a_rotated_key_still_opens_what_it_sealed() -> None:
    async with _client(ServeOptions(state_keys=(KEY,))) as one:
        asked = await _try(one, "rain")
    async with _client(ServeOptions(state_keys=(b"n" * 32, KEY))) as other:
        again = await _try(other, "rain", ACCEPTED, asked.request_state)
    assert list(again.input_requests) == ["second"]


@pytest.mark.parametrize("options", [ServeOptions(), ServeOptions(state_keys=(b"o" * 32,))])
async def test_workers_with_other_keys_refuse_the_state(options: ServeOptions) -> None:
    async with _client(ServeOptions(state_keys=(KEY,))) as one, _client(options) as other:
        asked = await _try(one, "rain")
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await _try(other, "rain", ACCEPTED, asked.request_state)


async def test_a_state_ends_with_its_time() -> None:
    async with _client(ServeOptions(state_ttl=1e-9)) as client:
        asked = await _try(client, "rain")
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await _try(client, "rain", ACCEPTED, asked.request_state)


async def test_the_person_cannot_read_what_the_state_holds() -> None:
    async with _client() as client:
        asked = await _try(client, "rain")
        again = await _try(client, "rain", ACCEPTED, asked.request_state)
    assert "wet" not in (again.request_state or "")


def test_an_answer_to_another_question_of_the_same_key_does_not_count() -> None:
    asked = Question(message="Delete a?", schema={}, key="sure")
    state = Answers(None, None).state_for({"sure": asked})
    answers = Answers(state, {"sure": {"action": "accept"}})
    assert answers.find(asked) == Answer(action="accept")
    assert answers.find(Question(message="Delete b?", schema={}, key="sure")) is None


@pytest.mark.parametrize("response", ["yes", 1, None, []])
def test_a_response_that_is_no_answer_does_not_count(response: object) -> None:
    asked = Question(message="Delete a?", schema={}, key="sure")
    state = Answers(None, None).state_for({"sure": asked})
    assert Answers(state, {"sure": response}).find(asked) is None


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_tool_may_ask_for_several_things_at_once(mode: str) -> None:
    async def gather(context: CallContext) -> Result[Any]:
        """Ask for everything."""
        answers = await context.request(
            Question(message="Word?", schema={"type": "object", "properties": {}}, key="word"),
            ModelRequest(prompt="Say hello", key="text"),
            RootsRequest(key="folders"),
        )
        return Result.ok({key: dict(answer.content) for key, answer in answers.items()})

    async def sample(_context: object, _params: object) -> types.CreateMessageResult:
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(type="text", text="hello"), model="m"
        )

    async def roots(_context: object) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///home")])  # pyright: ignore[reportArgumentType]

    callbacks: dict[str, Any] = {
        "elicitation_callback": Person("rain"),
        "sampling_callback": sample,
        "list_roots_callback": roots,
    }
    async with client_of(FixedToolset([tool(gather)]), mode, **callbacks) as client:
        result = await client.call_tool("gather", {})
    assert result.structured_content is not None
    assert result.structured_content["value"] == {
        "word": {"word": "rain"},
        "text": {"text": "hello", "model": "m"},
        "folders": {"roots": [{"uri": "file:///home"}]},
    }


async def test_a_client_that_fails_to_ask_makes_the_call_fail_with_its_words() -> None:
    async def broken(_context: object, _params: object) -> types.ErrorData:
        return types.ErrorData(code=-1, message="the window is closed")

    async with client_of(declared.toolset(), "legacy", elicitation_callback=broken) as client:
        result = await client.call_tool("converse", {"topic": "rain"})
    assert result.is_error
    assert "the window is closed" in str(result.content)
