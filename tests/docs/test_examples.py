"""The examples work as a user gets them: copied, served over stdio, and called by a real MCP client in both eras."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client import ClientRequestContext

from tests.docs.pages import ROOT, read_page
from tests.docs.runner import project_of, reader_environment
from tests.support import told

ERAS = ["legacy", "2026-07-28"]


class Person:
    """A person at the client, who answers as told and remembers what they were asked."""

    def __init__(self, *answers: bool) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(
        self, context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult:
        self.asked.append(params.message)
        return mcp_types.ElicitResult(action="accept", content={"approve": self._answers.pop(0)})


@asynccontextmanager
async def served(project: Path, *options: str, era: str, person: Person | None = None) -> AsyncGenerator[Client]:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "trysquare", "serve", *options], cwd=project, env=reader_environment()
    )
    async with Client(stdio_client(command), mode=era, elicitation_callback=person) as client:
        yield client


def copied(example: str, folder: Path) -> Path:
    return project_of(ROOT / "examples" / example / "README.md", folder / example)


async def called(client: Client, tool: str, /, **arguments: Any) -> dict[str, Any]:
    return told(await client.call_tool(tool, arguments))


async def test_hello_greets_through_a_client(tmp_path: Path) -> None:
    async with served(copied("hello", tmp_path), era="legacy") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["greet", "read_more"]
        assert (await called(client, "greet", name="Ada"))["value"] == "Hello, Ada"


async def test_the_module_of_the_readme_is_served_as_it_stands_there(tmp_path: Path) -> None:
    [module] = [block for block in read_page(ROOT / "README.md").blocks if block.marks.get("title") == "server.py"]
    (tmp_path / "server.py").write_text(module.text, encoding="utf-8")
    async with served(tmp_path, "server.py", era="2026-07-28") as client:
        assert (await client.call_tool("greet", {"name": "Ada"})).content == [mcp_types.TextContent(text="Hello, Ada")]


@pytest.mark.parametrize("era", ERAS)
async def test_notes_are_written_found_read_and_deleted_with_the_persons_word(tmp_path: Path, era: str) -> None:
    person = Person(False, True)
    async with served(copied("notes", tmp_path), era=era, person=person) as client:
        await called(client, "write_note", title="night-train", text="Vienna at 20:05")
        assert (await called(client, "find_notes", words="vienna"))["value"] == ["night-train"]
        [contents] = (await client.read_resource("note://night-train")).contents
        assert isinstance(contents, mcp_types.TextResourceContents)
        assert contents.text == "Vienna at 20:05"
        prompt = await client.get_prompt("summarize", {"title": "night-train"})
        assert "Vienna at 20:05" in str(prompt.messages[0].content)

        refused = await called(client, "delete_note", title="night-train")
        assert refused["error"]["code"] == "CONSENT_REFUSED"
        assert (await called(client, "find_notes"))["value"] == ["night-train"]
        await called(client, "delete_note", title="night-train")
        assert (await called(client, "find_notes"))["value"] == []
        assert all("Delete the note night-train?" in question for question in person.asked)

        await check_that_a_long_note_comes_in_pages(client)


async def check_that_a_long_note_comes_in_pages(client: Client) -> None:
    text = "\n".join(f"line {number} of a long note" for number in range(400))
    await called(client, "write_note", title="long", text=text)
    answer = await called(client, "read_note", title="long")
    parts = [answer["value"]]
    while "cursor" in answer["page"]:
        answer = await called(client, answer["next"]["tool"], **answer["next"]["arguments"])
        parts.append(answer["value"])
    assert len(parts) > 3
    assert "".join(parts) == text
