"""What the content tools need is tried for real."""

from __future__ import annotations

import socket

import pytest

from tests.content.google_stand_in import GoogleStandIn
from tests.content.notion_stand_in import NotionStandIn
from tests.content.web_server import web_server
from trysquare.content import ContentConfig, content_probes
from trysquare.content.config import CalendarConfig, NotionConfig


async def test_what_is_not_configured_is_missing() -> None:
    probes = content_probes(ContentConfig())
    assert "content.google_token" in (await probes["google_calendar"]() or "")
    assert "content.notion_token" in (await probes["notion"]() or "")


@pytest.mark.parametrize(("token", "reason"), [("access-1", None), ("old", "Google Calendar answered 401")])
async def test_google_is_asked(token: str, reason: str | None) -> None:
    async with web_server(GoogleStandIn().answer) as server:
        config = ContentConfig(calendar=CalendarConfig(token=token, url=server.url))
        told = await content_probes(config)["google_calendar"]()
    assert told is None if reason is None else reason in (told or "")


@pytest.mark.parametrize(("token", "reason"), [("secret_1", None), ("old", "Notion answered 401")])
async def test_notion_is_asked(token: str, reason: str | None) -> None:
    async with web_server(NotionStandIn().answer) as server:
        config = ContentConfig(notion=NotionConfig(token=token, page="page-1", url=server.url))
        told = await content_probes(config)["notion"]()
    assert told is None if reason is None else reason in (told or "")


@pytest.mark.parametrize("fails", [False, True])
async def test_the_network_is_there_where_a_way_leads_out(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    asked: list[tuple[str, int]] = []

    def connect(own: socket.socket, address: tuple[str, int]) -> None:
        asked.append(address)
        if fails:
            raise OSError("Network is unreachable")

    monkeypatch.setattr(socket.socket, "connect", connect)
    assert await content_probes(ContentConfig())["network"]() == ("there is no network" if fails else None)
    assert len(asked) == (2 if fails else 1)
