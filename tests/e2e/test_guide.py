"""The guide through real clients: the SDK's in both eras, in memory, over stdio and HTTP, and Inspector."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp.shared.subscriptions import ResourceUpdated
from mcp_types import (
    ElicitResult,
    PaginatedRequestParams,
    PromptReference,
    Request,
    ResourceTemplateReference,
    ResourceUpdatedNotification,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel

from tests.e2e.inspector import inspected
from tests.e2e.servers import served_over_http
from tests.e2e.stdio_process import REPOSITORY
from tests.guide.opened import opened, write_guide
from tests.in_process import in_process, transport_to
from tests.support import told as all_told
from trysquare.core.json import JsonObject
from trysquare.server import build_server

LIST_SKILLS = Request[PaginatedRequestParams, str](method="skills/list", params=PaginatedRequestParams())
SOURCE = str(REPOSITORY / "src")
BANK = {"lang/python.md": "Bank: use eight spaces.\n"}

eras = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
transports = pytest.mark.parametrize("transport", ["memory", "stdio", "http"])


class SkillList(BaseModel):
    """What `skills/list` answers, as far as it is looked at here."""

    skills: list[Any]


async def _agree(context: ClientRequestContext, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"approve": True})


def serve_command(root: Path) -> list[str]:
    """The command that serves a project's guide, from the sources of this repository."""
    guide = ["--guide", str(root / "docs/guide"), "--profile", "guide=full"]
    return [sys.executable, "-m", "trysquare", "serve", *guide, "--project", str(root)]


@contextlib.asynccontextmanager
async def connected(transport: str, mode: str, root: Path, **callbacks: Any) -> AsyncGenerator[Client]:
    """A client of a server that was started in a project."""
    async with contextlib.AsyncExitStack() as stack:
        target: Any
        if transport == "stdio":
            command, *arguments = serve_command(root)
            environment = {**os.environ, "PYTHONPATH": SOURCE}
            target = StdioServerParameters(command=command, args=arguments, cwd=root, env=environment)
        else:
            app = await stack.enter_async_context(opened(root))
            served = served_over_http(app.toolset, app.serve_options())
            target = in_process(app.toolset, app.serve_options())
            if transport == "http":
                target = await stack.enter_async_context(served)
        client = Client(target, mode=mode, elicitation_callback=_agree, **callbacks)
        yield await stack.enter_async_context(client)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    write_guide(tmp_path / "shop")
    write_guide(tmp_path / "bank", BANK)
    return tmp_path / "shop"


async def told(client: Client, tool: str, **arguments: object) -> JsonObject:
    result = await client.call_tool(f"guide_{tool}", arguments)
    return all_told(result)


async def text_at(client: Client, uri: str) -> str:
    [contents] = (await client.read_resource(uri)).contents
    assert isinstance(contents, TextResourceContents)
    return contents.text


@eras
@transports
async def test_each_call_gets_its_project_and_says_which_every_time(shop: Path, transport: str, mode: str) -> None:
    async with asyncio.timeout(90), connected(transport, mode, shop) as client:
        added = await told(client, "set_project", name="bank", root=str(shop.parent / "bank"))
        assert added["success"], added
        for _ in range(3):
            bank = await told(client, "get_content", expression="lang/python", project="bank")
            assert (bank["value"], bank["project"]) == ("Bank: use eight spaces.", "bank")
            default = await told(client, "get_content", expression="lang/python")
            assert (default["value"], default["project"]) == ("Use four spaces.", "shop")
            failed = await told(client, "get_content", expression="lang/none", project="bank")
            assert not failed["success"]
            flags = await told(client, "list_project_flags", project="bank")
            assert flags["project"] == "bank"
            found = await told(client, "search_content", query="spaces")
            assert found["project"] == "shop"
            assert found["next"]["arguments"]["project"] == "shop"


@eras
@transports
async def test_prompts_resources_and_completions_reach_a_client(shop: Path, transport: str, mode: str) -> None:
    async with asyncio.timeout(90), connected(transport, mode, shop) as client:
        prompt = await client.get_prompt("guide", {"arg1": "lang/python"})
        assert isinstance(prompt.messages[0].content, TextContent)
        assert prompt.messages[0].content.text.startswith("Use four spaces.")
        command = await client.get_prompt("guide", {"arg1": ":review", "arg2": "--strict", "arg3": "app.py"})
        assert isinstance(command.messages[0].content, TextContent)
        assert command.messages[0].content.text.strip() == "Review app.py strictly."
        listed = [str(each.uri) for each in (await client.list_resources()).resources]
        assert "guide://shop/lang/python" in listed
        assert await text_at(client, "guide://shop/lang/python") == "Use four spaces.\n"
        assert "Run cargo fmt." in await text_at(client, "guide+get://shop/lang/python+rust")
        by_prompt = await client.complete(PromptReference(name="guide"), {"name": "arg1", "value": "lang/r"})
        assert by_prompt.completion.values == ["lang/rust"]
        template = ResourceTemplateReference(uri="guide://{project}/{category}/{name*}")
        by_template = await client.complete(template, {"name": "category", "value": "ru"})
        assert by_template.completion.values == ["rules"]


@eras
@pytest.mark.parametrize("transport", ["memory", "http"])
async def test_two_clients_of_one_server_hear_nothing_of_one_another(shop: Path, transport: str, mode: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(asyncio.timeout(90))
        app = await stack.enter_async_context(opened(shop))
        server = build_server(app.toolset, app.serve_options())
        targets: list[Any] = [transport_to(server), transport_to(server)]
        if transport == "http":
            targets = 2 * [await stack.enter_async_context(served_over_http(app.toolset, app.serve_options()))]
        clients = [
            await stack.enter_async_context(Client(target, mode=mode, elicitation_callback=_agree))
            for target in targets
        ]
        await told(clients[0], "set_project", name="bank", root=str(shop.parent / "bank"))
        projects = ("bank", "shop")

        async def talk(client: Client, project: str) -> list[JsonObject]:
            return [await told(client, "get_content", expression="lang/python", project=project) for _ in range(5)]

        answers = await asyncio.gather(*(talk(*each) for each in zip(clients, projects, strict=True)))
        for project, told_of in zip(projects, answers, strict=True):
            assert {each["project"] for each in told_of} == {project}
            ids = {document["instruction_id"] for each in told_of for document in each["documents"]}
            assert len(ids) == 1
            assert ids.pop().startswith(f"{project}:lang/python@")


async def until_heard(heard: asyncio.Event, edit: Callable[[int], object]) -> None:
    """Edit on disk until a client has heard of it: the watch begins a moment after the start."""
    for attempt in range(60):
        edit(attempt)
        try:
            await asyncio.wait_for(heard.wait(), 1)
        except TimeoutError:
            continue
        return
    raise AssertionError("the edit was never told")


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@transports
async def test_an_edit_on_disk_is_told_to_a_subscriber_of_the_handshake_era(shop: Path, transport: str) -> None:
    heard = asyncio.Event()
    file = shop / "docs/guide/lang/python.md"

    async def hear(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            assert str(message.params.uri) == "guide://shop/lang/python"
            heard.set()

    async with asyncio.timeout(90), connected(transport, "legacy", shop, message_handler=hear) as client:
        await client.subscribe_resource("guide://shop/lang/python")  # pyright: ignore[reportDeprecated]
        await until_heard(heard, lambda number: file.write_text(f"Edit {number}.\n", encoding="utf-8"))
        assert (await text_at(client, "guide://shop/lang/python")).startswith("Edit")


@transports
async def test_an_edit_on_disk_is_told_to_who_listens_in_the_new_era(shop: Path, transport: str) -> None:
    heard = asyncio.Event()
    file = shop / "docs/guide/lang/python.md"
    async with asyncio.timeout(90), connected(transport, "2026-07-28", shop) as client:
        async with client.listen(resource_subscriptions=["guide://shop/lang/python"]) as subscription:

            async def listen() -> None:
                async for event in subscription:
                    assert isinstance(event, ResourceUpdated)
                    heard.set()
                    return

            listening = asyncio.create_task(listen())
            await until_heard(heard, lambda number: file.write_text(f"Edit {number}.\n", encoding="utf-8"))
            await listening
        assert (await text_at(client, "guide://shop/lang/python")).startswith("Edit")


async def _over_stdio(shop: Path, check: Callable[[list[str]], Awaitable[None]]) -> None:
    # Inspector hands on little of its environment, so the server's own is named in its command.
    state = f"XDG_STATE_HOME={os.environ['XDG_STATE_HOME']}"
    await check(["--transport", "stdio", "env", f"PYTHONPATH={SOURCE}", state, *serve_command(shop)])


async def _over_http(shop: Path, check: Callable[[list[str]], Awaitable[None]]) -> None:
    async with opened(shop) as app, served_over_http(app.toolset, app.serve_options()) as url:
        await check(["--transport", "http", "--server-url", url])


@pytest.mark.node
@pytest.mark.parametrize("serving", [_over_stdio, _over_http])
async def test_inspector_verifies_every_skill(shop: Path, serving: Callable[..., Awaitable[None]]) -> None:
    write_guide(shop, {"lang/a b.md": "Blank.\n", "lang/SKILL.md": "Odd.\n", "lang/deep/größe.md": "Maß.\r\n"})

    async def check(target: list[str]) -> None:
        seen = await inspected(target, "modern", "--method", "skills/list", "--verify")
        assert (seen.code, seen.errors) == (0, ""), seen
        assert seen.output.count('"outcome":"verified"') == 3
        assert '"status":"mismatch"' not in seen.output

    await serving(shop, check)


@pytest.mark.node
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_inspector_finds_the_guides_schemas_portable(shop: Path, era: Any) -> None:
    async def check(target: list[str]) -> None:
        seen = await inspected(target, era, "--strict", "--method", "tools/list")
        assert (seen.code, seen.errors) == (0, ""), seen
        assert len(seen.result["tools"]) == 19, "those of the guide, and the one that reads pages"

    await _over_stdio(shop, check)


@eras
@transports
async def test_digests_of_skills_are_those_of_what_a_client_reads(shop: Path, transport: str, mode: str) -> None:
    async with asyncio.timeout(90), connected(transport, mode, shop) as client:
        listed = await client.session.send_request(LIST_SKILLS, SkillList)
        assert [each["frontmatter"]["name"] for each in listed.skills] == ["docs", "lang", "rules"]
        for skill in listed.skills:
            for file in skill["resources"]:
                data = (await text_at(client, file["uri"])).encode()
                assert file["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
                assert file["size"] == len(data)
