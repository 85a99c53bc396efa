"""Answers count only with the sealed proof that we asked, in this call, of this client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.server.clients import Person, client_of
from tests.server.sample import declared
from trysquare import CallContext, Result, StaticToolset, tool
from trysquare.core.context import ClientRequest, ElicitRequest, RootsRequest, SamplingRequest
from trysquare.core.errors import InputRequired
from trysquare.server import ServeOptions
from trysquare.server.caller import ElicitationAnswers

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
    assert done.structured_content == {"result": "wet cold"}


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


async def test_the_client_cannot_read_what_the_state_holds() -> None:
    async with _client() as client:
        asked = await _try(client, "rain")
        again = await _try(client, "rain", ACCEPTED, asked.request_state)
    assert "wet" not in (again.request_state or "")


SURE: dict[str, Any] = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
WORD: dict[str, Any] = {"type": "object", "properties": {"word": {"type": "string"}}}


class Run:
    """One run of a call: what it asks, with what the rounds before it brought."""

    def __init__(self, state: str | None = None, responses: Mapping[str, Any] | None = None) -> None:
        self.answers = ElicitationAnswers(state, responses)

    def ask(self, *requests: ClientRequest) -> Any:
        """The contents that are known, or None where something has to be asked."""
        try:
            return [dict(answer.content) for answer in self.answers.take(requests).values()]
        except InputRequired:
            return None

    def next(self, *contents: dict[str, Any]) -> Run:
        """The run after the client answered what is open, in its order."""
        responses = {
            slot: {"action": "accept", "content": content}
            for slot, content in zip(self.answers.open, contents, strict=True)
        }
        return Run(self.answers.state(), responses)


def question(message: str, schema: dict[str, Any] = SURE, **more: Any) -> ElicitRequest:
    return ElicitRequest(message=message, schema=schema, **more)


def test_the_same_question_in_a_loop_gets_an_answer_each_time() -> None:
    run = Run()
    for number in range(3):
        assert [run.ask(question("Go on?")) for _ in range(number + 1)] == [[{"sure": n}] for n in range(number)] + [
            None
        ]
        run = run.next({"sure": number})
    assert [run.ask(question("Go on?")) for _ in range(3)] == [[{"sure": 0}], [{"sure": 1}], [{"sure": 2}]]


def test_words_that_vary_find_their_answer_by_their_order() -> None:
    first = Run()
    first.ask(question("It is 10:01. Go on?"))
    assert first.next({"sure": True}).ask(question("It is 10:02. Go on?")) == [{"sure": True}]


def test_an_exact_question_wants_an_answer_to_these_very_words() -> None:
    first = Run()
    first.ask(question("Delete a?", exact=True))
    again = first.next({"sure": True})
    assert again.ask(question("Delete b?", exact=True)) is None
    assert again.ask(question("Delete a?", exact=True)) == [{"sure": True}]


def test_an_answer_is_not_used_for_another_schema_or_kind() -> None:
    first = Run()
    first.ask(question("Sure?", key="x"))
    for other in (question("Sure?", WORD, key="x"), SamplingRequest(prompt="Sure?", key="x"), RootsRequest(key="x")):
        again = first.next({"sure": True})
        assert again.ask(other) is None
        assert again.ask(question("Sure?", key="x")) == [{"sure": True}]


def test_questions_at_the_same_time_find_their_answers_in_another_order() -> None:
    first = Run()
    assert (first.ask(question("Delete a?")), first.ask(question("Delete b?"))) == (None, None)
    again = first.next({"sure": "a"}, {"sure": "b"})
    assert again.ask(question("Delete b?")) == [{"sure": "b"}]
    assert again.ask(question("Delete a?")) == [{"sure": "a"}]


def test_no_two_questions_share_a_name_on_the_wire() -> None:
    run = Run()
    for key in ("a", "a", "a#2", "a#", "a#", "a##2"):
        run.ask(question("?", key=key))
    assert len(run.answers.open) == 6


def test_a_response_to_what_was_not_asked_does_not_count() -> None:
    assert Run(None, {"answer": {"action": "accept", "content": {"sure": True}}}).ask(question("Sure?")) is None


@pytest.mark.parametrize("response", ["yes", 1, None, []])
def test_a_response_that_is_not_an_answer_does_not_count(response: object) -> None:
    first = Run()
    first.ask(question("Sure?"))
    assert Run(first.answers.state(), {"answer": response}).ask(question("Sure?")) is None


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_tool_may_ask_for_several_things_at_once(mode: str) -> None:
    async def gather(context: CallContext) -> Result[Any]:
        """Ask for everything."""
        answers = await context.request(
            ElicitRequest(message="Word?", schema={"type": "object", "properties": {}}, key="word"),
            SamplingRequest(prompt="Say hello", key="text"),
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
    async with client_of(StaticToolset([tool(gather)]), mode, **callbacks) as client:
        result = await client.call_tool("gather", {})
    assert result.structured_content is not None
    assert result.structured_content == {
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
