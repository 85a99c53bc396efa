"""Checks of the rows about writing tools, resources and prompts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import fastmcp
import pytest
from fastmcp.dependencies import CurrentContext
from fastmcp.dependencies import Depends as TheirDepends
from fastmcp.exceptions import ToolError as TheirToolError
from fastmcp.utilities.types import Image as TheirImage
from mcp import Client as SdkClient
from pydantic import BaseModel

from tests.clients.sample_tools import PNG
from tests.comparison.rows import ours, theirs
from tests.in_process import in_process
from tests.server.task_calls import stored_tasks, task_client
from trysquare import (
    AppPage,
    Audio,
    CallContext,
    Client,
    Consent,
    Depends,
    File,
    Icon,
    Image,
    ResourceLink,
    ToolError,
    Tools,
)


class Report(BaseModel):
    """What several checks return."""

    title: str
    pages: int | None = None


@dataclass
class Table:
    """What several checks ask for."""

    guests: int
    place: str = "inside"


async def listed(tools: Tools) -> dict[str, Any]:
    """The tools as a client sees them."""
    async with Client(tools) as client:
        return {tool.name: tool for tool in await client.list_tools()}


async def called(tools: Tools, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
    async with Client(tools, **options) as client:
        return await client.call_tool(name, arguments or {}, raise_on_error=False)


@ours("a plain function")
async def plain_function(folder: Path) -> None:
    tools = Tools()

    @tools.tool
    def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    assert (await called(tools, "add", {"a": 2})).data == 3
    assert add(1, 1) == 2, "the function stays a function"


@theirs("a plain function")
async def their_plain_function(folder: Path) -> None:
    mcp = fastmcp.FastMCP("x")

    @mcp.tool
    def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    async with fastmcp.Client(mcp) as client:
        assert (await client.call_tool("add", {"a": 2})).data == 3


@ours("descriptions of arguments")
async def descriptions(folder: Path) -> None:
    tools = Tools()

    @tools.tool
    def numpy(first: Annotated[str, "by annotation"], second: int) -> str:
        """Describe.

        Parameters
        ----------
        second : int
            in the docstring
        """
        return first * second

    @tools.tool
    def sphinx(second: int) -> int:
        """Describe.

        :param second: in the docstring
        """
        return second

    properties = (await listed(tools))["numpy"].input_schema["properties"]
    assert {name: part["description"] for name, part in properties.items()} == {
        "first": "by annotation",
        "second": "in the docstring",
    }
    assert (await listed(tools))["sphinx"].input_schema["properties"]["second"]["description"] == "in the docstring"


@ours("generators")
async def generators(folder: Path) -> None:
    tools = Tools()

    @tools.tool
    async def words(count: int) -> AsyncIterator[str]:
        """Give words."""
        for number in range(count):
            yield f"word {number}"

    seen: list[Any] = []
    async with Client(tools) as client:
        result = await client.call_tool("words", {"count": 2}, progress_handler=seen.append)
    assert result.data == ["word 0", "word 1"]
    assert [report.message for report in seen] == ["word 0", "word 1"]


@theirs("generators")
async def their_generators(folder: Path) -> None:
    mcp = fastmcp.FastMCP("x")

    @mcp.tool
    def words(count: int) -> Iterator[str]:
        """Give words."""
        yield from (f"word {number}" for number in range(count))

    seen: list[Any] = []

    async def keep(progress: float, total: float | None, message: str | None) -> None:
        seen.append(message)

    async with fastmcp.Client(mcp) as client:
        result = await client.call_tool("words", {"count": 2}, progress_handler=keep)
    assert (result.structured_content, seen) == (None, [])
    assert "word 1" in str(result.content)


@ours("typed results, output schemas")
async def typed_results(folder: Path) -> None:
    tools = Tools()

    @tools.tool
    def report() -> Report:
        """Return a report."""
        return Report(title="Sales")

    assert set((await listed(tools))["report"].output_schema["properties"]) == {"title", "pages"}
    assert (await called(tools, "report")).data == {"title": "Sales", "pages": None}


@theirs("typed results, output schemas")
async def their_typed_results(folder: Path) -> None:
    mcp = fastmcp.FastMCP("x")

    @mcp.tool
    def report() -> Report:
        """Return a report."""
        return Report(title="Sales")

    async with fastmcp.Client(mcp) as client:
        assert (await client.call_tool("report")).structured_content == {"title": "Sales", "pages": None}


@ours("images, audio, files, mixed lists")
async def media(folder: Path) -> None:
    (folder / "chart.png").write_bytes(PNG)
    tools = Tools()

    @tools.tool
    def mixed() -> list[Any]:
        """Return several things."""
        link = ResourceLink(uri="sales://2026", name="sales")
        return [
            "Sales",
            Image(folder / "chart.png"),
            Audio(data=b"RIFF\0\0\0\0WAVE"),
            File(data="a,b", name="a.csv"),
            link,
        ]

    kinds = [type(part).__name__ for part in (await called(tools, "mixed")).content]
    assert kinds == ["Text", "Image", "Audio", "ResourceContents", "ResourceLink"]


@theirs("images, audio, files, mixed lists")
async def their_media(folder: Path) -> None:
    mcp = fastmcp.FastMCP("x")

    @mcp.tool
    def mixed() -> list[Any]:
        """Return several things."""
        return ["Sales", TheirImage(data=PNG, format="png")]

    async with fastmcp.Client(mcp) as client:
        assert [part.type for part in (await client.call_tool("mixed")).content] == ["text", "image"]


@ours("a misspelt argument")
async def misspelt(folder: Path) -> None:
    tools = Tools()

    @tools.tool
    def greet(name: str) -> str:
        """Greet."""
        return name

    result = await called(tools, "greet", {"nam": "Ada"})
    assert result.next == {"tool": "greet", "arguments": {"name": "Ada"}}


@theirs("a misspelt argument")
async def their_misspelt(folder: Path) -> None:
    mcp = fastmcp.FastMCP("x")

    @mcp.tool
    def greet(name: str) -> str:
        """Greet."""
        return name

    async with fastmcp.Client(mcp) as client:
        with pytest.raises(TheirToolError, match="Unexpected keyword argument"):
            await client.call_tool("greet", {"nam": "Ada"})


@ours("null or an empty text for an optional number")
async def empty_values(folder: Path) -> None:
    tools = Tools()

    @tools.tool
    def take(limit: int = 5) -> int:
        """Take some."""
        return limit

    assert [(await called(tools, "take", {"limit": given})).data for given in (None, "", "7")] == [5, 5, 7]


@theirs("null or an empty text for an optional number")
async def their_empty_values(folder: Path) -> None:
    mcp = fastmcp.FastMCP("x")

    @mcp.tool
    def take(limit: int = 5) -> int:
        """Take some."""
        return limit

    async with fastmcp.Client(mcp) as client:
        for given in (None, ""):
            with pytest.raises(TheirToolError):
                await client.call_tool("take", {"limit": given})


@ours("a tool that crashes")
async def crash(folder: Path) -> None:
    tools = Tools()

    @tools.tool
    def divide(number: int) -> float:
        """Divide."""
        raise ZeroDivisionError("secret detail")

    result = await called(tools, "divide", {"number": 1})
    assert result.code == "INTERNAL_ERROR"
    assert "secret" not in result.text
    assert "incident" in result.text


@theirs("a tool that crashes")
async def their_crash(folder: Path) -> None:
    for mask, is_told in ((None, True), (True, False)):
        mcp = fastmcp.FastMCP("x", mask_error_details=mask)

        @mcp.tool
        def divide(number: int) -> float:
            """Divide."""
            raise ZeroDivisionError("secret detail")

        async with fastmcp.Client(mcp) as client:
            with pytest.raises(TheirToolError) as raised:
                await client.call_tool("divide", {"number": 1})
        assert ("secret" in str(raised.value)) is is_told


@ours("expected failures")
async def expected_failure(folder: Path) -> None:
    tools = Tools()

    @tools.tool
    def read(title: str) -> str:
        """Read."""
        raise ToolError(f"Unknown note `{title}`.", instruction="List the notes first.")

    result = await called(tools, "read", {"title": "a"})
    assert (result.is_error, result.instruction) == (True, "List the notes first.")


@ours("timeouts")
async def timeouts(folder: Path) -> None:
    tools = Tools()

    @tools.tool(timeout=0.01)
    async def wait() -> str:
        """Wait."""
        await asyncio.Event().wait()
        return "never"

    assert (await called(tools, "wait")).code == "TOOL_TIMEOUT"


@ours("hints, titles, icons, tags, metadata")
async def hints(folder: Path) -> None:
    icon = Icon("https://example.com/icon.png", mime_type="image/png", sizes=("48x48",))
    tools = Tools("shop", title="The shop", website="https://example.com", icons=(icon,))

    @tools.tool(title="Look", read_only=True, tags=frozenset({"stock"}), icons=(icon,), meta={"example.com/a": 1})
    def look() -> str:
        """Look."""
        return "here"

    @tools.resource("shop://a", icons=(icon,), annotations={"audience": ["user"], "priority": 0.5}, meta={"a": 1})
    def part() -> str:
        """A part."""
        return "a"

    @tools.prompt(icons=(icon,), meta={"a": 1})
    def ask() -> str:
        """Ask."""
        return "Ask."

    wire = {"src": icon.src, "mimeType": "image/png", "sizes": ["48x48"]}
    async with SdkClient(in_process(tools.toolset())) as client:
        tool = next(each for each in (await client.list_tools()).tools if each.name == "look")
        resource = next(each for each in (await client.list_resources()).resources if str(each.uri) == "shop://a")
        prompt = (await client.list_prompts()).prompts[0]
        server = client.server_info
    assert tool.annotations is not None
    assert server is not None
    assert (tool.title, tool.annotations.read_only_hint) == ("Look", True)
    assert tool.meta == {"example.com/a": 1, "trysquare/tags": ["stock"]}
    for each in (tool, resource, prompt, server):
        assert each.icons is not None
        assert each.icons[0].model_dump(by_alias=True, exclude_none=True) == wire
    assert resource.annotations is not None
    assert (resource.annotations.priority, prompt.meta, server.website_url) == (0.5, {"a": 1}, "https://example.com")


@ours("dependencies")
async def dependencies(folder: Path) -> None:
    tools = Tools()
    closed: list[str] = []

    def connection() -> Iterator[str]:
        yield "connection"
        closed.append("connection")

    @tools.tool
    def use(connection: Annotated[str, Depends(connection)]) -> str:
        """Use it."""
        return connection

    assert (await listed(tools))["use"].input_schema["properties"] == {}
    assert (await called(tools, "use")).data == "connection"
    assert closed == ["connection"]


@theirs("dependencies")
async def their_dependencies(folder: Path) -> None:
    mcp = fastmcp.FastMCP("x")

    @mcp.tool
    def use(connection: str = TheirDepends(lambda: "connection")) -> str:
        """Use it."""
        return connection

    async with fastmcp.Client(mcp) as client:
        assert (await client.call_tool("use")).data == "connection"


@ours("lifespan")
async def lifespan(folder: Path) -> None:
    events: list[str] = []
    tools = Tools()

    @tools.lifespan
    async def opened() -> AsyncIterator[Table]:
        events.append("open")
        yield Table(guests=2)
        events.append("close")

    @tools.tool
    def guests(table: Table) -> int:
        """Count them."""
        return table.guests

    assert (await called(tools, "guests")).data == 2
    assert events == ["open", "close"]


@theirs("lifespan")
async def their_lifespan(folder: Path) -> None:
    @asynccontextmanager
    async def opened(server: Any) -> AsyncGenerator[dict[str, int]]:
        yield {"guests": 2}

    mcp = fastmcp.FastMCP("x", lifespan=opened)

    @mcp.tool
    def guests(ctx: fastmcp.Context = CurrentContext()) -> int:  # noqa: B008 - their form
        """Count them."""
        return ctx.lifespan_context["guests"]

    async with fastmcp.Client(mcp) as client:
        assert (await client.call_tool("guests")).data == 2


@ours("progress and logs")
async def progress_and_logs(folder: Path) -> None:
    tools = Tools()

    @tools.tool
    async def work(context: CallContext) -> str:
        """Work."""
        await context.progress(1, 2, "half")
        await context.warning("nearly done")
        return "done"

    steps: list[Any] = []
    lines: list[Any] = []
    async with Client(tools, log_handler=lines.append, log_level="debug") as client:
        await client.call_tool("work", progress_handler=steps.append)
    assert [step.message for step in steps] == ["half"]
    assert [line.level for line in lines] == ["warning"]


@ours("elicitation")
async def elicitation(folder: Path) -> None:
    tools = Tools()

    @tools.tool
    async def reserve(context: CallContext) -> int:
        """Reserve."""
        return (await context.ask("Which table?", Table)).guests

    for version in ("2025-11-25", "2026-07-28"):
        options: dict[str, Any] = {"protocol_version": version, "elicitation_handler": lambda _: {"guests": 4}}
        assert (await called(tools, "reserve", **options)).data == 4


@theirs("elicitation")
async def their_elicitation(folder: Path) -> None:
    mcp = fastmcp.FastMCP("x")

    @mcp.tool
    async def reserve(ctx: fastmcp.Context) -> int:
        """Reserve."""
        answer: Any = await ctx.elicit("Which table?", Table)
        return answer.data.guests

    async def fill(message: str, kind: Any, params: Any, context: Any) -> Any:
        return {"guests": 4}

    async with fastmcp.Client(mcp, elicitation_handler=fill, mode="legacy") as client:
        assert (await client.call_tool("reserve")).data == 4
    async with fastmcp.Client(mcp, elicitation_handler=fill, mode="2026-07-28") as client:
        with pytest.raises(TheirToolError):
            await client.call_tool("reserve")


@ours("sampling and roots")
async def sampling_and_roots(folder: Path) -> None:
    tools = Tools()

    @tools.tool
    async def look(context: CallContext) -> str:
        """Look."""
        where = await context.roots()
        return f"{len(where)}: {await context.sample('Write.')}"

    options: dict[str, Any] = {"sampling_handler": lambda _: "words", "roots": [folder]}
    for version in ("2025-11-25", "2026-07-28"):
        assert (await called(tools, "look", protocol_version=version, **options)).data == "1: words"


@theirs("sampling and roots")
async def their_sampling_and_roots(folder: Path) -> None:
    assert not {"sample", "list_roots"} & set(dir(fastmcp.Context))


@ours("pages in the chat (MCP Apps)")
async def pages(folder: Path) -> None:
    tools = Tools()
    (folder / "board.html").write_text("<title>Board</title>", encoding="utf-8")

    @tools.app(str(folder / "board.html"))
    def board() -> dict[str, int]:
        """Board."""
        return {"open": 4}

    @tools.app(AppPage.chart("bar"))
    def sales() -> list[int]:
        """Sales."""
        return [3, 8]

    @tools.app
    def order(article: str) -> str:
        """Order."""
        return article

    async with SdkClient(in_process(tools.toolset())) as client:
        found = [tool for tool in (await client.list_tools()).tools if tool.meta and "ui" in tool.meta]
    async with Client(tools) as client:
        shown = {each.name: (await client.read_resource((each.meta or {})["ui"]["resourceUri"])).text for each in found}
    assert "<title>Board</title>" in shown["board"]
    assert "<script" in shown["sales"]
    assert "<script" in shown["order"]


@ours("background tasks")
async def background_tasks(folder: Path) -> None:
    tools, may_end = Tools(), asyncio.Event()

    @tools.tool(task=True)
    async def count() -> int:
        """Count."""
        await may_end.wait()
        return 3

    kept = stored_tasks(folder)
    async with task_client(tools.toolset(), kept) as client:
        task = await client.begin("count")
        assert (await client.get(task))["status"] == "working"
        may_end.set()
        await client.until(task)
    # Another server over the same file has the result.
    async with task_client(tools.toolset(), kept) as client:
        assert (await client.get(task))["result"]["structuredContent"] == {"result": 3}
    assert (await called(tools, "count")).data == 3


@ours("consent")
async def consent(folder: Path) -> None:
    tools = Tools()

    @tools.tool(consent=Consent(question="Wipe {name}?"))
    def wipe(name: str) -> str:
        """Wipe."""
        return f"{name} is wiped"

    assert (await called(tools, "wipe", {"name": "a"})).code == "CONSENT_REQUIRED"
    options: dict[str, Any] = {"elicitation_handler": lambda _: {"approve": True}}
    assert (await called(tools, "wipe", {"name": "a"}, **options)).data == "a is wiped"


@ours("resources and templates")
async def resources(folder: Path) -> None:
    tools = Tools()

    @tools.resource("note://{title}{?lines}", mime_type="text/plain")
    def note(title: str, lines: int = 1) -> str:
        """A note."""
        return f"{title} {lines + 1}"

    @tools.resource("data://logo", mime_type="image/png")
    def logo() -> bytes:
        """The logo."""
        return PNG

    async with Client(tools) as client:
        assert (await client.read_resource("note://shopping?lines=2")).text == "shopping 3"
        assert (await client.read_resource("data://logo")).data == PNG


@theirs("resources and templates")
async def their_resources(folder: Path) -> None:
    mcp = fastmcp.FastMCP("x")

    @mcp.resource("note://{title}{?lines}")
    def note(title: str, lines: int = 1) -> str:
        """A note."""
        return f"{title} {lines + 1}"

    async with fastmcp.Client(mcp) as client:
        [contents] = await client.read_resource("note://shopping?lines=2")
    assert getattr(contents, "text", None) == "shopping 3"


@ours("prompts")
async def prompts(folder: Path) -> None:
    tools = Tools()

    @tools.prompt
    def letter(to: str, lines: int = 5) -> str:
        """Write a letter."""
        return f"Write {lines + 1} lines to {to}."

    async with Client(tools) as client:
        assert (await client.get_prompt("letter", {"to": "Ada", "lines": "2"})).text == "Write 3 lines to Ada."


@ours("completions")
async def completions(folder: Path) -> None:
    tools = Tools()

    async def tones(argument: str, typed: str, others: dict[str, str]) -> list[str]:
        return [tone for tone in ("warm", "formal") if tone.startswith(typed)]

    @tools.prompt(complete=tones)
    def letter(tone: str) -> str:
        """Write a letter."""
        return tone

    async with Client(tools) as client:
        found = await client.complete("tone", "w", prompt="letter")
    assert found.values == ("warm",)
