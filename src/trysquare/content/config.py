"""Configuration of the content tools: feeds, links, calendar and Notion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import SecretStr

from trysquare.net.fetch import FetchConfig, FetchLimits
from trysquare.settings.model import ContentSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkConfig:
    """Fixed links by name."""

    social: Mapping[str, str] = field(default_factory=dict[str, str])
    custom: Mapping[str, str] = field(default_factory=dict[str, str])
    youtube_placeholder: str | None = None

    @property
    def is_set(self) -> bool:
        return bool(self.social or self.custom or self.youtube_placeholder)


@dataclass(frozen=True, kw_only=True, slots=True)
class CalendarConfig:
    """Google Calendar account: an access token, or a refresh token."""

    calendar: str = "primary"
    token: str | None = field(default=None, repr=False)
    client: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    url: str = "https://www.googleapis.com"
    token_url: str = "https://oauth2.googleapis.com/token"

    @property
    def is_set(self) -> bool:
        return bool(self.token or (self.refresh_token and self.client and self.client_secret))


@dataclass(frozen=True, kw_only=True, slots=True)
class NotionConfig:
    """Notion integration, and the parent page or data source of new pages."""

    token: str | None = field(default=None, repr=False)
    page: str | None = None
    data_source: str | None = None
    url: str = "https://api.notion.com"

    @property
    def is_set(self) -> bool:
        return bool(self.token and (self.page or self.data_source))


@dataclass(frozen=True, kw_only=True, slots=True)
class ContentConfig:
    """Configuration of all content tools."""

    feeds: Mapping[str, str] = field(default_factory=dict[str, str])
    links: LinkConfig = field(default_factory=LinkConfig)
    fetch: FetchConfig = field(default_factory=FetchConfig)
    calendar: CalendarConfig = field(default_factory=CalendarConfig)
    notion: NotionConfig = field(default_factory=NotionConfig)


def content_config(given: ContentSettings) -> ContentConfig:
    return ContentConfig(
        feeds=_pairs(given.feeds),
        links=LinkConfig(
            social=_pairs(given.social_links),
            custom=_pairs(given.custom_links),
            youtube_placeholder=given.youtube_placeholder,
        ),
        fetch=FetchConfig(
            allow_hosts=frozenset(host.lower() for host in given.allow_hosts),
            limits=FetchLimits(bytes=given.fetch_bytes, seconds=given.fetch_seconds),
        ),
        calendar=CalendarConfig(
            calendar=given.calendar,
            token=_reveal(given.google_token),
            client=given.google_client,
            client_secret=_reveal(given.google_client_secret),
            refresh_token=_reveal(given.google_refresh_token),
            url=given.google_url,
            token_url=given.google_token_url,
        ),
        notion=NotionConfig(
            token=_reveal(given.notion_token),
            page=given.notion_page,
            data_source=given.notion_data_source,
            url=given.notion_url,
        ),
    )


def _pairs(lines: Iterable[str]) -> dict[str, str]:
    return {name.strip(): url.strip() for name, url in (line.split("=", 1) for line in lines)}


def _reveal(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()
