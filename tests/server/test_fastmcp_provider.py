"""A toolset inside a FastMCP server, seen through FastMCP's own client in both eras."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import mcp_types
import pytest
from fastmcp import Client, FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import McpError
from inline_snapshot import snapshot

from tests.support import about
from trysquare import (
    CallContext,
    DynamicToolset,
    PromptMessage,
    Resource,
    ResourceContents,
    ResourceLink,
    ResourceTemplate,
    Result,
    StaticToolset,
    ToolError,
    Tools,
    prompt,
    tool,
)
from trysquare.catalog import ProfileChoice
from trysquare.integrations.fastmcp import TrysquareProvider

ERAS = ["legacy", "2026-07-28"]


async def greet(name: str, times: int = 1) -> Result[str]:
    """Greet a person by name.

    Args:
        name: Who to greet
        times: How often
    """
    return Result.ok("Hello, " + ", ".join([name] * times), instruction="Show it as it is.")


async def delete(path: str, context: CallContext) -> Result[str]:
    """Delete a file after asking."""
    schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
    first = await context.ask(f"Delete {path}?", schema, key="first")
    if first.action != "accept" or not first.content.get("sure"):
        return Result.failure("The person said no.")
    second = await context.ask(f"Really delete {path}?", schema, key="second")
    return Result.ok(f"deleted {path}: {second.action}")


async def count(context: CallContext) -> str:
    """Count to three."""
    for done in range(1, 4):
        await context.progress(done, 3, f"step {done}")
    await context.log("counted")
    return "three"


async def crash() -> str:
    """Fail in a way that nobody foresaw."""
    raise ZeroDivisionError("secret detail")


async def refuse() -> str:
    """Fail in a way that its author foresaw."""
    raise ToolError("The door is shut.", instruction="Knock first.")


def story(topic: str) -> str:
    """Ask for a story.

    Args:
        topic: What it is about
    """
    return f"Tell a story about {topic}."


async def ask_first(context: CallContext) -> str:
    """Ask before it renders."""
    answer = await context.ask("Which colour?", {"type": "object", "properties": {"colour": {"type": "string"}}})
    return f"Paint it {answer.content['colour']}."


async def greeting(context: CallContext) -> str:
    """Call a tool and render its answer."""
    return str((await context.call_tool("greet", {"name": "Ada"})).value)


def broken() -> str:
    """Crash."""
    raise ZeroDivisionError("secret detail")


async def read_note(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
    if values.get("name") == "broken":
        raise ZeroDivisionError("secret detail")
    if values.get("name") == "locked":
        raise ToolError("That note is locked.")
    return [ResourceContents(uri=uri, text=f"note {values or uri}", mime_type="text/markdown")]


async def read_bytes(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
    return [ResourceContents(uri=uri, blob="AAEC", mime_type="application/octet-stream")]


def example_toolset() -> StaticToolset:
    return StaticToolset(
        [
            tool(greet, category="example", read_only=True, version="1.2"),
            *(tool(function) for function in (delete, count, crash, refuse)),
        ],
        prompts=[prompt(story), prompt(ask_first), prompt(greeting), prompt(broken)],
        resources=[
            Resource(uri="note://home/first", name="first", read=read_note, mime_type="text/markdown"),
            Resource(uri="note://home/bytes", name="bytes", read=read_bytes),
        ],
        templates=[ResourceTemplate(uri_template="note://home/by-name/{name}", name="by-name", read=read_note)],
    )


def example_server(**options: Any) -> FastMCP:
    return FastMCP("host", providers=[TrysquareProvider(example_toolset(), **options)])


def only(found: Sequence[Any]) -> Any:
    [one] = found
    return one


async def test_a_tool_is_listed_with_our_exact_schema_and_hints():
    async with Client(example_server()) as client:
        listed: Any = {found.name: found for found in await client.list_tools()}

    assert listed["greet"].input_schema == tool(greet).input_schema
    assert listed["greet"].input_schema["additionalProperties"] is False
    assert listed["greet"].annotations == mcp_types.ToolAnnotations(read_only_hint=True)
    assert listed["greet"].description == snapshot("Greet a person by name.")


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_answers_with_its_value_and_guidance(era: Any):
    async with Client(example_server(), mode=era) as client:
        answer: Any = await client.call_tool("greet", {"name": "Ada", "times": 2})

    assert answer.data == "Hello, Ada, Ada"
    assert about(answer) == {"instruction": "Show it as it is."}
    assert answer.content[0].text == "Hello, Ada, Ada\nInstruction: Show it as it is."
    assert not answer.is_error


@pytest.mark.parametrize("era", ERAS)
async def test_a_wrong_argument_comes_back_with_the_corrected_call(era: Any):
    async with Client(example_server(), mode=era) as client:
        answer: Any = await client.call_tool("greet", {"nam": "Ada"}, raise_on_error=False)

    assert answer.is_error
    assert about(answer)["code"].startswith("VALIDATION_")
    assert about(answer)["next"] == {"tool": "greet", "arguments": {"name": "Ada"}}


async def test_nested_arguments_are_understood():
    async with Client(example_server()) as client:
        answer: Any = await client.call_tool("greet", {"arguments": {"name": "Ada"}})

    assert answer.structured_content["result"] == "Hello, Ada"


async def test_a_foreseen_failure_is_an_error_result_with_its_instruction():
    async with Client(example_server()) as client:
        answer: Any = await client.call_tool("refuse", raise_on_error=False)

    assert answer.is_error
    assert "The door is shut." in answer.content[0].text
    assert about(answer)["instruction"] == "Knock first."


async def test_a_crash_tells_the_client_an_incident_and_no_detail():
    async with Client(example_server()) as client:
        answer: Any = await client.call_tool("crash", raise_on_error=False)

    assert answer.is_error
    assert about(answer)["code"] == "INTERNAL_ERROR"
    assert "secret" not in answer.content[0].text


async def test_an_unknown_tool_is_left_to_the_next_provider():
    server = example_server()

    @server.tool
    def local_one() -> str:
        return "from the host"

    async with Client(server) as client:
        assert (await client.call_tool("local_one")).data == "from the host"
        unknown: Any = await client.call_tool("gret", raise_on_error=False)
    assert unknown.is_error


@pytest.mark.parametrize("era", ERAS)
async def test_two_questions_of_one_call_reach_the_user_one_after_the_other(era: Any):
    asked: list[str] = []

    async def answer_yes(message: str, *rest: Any) -> dict[str, Any]:
        asked.append(message)
        return {"sure": True}

    async with Client(example_server(), mode=era, elicitation_handler=answer_yes) as client:
        answer: Any = await client.call_tool("delete", {"path": "/tmp/x"})

    assert asked == ["Delete /tmp/x?", "Really delete /tmp/x?"]
    assert answer.structured_content["result"] == "deleted /tmp/x: accept"


@pytest.mark.parametrize("era", ERAS)
async def test_without_elicitation_the_question_is_refused(era: Any):
    async with Client(example_server(), mode=era) as client:
        answer: Any = await client.call_tool("delete", {"path": "/tmp/x"}, raise_on_error=False)

    assert answer.is_error
    assert about(answer)["code"] == "CAPABILITY_NOT_SUPPORTED"


async def test_an_answer_to_a_question_that_was_not_asked_counts_for_nothing():
    async with Client(example_server(), mode="2026-07-28", elicitation_handler=_never) as client:
        forged = mcp_types.CallToolRequest(
            params=mcp_types.CallToolRequestParams(
                name="delete",
                arguments={"path": "/tmp/x"},
                input_responses={"first": mcp_types.ElicitResult(action="accept", content={"sure": True})},
            )
        )
        answer: Any = await client.session.send_request(forged, mcp_types.InputRequiredResult)

    assert answer.result_type == "input_required"
    assert list(answer.input_requests or {}) == ["first"]


async def _never(*given: Any) -> dict[str, Any]:
    raise AssertionError("nobody is asked here")


@pytest.mark.filterwarnings("ignore:The logging capability is deprecated")
@pytest.mark.parametrize("era", ERAS)
async def test_progress_and_log_lines_reach_the_client(era: Any):
    seen: list[tuple[float, float | None, str | None]] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        seen.append((done, total, message))

    logged: list[Any] = []

    async def on_log(message: Any) -> None:
        logged.append(message.data)

    async with Client(example_server(), mode=era, progress_handler=on_progress, log_handler=on_log) as client:
        await client.call_tool("count", meta={"io.modelcontextprotocol/logLevel": "info"})

    assert [line["msg"] for line in logged] == ["counted"]
    assert seen == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_a_prompt_is_listed_and_rendered():
    async with Client(example_server()) as client:
        listed: Any = only([found for found in await client.list_prompts() if found.name == "story"])
        rendered: Any = await client.get_prompt("story", {"topic": "a lamp"})

    assert listed.arguments == [mcp_types.PromptArgument(name="topic", description="What it is about", required=True)]
    assert rendered.messages[0].content.text == "Tell a story about a lamp."


async def test_a_prompt_with_a_wrong_argument_says_which():
    async with Client(example_server()) as client:
        with pytest.raises(McpError, match="topic"):
            await client.get_prompt("story", {})


@pytest.mark.parametrize("era", ERAS)
async def test_a_prompt_may_ask_too(era: Any):
    async def answer(*given: Any) -> dict[str, Any]:
        return {"colour": "green"}

    async with Client(example_server(), mode=era, elicitation_handler=answer) as client:
        rendered: Any = await client.get_prompt("ask_first")

    assert rendered.messages[0].content.text == "Paint it green."


async def test_a_prompt_calls_a_tool_directly():
    async with Client(example_server()) as client:
        rendered: Any = await client.get_prompt("greeting")

    assert rendered.messages[0].content.text == "Hello, Ada"


async def test_a_crash_of_a_prompt_or_resource_tells_an_incident_and_no_detail():
    async with Client(example_server()) as client:
        with pytest.raises(McpError, match=r"broken .*\(incident"):
            await client.get_prompt("broken")
        with pytest.raises(McpError, match=r"\(incident"):
            await client.read_resource("note://home/by-name/broken")


async def test_a_link_in_a_prompt_becomes_its_address():
    def linked() -> PromptMessage:
        """A link."""
        return PromptMessage(content=ResourceLink(uri="note://home/first", name="first"))

    toolset = StaticToolset(prompts=[prompt(linked)])
    async with Client(FastMCP("host", providers=[TrysquareProvider(toolset)])) as client:
        rendered: Any = await client.get_prompt("linked")

    assert rendered.messages[0].content.text == "first: note://home/first"


async def test_resources_and_templates_are_listed_and_read():
    async with Client(example_server()) as client:
        assert [str(found.uri) for found in await client.list_resources()] == ["note://home/first", "note://home/bytes"]
        assert [found.uri_template for found in await client.list_resource_templates()] == [
            "note://home/by-name/{name}"
        ]
        first: Any = only(await client.read_resource("note://home/first"))
        made: Any = only(await client.read_resource("note://home/by-name/a%20b"))
        held: Any = only(await client.read_resource("note://home/bytes"))

    assert (first.text, first.mime_type) == ("note note://home/first", "text/markdown")
    assert made.text == "note {'name': 'a b'}"
    assert held.blob == "AAEC"


async def test_a_resource_that_cannot_be_read_says_why():
    async with Client(example_server()) as client:
        with pytest.raises(McpError, match="That note is locked"):
            await client.read_resource("note://home/by-name/locked")
        with pytest.raises(McpError, match="not found"):
            await client.read_resource("note://home/nowhere")


async def test_a_namespace_of_the_host_keeps_everything_callable():
    server = FastMCP("host")
    server.add_provider(TrysquareProvider(example_toolset()), namespace="mine")
    async with Client(server) as client:
        names = {found.name for found in await client.list_tools()}
        answer: Any = await client.call_tool("mine_greet", {"name": "Ada"})
        made: Any = only(await client.read_resource("note://mine/home/by-name/x"))

    assert "mine_greet" in names
    assert answer.structured_content["result"] == "Hello, Ada"
    assert made.text == "note {'name': 'x'}"


async def test_a_profile_shortens_the_list_and_every_tool_stays_callable():
    hidden = tool(greet, profiles=frozenset({"full"}))
    shown = tool(refuse)
    provider = TrysquareProvider(StaticToolset([hidden, shown]), profiles=ProfileChoice(default="levels"))
    async with Client(FastMCP("host", providers=[provider])) as client:
        assert [found.name for found in await client.list_tools()] == ["refuse"]
        answer: Any = await client.call_tool("greet", {"name": "Ada"})
    assert answer.structured_content["result"] == "Hello, Ada"


async def test_a_changed_toolset_is_announced_to_a_client_with_a_session():
    toolset = DynamicToolset([tool(greet)])
    told = anyio.Event()

    async def on_message(message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            told.set()

    server = FastMCP("host", providers=[TrysquareProvider(toolset)])
    async with Client(server, mode="legacy", message_handler=on_message) as client:
        assert len(await client.list_tools()) == 1
        await anyio.to_thread.run_sync(lambda: toolset.replace(tools=[tool(greet), tool(refuse)]))
        with anyio.fail_after(10):
            await told.wait()
        assert len(await client.list_tools()) == 2
        assert (await client.call_tool("refuse", raise_on_error=False)).is_error


async def test_the_host_can_call_a_provided_tool_without_a_client():
    answer = await example_server().call_tool("greet", {"name": "Ada"})

    assert answer.structured_content is not None
    assert answer.structured_content["result"] == "Hello, Ada"


SERVER = """
from fastmcp import FastMCP
from trysquare import StaticToolset, tool
from trysquare.integrations.fastmcp import TrysquareProvider

def add(left: int, right: int) -> int:
    "Add two numbers."
    return left + right

FastMCP("host", providers=[TrysquareProvider(StaticToolset([tool(add)]))]).run(show_banner=False)
"""


@pytest.mark.parametrize("era", ERAS)
async def test_it_serves_over_stdio(tmp_path: Path, era: Any):
    script = tmp_path / "server.py"
    script.write_text(textwrap.dedent(SERVER), encoding="utf-8")
    transport = StdioTransport(command=sys.executable, args=[str(script)], keep_alive=False)
    with anyio.fail_after(60):
        async with Client(transport, mode=era) as client:
            answer: Any = await client.call_tool("add", {"left": 2, "right": 3})
            wrong: Any = await client.call_tool("add", {"left": 2, "rigth": 3}, raise_on_error=False)

    assert answer.structured_content == {"result": 5}
    assert about(wrong)["next"] == {"tool": "add", "arguments": {"left": 2, "right": 3}}


def test_without_fastmcp_the_error_says_what_to_install():
    code = "import sys; sys.modules['fastmcp'] = None; import trysquare.integrations.fastmcp"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert run.returncode == 1
    assert "pip install 'trysquare[fastmcp]'" in run.stderr


async def test_the_lifespan_of_the_tools_is_that_of_the_server() -> None:
    tools, events = Tools(), list[str]()

    @tools.lifespan
    async def events_of() -> AsyncIterator[Path]:
        events.append("open")
        yield Path("/")
        events.append("close")

    @tools.tool
    def where(root: Path) -> str:
        events.append("call")
        return str(root)

    async with Client(FastMCP("host", providers=[TrysquareProvider(tools.toolset())])) as client:
        assert (await client.list_tools())[0].input_schema["properties"] == {}
        await client.call_tool("where", {})
    assert events == ["open", "call", "close"]
