"""Capabilities of the content tools, each tried for real."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from trysquare.core.errors import ToolError
from trysquare.workbench.content.config import CalendarConfig, ContentConfig, NotionConfig

Probe: TypeAlias = Callable[[], Awaitable[str | None]]
"""Tries a capability: None where it is there, else a sentence that says what is missing."""

_ELSEWHERE = (("192.0.2.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6))
"""Addresses of nobody: asking for the way to them sends nothing."""


def content_probes(config: ContentConfig) -> dict[str, Probe]:
    """The probes of what the content tools need."""
    return {
        "network": _network,
        "google_calendar": lambda: _google_calendar(config.calendar),
        "notion": lambda: _notion(config.notion),
    }


async def _network() -> str | None:
    return None if any(_has_way(address, family) for address, family in _ELSEWHERE) else "there is no network"


def _has_way(address: str, family: socket.AddressFamily) -> bool:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as asking:
            asking.connect((address, 9))
    except OSError:
        return False
    return True


async def _google_calendar(config: CalendarConfig) -> str | None:
    if not config.is_set:
        return "Google Calendar is not configured (content.google_token)"
    from trysquare.workbench.content.google_calendar import GoogleCalendar

    google = GoogleCalendar(config)
    try:
        await google.list(google.calendar(None), query={"maxResults": 1})
    except ToolError as error:
        return error.message.rstrip(".")
    return None


async def _notion(config: NotionConfig) -> str | None:
    if not config.is_set:
        return "Notion is not configured (content.notion_token, and content.notion_page or content.notion_data_source)"
    from trysquare.workbench.content.notion import Notion

    try:
        await Notion(config).check()
    except ToolError as error:
        return error.message.rstrip(".")
    return None
