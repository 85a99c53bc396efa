"""With an SDK that was not tested, everything goes the SDK's own way, and clients see no difference."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from mcp import Client

from tests.server.clients import MODES, Person, client_of, served_http, text_of
from tests.server.sample import declared
from trysquare.server import _sdk
from trysquare.server.handlers.tools import PlainCallMiddleware
from trysquare.server.http.fast_path import FastPath

IMPORTS = """
import sys
from trysquare.server import _sdk
_sdk.TESTED = ((9, 0), (9, 1))
from trysquare.server.lazy_imports import load_server
load_server()
import mcp
print(type(mcp).__name__, "mcp.client.session" in sys.modules, "mcp_types._v2025_11_25" in sys.modules)
"""


def test_the_installed_sdk_is_a_tested_one() -> None:
    assert _sdk.is_supported()


@pytest.mark.parametrize("tested", [((9, 0), (9, 1)), ((1, 0), (2, 3))], ids=["newer", "older"])
def test_versions_outside_of_the_range_are_not_supported(monkeypatch: pytest.MonkeyPatch, tested: Any) -> None:
    monkeypatch.setattr(_sdk, "TESTED", tested)
    assert not _sdk.is_supported()


@pytest.fixture
def unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def shortcut(*_: Any) -> Any:
        raise AssertionError("a shortcut was taken")

    monkeypatch.setattr(_sdk, "TESTED", ((9, 0), (9, 1)))
    monkeypatch.setattr(PlainCallMiddleware, "answer", shortcut)
    monkeypatch.setattr(FastPath, "answer", shortcut)


async def _use(client: Client) -> None:
    assert "add" in {tool.name for tool in (await client.list_tools()).tools}
    added = await client.call_tool("add", {"a": 2, "b": 3})
    assert added.structured_content is not None
    assert added.structured_content["value"] == 5
    assert (await client.call_tool("refuse", {"reason": "x"})).is_error
    assert "secret" not in text_of(await client.call_tool("crash", {}))


@pytest.mark.usefixtures("unsupported")
@pytest.mark.parametrize("mode", MODES)
async def test_calls_in_memory_go_the_way_of_the_sdk(mode: str) -> None:
    async with client_of(declared.toolset(), mode, elicitation_callback=Person("x")) as client:
        await _use(client)


@pytest.mark.usefixtures("unsupported")
@pytest.mark.parametrize("mode", MODES)
async def test_calls_over_http_go_the_way_of_the_sdk(mode: str) -> None:
    async with served_http(declared.toolset()) as base, Client(f"{base}/mcp", mode=mode) as client:  # pyright: ignore[reportArgumentType]
        await _use(client)


def test_imports_are_plain() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["module", "True", "True"]
