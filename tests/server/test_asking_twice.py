"""Tools that ask more than once, the same in both protocol versions: their authors need not know which is spoken."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, cast

import fastmcp
import mcp_types as types
import pytest
from mcp import Client

from tests.in_process import in_process
from tests.server.clients import served_http
from tests.support import about
from trysquare import CallContext, Consent, StaticToolset, tool, wait_for
from trysquare.integrations.fastmcp import TrysquareProvider

WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
count = itertools.count()


async def _word(context: CallContext, message: str, **more: Any) -> str:
    return str((await context.ask(message, WORD, **more)).content.get("word"))


async def two_questions(context: CallContext) -> list[str]:
    return [await _word(context, "First?"), await _word(context, "Second?")]


async def varying_words(context: CallContext) -> list[str]:
    return [await _word(context, f"It is now {next(count)}, go on?"), await _word(context, f"And at {next(count)}?")]


async def in_a_loop(context: CallContext) -> list[str]:
    return [await _word(context, "One more?") for _ in range(3)]


async def sampling_twice(context: CallContext) -> list[str]:
    return [
        await context.sample(f"Number {next(count)}"),
        await context.sample("The same"),
        await context.sample("The same"),
    ]


async def mixed(context: CallContext) -> list[str]:
    return [
        await _word(context, "First?"),
        await context.sample("Say something"),
        *await context.roots(),
        await _word(context, "Second?"),
        *await context.roots(),
        await context.sample("Say more"),
    ]


async def own_keys(context: CallContext) -> list[str]:
    return [await _word(context, "First?", key="a"), await _word(context, "Again?", key="a"), await _word(context, "?")]


async def gathered(context: CallContext) -> list[str]:
    return list(await asyncio.gather(*(_word(context, f"Question {name}?") for name in "abc")))


async def gathered_with_exceptions(context: CallContext) -> list[str]:
    asked = (_word(context, f"Question {name}?") for name in "abc")
    return [str(answer) for answer in await asyncio.gather(*asked, return_exceptions=True)]


async def in_a_group(context: CallContext) -> list[str]:
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(_word(context, f"Question {name}?")) for name in "abc"]
    return [task.result() for task in asked]


def in_a_thread(context: CallContext) -> list[str]:
    return [wait_for(_word(context, "First?")), wait_for(_word(context, "Second?"))]


EXPECTED: dict[Callable[..., Any], list[str]] = {
    two_questions: ["w1", "w2"],
    varying_words: ["w1", "w2"],
    in_a_loop: ["w1", "w2", "w3"],
    sampling_twice: ["s1", "s2", "s3"],
    mixed: ["w1", "s1", "file:///home", "w2", "file:///home", "s2"],
    own_keys: ["w1", "w2", "w3"],
    in_a_thread: ["w1", "w2"],
}
TOGETHER = (gathered, gathered_with_exceptions, in_a_group)
each = pytest.mark.parametrize("function", EXPECTED)
together = pytest.mark.parametrize("function", TOGETHER)
versions = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])


class User:
    """Answers each question with a new word or number, says what the model says, and approves consent."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.words, self.texts = itertools.count(1), itertools.count(1)

    def answer(self, message: str, schema: Any) -> dict[str, Any]:
        self.asked.append(message)
        if "approve" in schema["properties"]:
            return {"approve": True}
        if "number" in schema["properties"]:
            return {"number": next(self.words)}
        return {"word": f"w{next(self.words)}"}

    async def elicit(self, context: object, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content=self.answer(params.message, params.requested_schema))

    async def elicit_in_fastmcp(self, message: str, _type: Any, params: Any, _context: Any) -> dict[str, Any]:
        return self.answer(message, params.requested_schema)

    async def sample(self, context: object, params: Any) -> types.CreateMessageResult:
        text = types.TextContent(type="text", text=f"s{next(self.texts)}")
        return types.CreateMessageResult(role="assistant", content=text, model="m")

    async def sample_in_fastmcp(self, *_: Any) -> str:
        return f"s{next(self.texts)}"

    async def roots(self, context: object) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///home")])  # pyright: ignore[reportArgumentType]


async def through_our_server(function: Callable[..., Any], mode: Any, user: User, **options: Any) -> Any:
    return await _sent(in_process(StaticToolset([tool(function, **options)])), function.__name__, mode, user)


async def over_http(function: Callable[..., Any], mode: Any, user: User, **options: Any) -> Any:
    async with served_http(StaticToolset([tool(function, **options)])) as url:
        return await _sent(f"{url}/mcp", function.__name__, mode, user)


async def _sent(server: Any, name: str, mode: Any, user: User) -> Any:
    async with Client(
        server,
        mode=mode,
        elicitation_callback=user.elicit,
        sampling_callback=user.sample,
        list_roots_callback=user.roots,
    ) as client:
        return await client.call_tool(name, {})


async def through_fastmcp(function: Callable[..., Any], mode: Any, user: User, **options: Any) -> Any:
    server = fastmcp.FastMCP("host", providers=[TrysquareProvider(StaticToolset([tool(function, **options)]))])
    async with fastmcp.Client(
        server,
        mode=mode,
        elicitation_handler=user.elicit_in_fastmcp,
        sampling_handler=user.sample_in_fastmcp,
        roots=["file:///home"],
    ) as client:
        return await client.call_tool(function.__name__, {}, raise_on_error=False)


servers = pytest.mark.parametrize("send", [through_our_server, through_fastmcp])


@servers
@versions
@each
async def test_every_question_gets_its_own_answer_once(
    send: Callable[..., Any], mode: str, function: Callable[..., Any]
) -> None:
    user = User()
    result = await send(function, mode, user)
    assert result.structured_content["result"] == EXPECTED[function]
    assert len(user.asked) == sum(expected.startswith("w") for expected in EXPECTED[function])


# Not in one task with the client: Python 3.11 leaves that one cancelled when a task group ends with an error.
@pytest.mark.parametrize("send", [over_http, through_fastmcp])
@versions
@together
async def test_questions_at_the_same_time(send: Callable[..., Any], mode: str, function: Callable[..., Any]) -> None:
    user = User()
    result = await send(function, mode, user)
    answers = dict(zip(user.asked, ("w1", "w2", "w3"), strict=True))
    assert result.structured_content["result"] == [answers[f"Question {name}?"] for name in "abc"]


@servers
@versions
async def test_consent_and_questions_of_its_own(send: Callable[..., Any], mode: str) -> None:
    user = User()
    result = await send(two_questions, mode, user, consent=Consent(question="May it ask?"))
    assert result.structured_content["result"] == ["w1", "w2"]
    assert [message.partition("\n")[0] for message in user.asked] == ["May it ask?", "First?", "Second?"]


@servers
async def test_an_answer_is_not_used_for_another_schema_when_the_tool_goes_another_way(
    send: Callable[..., Any],
) -> None:
    schemas = itertools.chain([WORD], itertools.repeat(NUMBER))

    async def changing(context: CallContext) -> dict[str, Any]:
        return dict((await context.ask("Which?", next(schemas))).content)

    result = await send(changing, "2026-07-28", User())
    assert result.structured_content == {"number": 2}


@versions
async def test_a_schema_that_is_not_one_is_refused_over_the_wire_as_in_a_test(mode: str) -> None:
    async def wrong(context: CallContext) -> str:
        return str(await context.ask("Sure?", cast(Any, dict)))

    result = await through_our_server(wrong, mode, User())
    assert about(result)["code"] == "VALIDATION_INVALID_REQUEST"
