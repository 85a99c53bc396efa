"""What every test gets: one event loop, and a home of its own so that no test touches a user's files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is slow now and then; how long an example takes says nothing about what is tested.
settings.register_profile("trysquare", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("trysquare")


@pytest.fixture
def anyio_backend() -> str:
    """Trysquare runs on asyncio; anyio comes with the MCP SDK."""
    return "asyncio"


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """State and configuration folders of this test alone."""
    home = tmp_path_factory.mktemp("home")
    for name in ("MCP_TOOL_PREFIX", "MCP_INCLUDE_EXAMPLE_TOOLS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    return home
