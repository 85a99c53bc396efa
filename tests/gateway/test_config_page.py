"""The page about the gateway's file names every key and every variable that the reader knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trysquare.gateway import ServerConfig
from trysquare.gateway.config.entries import COMMAND_KEYS, OWN_KEYS, URL_KEYS
from trysquare.gateway.config.file import SECTIONS, SETTINGS_KEY
from trysquare.gateway.models import ConfigLocation

SOURCE = Path(__file__).parents[2] / "src" / "trysquare" / "gateway"
PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "gateway-config.md").read_text(encoding="utf-8")
READERS = ("entries.py",)
ASKED = re.compile(r'fields\.(?:text|texts|table|flag|number|count|inner|member)\(((?:"\w+"(?:, )?)+)\)')


def asked_keys() -> set[str]:
    """The keys that the readers ask for by name."""
    texts = [(SOURCE / "config" / name).read_text(encoding="utf-8") for name in READERS]
    return {key for text in texts for names in ASKED.findall(text) for key in re.findall(r'"(\w+)"', names)}


@pytest.mark.parametrize("key", sorted({*asked_keys(), *COMMAND_KEYS, *URL_KEYS, *SECTIONS, *OWN_KEYS, SETTINGS_KEY}))
def test_every_key_is_on_the_page(key: str) -> None:
    assert f"`{key}`" in PAGE or f"`{key}." in PAGE


@pytest.mark.parametrize("kind", ["${VAR}", "${VAR:-", "${env:", "${input:", "${keyring:", "${userHome}"])
def test_every_kind_of_variable_is_on_the_page(kind: str) -> None:
    assert f"`{kind}" in PAGE


def test_the_defaults_on_the_page_are_those_of_the_code() -> None:
    server = ServerConfig(name="a", tool_name="mcp_a", transport="stdio", location=ConfigLocation(file="f"))
    for key in ("timeout", "start_timeout", "idle", "concurrency", "result_bytes", "max_line", "max_tools"):
        assert f"| `{key}` | {int(getattr(server, key))} |" in PAGE
    assert f'| `sharing` | `"{server.sharing}"` |' in PAGE
