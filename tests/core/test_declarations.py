"""Declarations: what a module declares, once, and collects, once."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from trysquare import (
    CallContext,
    DeclarationError,
    Declarations,
    PromptMessage,
    ResourceContents,
    Result,
    Text,
    ToolArguments,
    Tools,
    tool,
)
from trysquare.testing import call, make_context


class Named(ToolArguments):
    name: str


def test_a_declared_function_is_returned_unchanged_with_and_without_parentheses() -> None:
    tools = Declarations()

    def plain(name: str) -> str:
        return name

    def dressed(args: Named) -> str:
        return args.name

    assert tools.declare(plain) is plain
    assert tools.declare(category="x")(dressed) is dressed
    made = {each.name: each for each in tools.toolset().tools()}
    assert list(made) == ["plain", "dressed"]
    assert made["dressed"].metadata.category == "x"
    assert made["dressed"].function is dressed


def test_a_tool_is_declared_in_every_common_spelling() -> None:
    tools = Tools()

    @tools.tool
    def bare(a: int) -> int:
        return a

    @tools.tool()
    async def called(a: int) -> int:
        return a

    @tools.tool("renamed", read_only=True)
    def positional(a: int) -> int:
        return a

    tools.tool(positional, name="again")
    tools.declare(name="former")(bare)
    assert [each.name for each in tools.toolset().tools()] == ["bare", "called", "renamed", "again", "former"]
    assert Declarations is Tools


def test_a_name_a_title_and_a_description_can_be_given() -> None:
    tools = Declarations()

    @tools.declare(name="say", title="Say it", description="Say a word.")
    def function(word: str) -> str:
        """Not this."""
        return word

    [made] = tools.toolset().tools()
    assert (made.name, made.title, made.description) == ("say", "Say it", "Say a word.")


def test_two_tools_of_one_name_are_refused_with_a_hint() -> None:
    tools = Declarations()
    tools.add(tool(lambda: None, name="same"))
    with pytest.raises(DeclarationError, match=r"`same`.*name="):
        tools.add(tool(lambda: None, name="same"))


def test_what_is_collected_is_not_collected_again() -> None:
    tools = Declarations()

    @tools.declare
    def one() -> None: ...

    @tools.prompt
    def ask() -> str:
        return "?"

    @tools.resource("note://one")
    def note() -> str:
        return "n"

    whole = tools.toolset()
    assert ([t.name for t in whole.tools()], [p.name for p in whole.prompts()]) == (["one"], ["ask"])
    first, second = tools.collect(), tools.collect()
    assert [len(part) for part in (first.tools(), first.prompts(), first.resources())] == [1, 1, 1]
    assert [len(part) for part in (second.tools(), second.prompts(), second.resources())] == [0, 0, 0]


def test_declaring_from_many_threads_loses_nothing() -> None:
    tools = Declarations()
    threads = [threading.Thread(target=lambda n=n: tools.add(tool(lambda: None, name=f"tool_{n}"))) for n in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tools.collect().tools()) == 32


@pytest.mark.parametrize("name", ["", "with space", "a" * 65, "ä", "a/b"])
def test_a_name_that_clients_refuse_is_refused(name: str) -> None:
    with pytest.raises(DeclarationError, match="Invalid tool name"):
        tool(lambda: None, name=name or "¿")


async def rendered(tools: Declarations, name: str, arguments: dict[str, str]) -> list[PromptMessage]:
    prompt = tools.toolset().find_prompt(name)
    assert prompt is not None
    return list(await prompt.render(arguments, make_context(tools=tools)))


async def test_a_prompt_takes_text_and_returns_messages() -> None:
    tools = Declarations()

    @tools.prompt(title="Review", examples=(("@review a.py", "one file"),))
    async def review(path: str, depth: int = 1, context: CallContext | None = None) -> list[PromptMessage]:
        """Review a file.

        Args:
            path: Which file.
        """
        assert context is not None
        return [PromptMessage(content=Text(text=f"{path} {depth + 1}")), PromptMessage(content=Text(text="b"))]

    [made] = tools.toolset().prompts()
    assert made.description == "Review a file."
    assert [(a.name, a.description, a.required) for a in made.arguments] == [
        ("path", "Which file.", True),
        ("depth", None, False),
    ]
    messages = await rendered(tools, "review", {"path": "a.py", "depth": "3"})
    assert [message.content for message in messages] == [Text(text="a.py 4"), Text(text="b")]


async def test_a_synchronous_prompt_does_not_run_on_the_event_loop() -> None:
    tools = Declarations()

    @tools.prompt()
    def where() -> str:
        return threading.current_thread().name

    [message] = await rendered(tools, "where", {})
    assert message.content == Text(text="trysquare-tool")


async def test_a_prompt_may_return_a_result_or_one_message() -> None:
    tools = Declarations()

    @tools.prompt
    async def one() -> PromptMessage:
        return PromptMessage(content=Text(text="x"), role="assistant")

    @tools.prompt
    async def two() -> Result[str]:
        return Result.ok("value", instruction="Read it.")

    assert [m.role for m in await rendered(tools, "one", {})] == ["assistant"]
    assert [m.content for m in await rendered(tools, "two", {})] == [Text(text="value\nInstruction: Read it.")]


async def read(tools: Declarations, uri: str) -> list[ResourceContents]:
    resource = tools.toolset().find_resource(uri)
    assert resource is not None
    return list(await resource.read(uri, {}, make_context()))


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("text", ResourceContents(uri="a://b", mime_type="text/plain", text="text")),
        (b"\xff", ResourceContents(uri="a://b", mime_type="application/octet-stream", blob="/w==")),
        ({"a": 1}, ResourceContents(uri="a://b", mime_type="application/json", text='{"a":1}')),
        (ResourceContents(uri="a://c", text="own"), ResourceContents(uri="a://c", text="own")),
        ([ResourceContents(uri="a://c", text="own")], ResourceContents(uri="a://c", text="own")),
    ],
)
async def test_a_resource_returns_text_bytes_json_or_contents(returned: Any, expected: ResourceContents) -> None:
    tools = Declarations()
    tools.resource("a://b")(lambda: returned)
    assert await read(tools, "a://b") == [expected]


async def test_a_template_gives_its_parts_and_the_context_under_any_name() -> None:
    tools = Declarations()

    @tools.resource("note://{folder}/{rest*}", mime_type="text/markdown")
    def note(folder: str, rest: str, around: CallContext) -> str:
        """A note."""
        return f"{folder}|{rest}|{around.principal.subject}|{threading.current_thread().name}"

    [contents] = await read(tools, "note://my%20notes/a/b.md")
    assert (contents.text, contents.mime_type) == ("my notes|a/b.md|tester|trysquare-tool", "text/markdown")
    assert tools.toolset().find_resource("note://alone") is None
    [template] = tools.toolset().templates()
    assert (template.name, template.description) == ("note", "A note.")


def test_a_resource_whose_parameters_are_not_the_parts_of_its_address_is_refused() -> None:
    tools = Declarations()
    with pytest.raises(DeclarationError, match=r"takes `name`.*gives `title`"):

        @tools.resource("note://{title}")
        def note(name: str) -> str:
            return name

    with pytest.raises(DeclarationError, match="names a part twice"):
        tools.resource("note://{a}/{a}")(lambda a: a)


async def test_the_function_can_be_called_directly_as_it_was_written() -> None:
    tools = Declarations()

    @tools.declare
    def double(number: int) -> int:
        return number * 2

    assert double(2) == 4
    assert (await call(tools, "double", number=2)).value == 4
