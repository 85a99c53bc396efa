"""Prompts, through the SDK's own client."""

from __future__ import annotations

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.server.clients import MODES, Person, client_of
from tests.server.sample import declared
from trysquare import CallContext, DeclarationError, PromptMessage, Result, StaticToolset, prompt
from trysquare.server import ServeOptions

eras = pytest.mark.parametrize("mode", MODES)


def _text(result: types.GetPromptResult) -> str:
    content = result.messages[0].content
    assert isinstance(content, types.TextContent)
    return content.text


@eras
async def test_prompts_are_listed_with_their_arguments(mode: str) -> None:
    async with client_of(declared.toolset(), mode) as client:
        listed = await client.list_prompts()
    letter = listed.prompts[0]
    assert letter.name == "letter"
    assert [(one.name, one.description, one.required) for one in letter.arguments or []] == [
        ("to", "Who gets it", True),
        ("tone", "How it sounds", False),
    ]


@eras
async def test_a_prompt_is_rendered_and_may_call_tools(mode: str) -> None:
    async with client_of(declared.toolset(), mode) as client:
        result = await client.get_prompt("letter", {"to": "Ada"})
    assert _text(result) == "Write to Ada, warm, 3 times."


@eras
async def test_a_prompt_may_ask_the_user(mode: str) -> None:
    async with client_of(declared.toolset(), mode, elicitation_callback=Person("rain")) as client:
        result = await client.get_prompt("questioning")
    assert _text(result) == "The word is rain."


@eras
@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("leter", {}, "Unknown prompt `leter`. Did you mean `letter`?"),
        ("letter", {}, "`to` is missing"),
        ("letter", {"to": "Ada", "tune": "x"}, "`tune`"),
    ],
)
async def test_a_wrong_request_for_a_prompt_says_what_is_wrong(
    mode: str, name: str, arguments: dict[str, str], told: str
) -> None:
    async with client_of(declared.toolset(), mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.get_prompt(name, arguments)
    assert caught.value.code == types.INVALID_PARAMS
    assert told in caught.value.message


@eras
async def test_a_prompt_that_crashes_tells_an_incident_only(mode: str) -> None:
    async with client_of(declared.toolset(), mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.get_prompt("broken")
    assert caught.value.code == types.INTERNAL_ERROR
    assert "incident" in caught.value.message
    assert "secret" not in str(caught.value.error)


@eras
async def test_a_prompt_that_takes_too_long_is_stopped(mode: str) -> None:
    async def endless(context: CallContext) -> str:
        """Never end."""
        import anyio

        await anyio.sleep_forever()
        return "never"

    options = ServeOptions(call_timeout=0.02)
    async with client_of(StaticToolset(prompts=[prompt(endless)]), mode, options) as client:
        with pytest.raises(MCPError, match=r"endless.* longer"):
            await client.get_prompt("endless")


@eras
async def test_an_argument_of_a_prompt_is_completed_up_to_a_hundred_values(mode: str) -> None:
    async with client_of(declared.toolset(), mode) as client:
        reference = types.PromptReference(type="ref/prompt", name="letter")
        result = await client.complete(reference, {"name": "to", "value": "A"})
        nothing = await client.complete(
            types.PromptReference(type="ref/prompt", name="broken"), {"name": "x", "value": ""}
        )
    assert result.completion.values[:2] == ["to-A0", "to-A1"]
    assert (len(result.completion.values), result.completion.total, result.completion.has_more) == (100, 150, True)
    assert nothing.completion.values == []


@eras
@pytest.mark.parametrize(
    ("returned", "texts"),
    [
        ("one", ["one"]),
        (PromptMessage(content="one", role="assistant"), ["one"]),
        (["one", PromptMessage(content="two")], ["one", "two"]),
        (dict.fromkeys(["one"]).keys(), ["one"]),
        (Result.ok("one"), ["one"]),
        ([], []),
    ],
)
async def test_a_prompt_may_return_text_and_messages(mode: str, returned: object, texts: list[str]) -> None:
    def made() -> object:
        """Make."""
        return returned

    async with client_of(StaticToolset([], prompts=[prompt(made)]), mode) as client:
        messages = (await client.get_prompt("made")).messages
    assert [one.content.text for one in messages if isinstance(one.content, types.TextContent)] == texts


@eras
@pytest.mark.parametrize("returned", [None, 3, [None], [3], PromptMessage(content=None)])  # pyright: ignore[reportArgumentType]
async def test_a_prompt_that_returns_neither_says_so(mode: str, returned: object) -> None:
    def made() -> object:
        """Make."""
        return returned

    async with client_of(StaticToolset([], prompts=[prompt(made)]), mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.get_prompt("made")
    assert "`made`" in caught.value.message
    assert "incident" not in caught.value.message


def test_a_prompt_that_is_annotated_to_return_nothing_is_refused() -> None:
    def nothing() -> None:
        """Do nothing."""

    with pytest.raises(DeclarationError, match="`nothing`"):
        prompt(nothing)
