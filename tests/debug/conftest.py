"""Fixtures shared by the tests of the debugger."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def build_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One build cache for all workers of a run: with a home of its own, each test would compile the same again."""
    base = tmp_path_factory.getbasetemp()
    cache = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "build-cache"
    cache.mkdir(exist_ok=True)
    return cache


@pytest.fixture(autouse=True)
def shared_builds(build_cache: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Share Go's compiled standard library and the compiled Java bridge; start pytest without third-party plugins."""
    monkeypatch.setenv("GOCACHE", os.fspath(build_cache / "go"))
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(build_cache))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
