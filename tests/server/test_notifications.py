"""Changes of a toolset reach every client that wants to know, in both eras, from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

import anyio
import mcp_types as types
import pytest
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged

from tests.server.clients import client_of
from tests.server.sample import EXTRA, changing
from trysquare import DynamicToolset


class Heard:
    """The notifications that a client of the handshake era gets."""

    def __init__(self) -> None:
        self.methods: list[str] = []
        self._changed = anyio.Event()

    async def __call__(self, message: object) -> None:
        if isinstance(message, types.JSONRPCNotification):
            self.methods.append(message.method)
        elif (method := getattr(message, "method", None)) is not None:
            self.methods.append(method)
        self._changed.set()

    async def until(self, method: str) -> None:
        with anyio.fail_after(5):
            while method not in self.methods:
                self._changed = anyio.Event()
                await self._changed.wait()


def _change_tools(toolset: DynamicToolset) -> None:
    toolset.replace(tools=[*toolset.tools(), EXTRA])


def _change_prompts(toolset: DynamicToolset) -> None:
    toolset.replace(prompts=[])


def _change_resources(toolset: DynamicToolset) -> None:
    toolset.replace(resources=[])


@pytest.mark.parametrize(
    ("change", "method"),
    [
        (_change_tools, "notifications/tools/list_changed"),
        (_change_prompts, "notifications/prompts/list_changed"),
        (_change_resources, "notifications/resources/list_changed"),
    ],
)
@pytest.mark.parametrize("threaded", [False, True])
async def test_a_session_of_the_handshake_era_is_notified(
    change: Callable[[DynamicToolset], None], method: str, threaded: bool
) -> None:
    toolset, heard = changing(), Heard()
    async with client_of(toolset, "legacy", message_handler=heard) as client:
        await client.list_tools()
        if threaded:
            await anyio.to_thread.run_sync(change, toolset)
        else:
            change(toolset)
        await heard.until(method)


@pytest.mark.parametrize(
    ("change", "event"),
    [
        (_change_tools, ToolsListChanged()),
        (_change_prompts, PromptsListChanged()),
        (_change_resources, ResourcesListChanged()),
    ],
)
@pytest.mark.parametrize("threaded", [False, True])
async def test_a_listener_of_the_new_era_is_notified(
    change: Callable[[DynamicToolset], None], event: object, threaded: bool
) -> None:
    toolset = changing()
    async with client_of(toolset, "auto") as client:
        listening = client.listen(tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True)
        async with listening as subscription:
            if threaded:
                await anyio.to_thread.run_sync(change, toolset)
            else:
                change(toolset)
            with anyio.fail_after(5):
                async for heard in subscription:
                    assert heard == event
                    break


async def test_what_is_listed_after_the_news_is_the_new_list() -> None:
    toolset, heard = changing(), Heard()
    async with client_of(toolset, "legacy", message_handler=heard) as client:
        await client.list_tools()
        _change_tools(toolset)
        await heard.until("notifications/tools/list_changed")
        assert "extra" in [entry.name for entry in (await client.list_tools()).tools]
        assert not (await client.call_tool("extra", {})).is_error


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_a_subscribed_resource_tells_its_changes_until_unsubscribed() -> None:
    toolset, heard = changing(), Heard()
    async with client_of(toolset, "legacy", message_handler=heard) as client:
        await client.subscribe_resource("test://notes")  # pyright: ignore[reportDeprecated]
        toolset.notify("test://elsewhere")
        toolset.notify("test://notes")
        await heard.until("notifications/resources/updated")
        await client.unsubscribe_resource("test://notes")  # pyright: ignore[reportDeprecated]
        heard.methods.clear()
        toolset.notify("test://notes")
        toolset.notify("tools")
        await heard.until("notifications/tools/list_changed")
    assert "notifications/resources/updated" not in heard.methods


async def test_a_listener_hears_only_of_the_resources_it_named() -> None:
    toolset = changing()
    async with (
        client_of(toolset, "auto") as client,
        client.listen(resource_subscriptions=["test://notes"]) as subscription,
    ):
        toolset.notify("test://elsewhere")
        toolset.notify("tools")
        toolset.notify("test://notes")
        with anyio.fail_after(5):
            async for heard in subscription:
                assert heard == ResourceUpdated(uri="test://notes")
                break


async def test_nobody_listens_to_the_toolset_once_the_server_has_ended() -> None:
    toolset = changing()
    async with client_of(toolset, "legacy") as client:
        await client.list_tools()
        assert len(toolset._listeners) == 1
    assert not toolset._listeners


async def test_changes_from_many_threads_at_once_are_all_announced() -> None:
    toolset, heard = changing(), Heard()
    async with client_of(toolset, "legacy", message_handler=heard) as client:
        await client.list_tools()
        threads = [threading.Thread(target=toolset.notify, args=("tools",)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        toolset.notify("prompts")
        await heard.until("notifications/prompts/list_changed")
    assert heard.methods.count("notifications/tools/list_changed") == 20
