"""What a user sets for the content tools: feeds, links, the calendar and Notion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import SecretStr

from trysquare.settings.model import ContentSettings
from trysquare.workbench.fetch_config import FetchConfig, FetchLimits


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkConfig:
    """Links that stay the same from text to text, each under its name."""

    social: Mapping[str, str] = field(default_factory=dict[str, str])
    custom: Mapping[str, str] = field(default_factory=dict[str, str])
    youtube_placeholder: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CalendarConfig:
    """How Google Calendar is reached: with an access token, or with a refresh token that gives one."""

    calendar: str = "primary"
    token: str | None = field(default=None, repr=False)
    client: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    url: str = "https://www.googleapis.com"
    token_url: str = "https://oauth2.googleapis.com/token"

    @property
    def is_set(self) -> bool:
        """Whether there is anything to sign in with."""
        return bool(self.token or (self.refresh_token and self.client and self.client_secret))


@dataclass(frozen=True, kw_only=True, slots=True)
class NotionConfig:
    """How Notion is reached, and below which page or in which data source pages are made."""

    token: str | None = field(default=None, repr=False)
    page: str | None = None
    data_source: str | None = None
    url: str = "https://api.notion.com"

    @property
    def is_set(self) -> bool:
        """Whether there is a token, and a place for pages."""
        return bool(self.token and (self.page or self.data_source))


@dataclass(frozen=True, kw_only=True, slots=True)
class ContentConfig:
    """Everything that the content tools need to know."""

    feeds: Mapping[str, str] = field(default_factory=dict[str, str])
    links: LinkConfig = field(default_factory=LinkConfig)
    fetch: FetchConfig = field(default_factory=FetchConfig)
    calendar: CalendarConfig = field(default_factory=CalendarConfig)
    notion: NotionConfig = field(default_factory=NotionConfig)


def content_config(given: ContentSettings) -> ContentConfig:
    """The settings as the tools use them."""
    return ContentConfig(
        feeds=_named(given.feeds),
        links=LinkConfig(
            social=_named(given.social_links),
            custom=_named(given.custom_links),
            youtube_placeholder=given.youtube_placeholder,
        ),
        fetch=FetchConfig(
            allow_hosts=frozenset(host.lower() for host in given.allow_hosts),
            limits=FetchLimits(bytes=given.fetch_bytes, seconds=given.fetch_seconds),
        ),
        calendar=CalendarConfig(
            calendar=given.calendar,
            token=_open(given.google_token),
            client=given.google_client,
            client_secret=_open(given.google_client_secret),
            refresh_token=_open(given.google_refresh_token),
            url=given.google_url,
            token_url=given.google_token_url,
        ),
        notion=NotionConfig(
            token=_open(given.notion_token),
            page=given.notion_page,
            data_source=given.notion_data_source,
            url=given.notion_url,
        ),
    )


def _named(lines: Iterable[str]) -> dict[str, str]:
    pairs = (line.split("=", 1) for line in lines)
    return {name.strip(): address.strip() for name, address in pairs}


def _open(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()
