"""Edits of the configuration are picked up by themselves, and a broken file changes nothing."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from trysquare.gateway import GatewayConfig, read_config
from trysquare.gateway.provider import config_changes


def write(path: Path, *names: str, comment: str = "") -> None:
    entries = ",".join(f'"{name}": {{"command": "run"}}' for name in names)
    path.write_text(f"{comment}{{{entries}}}", encoding="utf-8")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    write(path, "a")
    return path


def changes(path: Path) -> AsyncIterator[GatewayConfig]:
    return config_changes(read_config(path), poll_seconds=0.01)


async def next_names(found: AsyncIterator[GatewayConfig]) -> list[str]:
    with anyio.fail_after(20):
        return list((await anext(found)).servers)


async def test_each_edit_gives_the_configuration_anew(path: Path) -> None:
    found = changes(path)
    for names in (["a", "b"], ["b"], ["c"]):
        write(path, *names)
        assert await next_names(found) == names


async def test_an_edit_before_the_watch_began_is_found_too(path: Path) -> None:
    config = read_config(path)
    write(path, "b")
    assert await next_names(config_changes(config, poll_seconds=0.01)) == ["b"]


async def test_a_file_that_is_replaced_or_behind_a_link_is_followed(path: Path, tmp_path: Path) -> None:
    link, fresh = tmp_path / "link.json", tmp_path / "fresh.json"
    os.symlink(path, link)
    found = changes(link)
    write(fresh, "b")
    os.replace(fresh, path)
    assert await next_names(found) == ["b"]
    write(fresh, "c")
    os.unlink(link)
    os.symlink(fresh, link)
    assert await next_names(found) == ["c"]


class Mending(logging.Handler):
    """Hears that a file is wrong, and writes it anew."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.heard = path, list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(record.getMessage())
        self.path.unlink(missing_ok=True)
        write(self.path, "b")


def spoil(path: Path, text: str | None) -> None:
    path.unlink()
    if text is not None:
        path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("text", ["", "{ half", '{"theme": 1}', None])
async def test_a_file_that_is_wrong_or_gone_changes_nothing_until_it_is_right_again(
    path: Path, text: str | None
) -> None:
    found, mending = changes(path), Mending(path)
    spoil(path, text)
    logger = logging.getLogger("trysquare.gateway")
    logger.addHandler(mending)
    try:
        assert await next_names(found) == ["b"]
    finally:
        logger.removeHandler(mending)
    [heard] = mending.heard
    assert heard.startswith("config reload failed; ")
    assert "mcp.json" in heard


async def test_an_edit_that_changes_no_server_is_not_announced(path: Path) -> None:
    write(path, "a", comment="// a comment\n")

    def read(*paths: Path) -> GatewayConfig:
        found = read_config(*paths)
        write(path, "b")
        return found

    found = config_changes(read_config(path), read=read, poll_seconds=0.01)
    assert await next_names(found) == ["b"]
