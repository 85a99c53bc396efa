"""The settings of the content tools, from a file to the tools; and wrong ones, with the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from trysquare import ConfigurationError
from trysquare.content import ContentConfig, content_config
from trysquare.settings import load_settings


def configured(folder: Path, text: str, environment: dict[str, str] | None = None) -> ContentConfig:
    (folder / "trysquare.toml").write_text(f"[content]\n{text}", encoding="utf-8")
    loaded = load_settings({}, environment or {}, folder)
    return content_config(loaded.settings.content)


def test_names_and_addresses_are_read(tmp_path: Path) -> None:
    config = configured(
        tmp_path,
        'feeds = ["a=https://a.example/?x=y", " b = http://b.example "]\nallow_hosts = ["Wiki.Example:8080"]\n',
    )
    assert config.feeds == {"a": "https://a.example/?x=y", "b": "http://b.example"}
    assert config.fetch.allows("wiki.example", 8080)
    assert not config.fetch.allows("wiki.example", 80)


@pytest.mark.parametrize("wrong", ["https://a.example", "a=", "=https://a.example", "a=file:///etc/passwd"])
def test_what_is_no_name_and_address_is_refused_with_its_place(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(ConfigurationError, match=r"trysquare\.toml:2.*expected NAME=URL"):
        configured(tmp_path, f'feeds = ["{wrong}"]\n')


def test_secrets_come_from_the_environment_and_are_not_shown(tmp_path: Path) -> None:
    secret = {"TRYSQUARE_CONTENT_NOTION_TOKEN": "secret_x", "TRYSQUARE_CONTENT_GOOGLE_TOKEN": "secret_y"}
    config = configured(tmp_path, 'notion_page = "p"\n', secret)
    assert (config.notion.token, config.notion.is_set, config.calendar.is_set) == ("secret_x", True, True)
    assert "secret_" not in repr(config)


@pytest.mark.parametrize("line", ['notion_token = "t"', 'notion_page = "p"', 'google_client = "c"'])
def test_half_of_a_login_is_none(tmp_path: Path, line: str) -> None:
    config = configured(tmp_path, line)
    assert not config.notion.is_set
    assert not config.calendar.is_set
