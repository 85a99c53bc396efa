"""Content tools and the probes of what they require."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

from trysquare.content.calendar import GoogleCalendar, calendar_tool
from trysquare.content.config import CalendarConfig, ContentConfig, NotionConfig
from trysquare.content.notion import Notion, blog_notion_tool
from trysquare.content.rss_feed import rss_feed_tool, static_links_tool
from trysquare.core.errors import ToolError
from trysquare.core.tool import Tool
from trysquare.store.database import Transactions

Probe: TypeAlias = Callable[[], Awaitable[str | None]]
"""Checks a capability: None where it is available, else what is missing."""

_UNUSED_ADDRESSES = (("192.0.2.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6))
"""Documentation addresses: connecting a UDP socket looks up the route and sends nothing."""


def content_probes(config: ContentConfig) -> dict[str, Probe]:
    return {
        "network": _network,
        "google_calendar": lambda: _google_calendar(config.calendar),
        "notion": lambda: _notion(config.notion),
    }


async def _network() -> str | None:
    for address, family in _UNUSED_ADDRESSES:
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
            return None
    return "there is no network"


async def _google_calendar(config: CalendarConfig) -> str | None:
    if not config.is_set:
        return "Google Calendar is not configured (content.google_token)"
    return await _problem(GoogleCalendar(config).list(None, query={"maxResults": 1}))


async def _notion(config: NotionConfig) -> str | None:
    if not config.is_set:
        return "Notion is not configured (content.notion_token, and content.notion_page or content.notion_data_source)"
    return await _problem(Notion(config).check())


async def _problem(request: Awaitable[object]) -> str | None:
    try:
        await request
    except ToolError as error:
        return error.message.rstrip(".")
    return None


def content_tools(config: ContentConfig, *, state: Transactions) -> tuple[Tool, ...]:
    """Every content tool; `state` records what was published. Nothing is contacted before a call."""
    return (
        listed_if(bool(config.feeds), rss_feed_tool(config)),
        listed_if(config.links.is_set, static_links_tool(config.links)),
        listed_if(config.calendar.is_set, calendar_tool(config.calendar)),
        listed_if(config.notion.is_set, blog_notion_tool(config.notion, state=state)),
    )


def listed_if(is_configured: bool, tool: Tool) -> Tool:
    """The tool; one that lacks its configuration is in no list, and explains when it is called what to set."""
    return tool if is_configured else replace(tool, metadata=replace(tool.metadata, profiles=frozenset()))
