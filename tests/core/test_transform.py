"""Tools made of other tools, through a client."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, Field

from trysquare import (
    Argument,
    Client,
    Consent,
    DeclarationError,
    Example,
    ToolArguments,
    ToolError,
    Tools,
    transform_tool,
)
from trysquare.testing import Person


def even(value: int) -> int:
    if value % 2:
        raise ValueError("must be even")
    return value


def search(
    q: str, limit: Annotated[int, Field(ge=1, le=100), AfterValidator(even)] = 10, index: str = "all", user: str = ""
) -> list[str]:
    """Search."""
    if q == "nothing":
        raise ToolError("No results.", next={"tool": "search", "arguments": {"q": "all", "index": "all"}})
    return [q, str(limit), index, user]


def made(**more: Any) -> Tools:
    """A tool with one argument renamed, one bounded, one fixed and one that depends on who calls."""
    tools = Tools("library")
    arguments = {
        "q": Argument(name="query", description="What to look for"),
        "limit": Argument(default=4, schema={"maximum": 20}),
        "index": Argument(fixed="books"),
        "user": Argument(fixed=lambda context: context.principal.subject),
    }
    tools.add(transform_tool(search, name="find_books", description="Find books.", arguments=arguments, **more))
    return tools


async def called(tools: Tools, **arguments: Any) -> Any:
    async with Client(tools) as client:
        return await client.call_tool("find_books", arguments, raise_on_error=False)


async def test_the_list_shows_the_new_name_and_arguments_only() -> None:
    async with Client(made()) as client:
        listed = (await client.list_tools())[0]
    assert (listed.name, listed.description) == ("find_books", "Find books.")
    assert listed.input_schema == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 20, "default": 4},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("limit", [{}, {"limit": None}, {"limit": ""}, {"limit": "4"}])
async def test_the_tool_gets_its_own_names_defaults_and_fixed_values(limit: dict[str, Any]) -> None:
    answer = (await called(made(), query="ships", **limit)).data
    assert answer[:3] == ["ships", "4", "books"]
    assert answer[3] != ""


async def test_mistakes_come_back_under_the_new_names() -> None:
    wrong = await called(made(), querry="ships")
    assert wrong.next == {"tool": "find_books", "arguments": {"query": "ships"}}
    hidden = await called(made(), query="ships", index="all")
    assert hidden.code == "VALIDATION_UNKNOWN_PARAM"
    assert hidden.next == {"tool": "find_books", "arguments": {"query": "ships"}}
    assert (await called(made(), query="ships", limit=30)).code == "VALIDATION_INVALID_PARAM"


async def test_what_the_tool_says_of_its_arguments_is_renamed() -> None:
    tools = Tools()
    tools.add(transform_tool(search, name="find_books", arguments={"limit": Argument(name="count")}))
    wrong = await called(tools, q="ships", count=3)
    assert "`count`" in wrong.text
    assert "`limit`" not in wrong.text
    assert wrong.next["tool"] == "find_books"
    assert "limit" not in wrong.next["arguments"]


async def test_a_proposed_call_is_one_of_the_new_tool() -> None:
    assert (await called(made(), query="nothing")).next == {"tool": "find_books", "arguments": {"query": "all"}}


async def test_an_optional_argument_can_become_required() -> None:
    tools = Tools()
    tools.add(transform_tool(search, name="find_books", arguments={"index": Argument(required=True)}))
    assert (await called(tools, q="ships")).code == "VALIDATION_MISSING_PARAM"


async def test_arguments_of_a_model_are_transformed_alike() -> None:
    class Query(ToolArguments):
        text: str
        depth: int = 1

    def look(query: Query) -> str:
        return f"{query.text} {query.depth}"

    tools = Tools()
    tools.add(transform_tool(look, name="find_books", arguments={"depth": Argument(fixed=3)}))
    assert (await called(tools, text="ships")).text == "ships 3"


async def test_a_middleware_can_transform() -> None:
    tools = Tools(middleware=[lambda inner: transform_tool(inner, arguments={"index": Argument(fixed="maps")})])
    tools.tool(search, name="find_books")
    assert (await called(tools, q="ships")).data[2] == "maps"


async def test_consent_is_asked_about_what_the_tool_gets() -> None:
    tools, done = Tools(), list[str]()

    @tools.tool(consent=Consent(question="Delete {path}?"))
    def delete(path: str) -> str:
        done.append(path)
        return "deleted"

    declared = tools.toolset().tools()[0]
    other = Tools()
    other.add(transform_tool(declared, name="clear", arguments={"path": Argument(fixed="/tmp/cache")}))
    refusing, agreeing = Person().decline(), Person().approve()
    async with Client(other, elicitation_handler=refusing) as client:
        refused = await client.call_tool("clear", raise_on_error=False)
    assert (refused.is_error, done) == (True, [])
    async with Client(other, elicitation_handler=agreeing) as client:
        assert (await client.call_tool("clear")).text == "deleted"
    assert done == ["/tmp/cache"]
    refusing.require_all_asked()
    agreeing.require_all_asked()


def test_examples_follow_the_new_names() -> None:
    example = Example(arguments={"q": "ships", "index": "maps"}, explanation="ships on maps")
    [renamed] = transform_tool(made().toolset().tools()[0], examples=(example,)).metadata.examples
    assert renamed is example
    tools = Tools()
    tools.tool(search, examples=(example,))
    [declared] = tools.toolset().tools()
    changed = transform_tool(declared, arguments={"q": Argument(name="query"), "index": Argument(fixed="maps")})
    assert [each.arguments for each in changed.metadata.examples] == [{"query": "ships"}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"querry": Argument(name="x")}, "no argument `querry`"),
        ({"q": Argument(name="limit")}, "two arguments `limit`"),
        ({"limit": Argument(default="many")}, "cannot be 'many'"),
        ({"limit": Argument(fixed="many")}, "cannot be 'many'"),
        ({"limit": Argument(default=30, schema={"maximum": 20})}, "cannot be 30"),
    ],
)
def test_a_wrong_transformation_is_refused_when_it_is_made(arguments: dict[str, Argument], said: str) -> None:
    with pytest.raises(DeclarationError, match=said):
        transform_tool(search, arguments=arguments)


def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(DeclarationError):
        Argument(fixed=1, name="other")
    with pytest.raises(DeclarationError):
        Argument(default=1, required=True)
    with pytest.raises(DeclarationError, match="consent"):
        transform_tool(search, consent=None)
