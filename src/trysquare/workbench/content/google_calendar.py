"""Google Calendar: the requests of its API, version 3, that the calendar tool makes."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote

import httpx2

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.workbench.content.api import Api, ServiceRefused, http_client
from trysquare.workbench.content.config import CalendarConfig

_EARLY = 60.0
"""Seconds before its end at which an access token counts as used up."""


class GoogleCalendar:
    """Google's calendars, through one account."""

    def __init__(self, config: CalendarConfig) -> None:
        self._config = config
        self._api = Api(service="Google Calendar", url=config.url, token_setting="content.google_token")
        self._token = config.token
        self._until = float("inf") if config.token else 0.0

    def calendar(self, named: str | None) -> str:
        """The calendar that a call means."""
        return named or self._config.calendar

    async def list(self, calendar: str, *, query: Mapping[str, str | int]) -> list[JsonObject]:
        """Events in the order of their start, recurring ones one by one."""
        asked = {**query, "singleEvents": "true", "orderBy": "startTime"}
        return (await self._send("GET", _events(calendar), query=asked)).get("items", [])

    async def get(self, calendar: str, event: str) -> JsonObject:
        """One event."""
        return await self._send("GET", _events(calendar, event))

    async def create(self, calendar: str, event: JsonObject, *, key: str | None) -> tuple[JsonObject, bool]:
        """Make an event, or find the one that the same key made before; says whether it is new."""
        if key is None:
            return await self._send("POST", _events(calendar), body=event), True
        own_id = _id_of(key)
        try:
            return await self._send("POST", _events(calendar), body={**event, "id": own_id}), True
        except ServiceRefused as error:
            # Google refuses an id that is taken, so an event that was made by an earlier try is not made again.
            if error.status != 409:
                raise
            return await self.get(calendar, own_id), False

    async def update(self, calendar: str, event: str, changes: JsonObject) -> JsonObject:
        """Change what is given of an event."""
        return await self._send("PATCH", _events(calendar, event), body=changes)

    async def delete(self, calendar: str, event: str) -> bool:
        """Delete an event; False if it was gone already."""
        try:
            await self._send("DELETE", _events(calendar, event))
        except ServiceRefused as error:
            if error.status != 410:
                raise
            return False
        return True

    async def busy(self, calendar: str, *, start: str, end: str) -> list[JsonObject]:
        """When a calendar is busy."""
        asked: JsonObject = {"timeMin": start, "timeMax": end, "items": [{"id": calendar}]}
        answer = await self._send("POST", "/calendar/v3/freeBusy", body=asked)
        # Looked up by place, since `primary` may come back under its real name.
        calendars: dict[str, JsonObject] = answer.get("calendars") or {}
        found = next(iter(calendars.values()), {"errors": [{"reason": "no answer"}]})
        if errors := found.get("errors"):
            raise ServiceRefused(
                f"Google Calendar cannot tell when `{calendar}` is busy: {errors[0].get('reason', 'unknown')}.",
                status=404,
                code=ErrorCode.RESOURCE_NOT_FOUND,
                instruction="Check calendar_id; the calendar may not be shared with this account.",
            )
        return found.get("busy", [])

    async def _send(self, method: str, path: str, **more: Any) -> JsonObject:
        headers = {"Authorization": f"Bearer {await self._current_token()}"}
        try:
            return await self._api.send(method, path, headers=headers, **more)
        except ServiceRefused as error:
            if error.status != 401 or not self._config.refresh_token:
                raise
        self._until = 0.0
        return await self._api.send(
            method, path, headers={"Authorization": f"Bearer {await self._current_token()}"}, **more
        )

    async def _current_token(self) -> str:
        if self._token is not None and time.monotonic() < self._until:
            return self._token
        if not self._config.is_set:
            raise ToolError(
                "Google Calendar is not configured.",
                code=ErrorCode.CONFIG_NOT_FOUND,
                instruction="Go on without it, or tell the person to set content.google_token, or "
                "content.google_client, content.google_client_secret and content.google_refresh_token.",
            )
        return await self._refreshed()

    async def _refreshed(self) -> str:
        form = {
            "grant_type": "refresh_token",
            "client_id": self._config.client or "",
            "client_secret": self._config.client_secret or "",
            "refresh_token": self._config.refresh_token or "",
        }
        answer = await _granted(self._config.token_url, form)
        self._token = str(answer["access_token"])
        self._until = time.monotonic() + float(answer.get("expires_in", 3600)) - _EARLY
        return self._token


async def _granted(url: str, form: Mapping[str, str]) -> JsonObject:
    """What the token endpoint gives. Its answers hold secrets, so no failure repeats them."""
    try:
        async with await http_client(url) as client:
            response = await client.post(url, data=dict(form))
        answer: Any = response.json() if response.is_success else None
    except (httpx2.HTTPError, ValueError) as error:
        raise ToolError(
            f"Google gives no access token: {type(error).__name__}.", code=ErrorCode.UPSTREAM_UNAVAILABLE
        ) from None
    if not isinstance(answer, dict) or "access_token" not in answer:
        raise ToolError(
            f"Google gives no access token: it answered {response.status_code}.",
            code=ErrorCode.UPSTREAM_REFUSED,
            instruction="Tell the person to sign in again and to set content.google_refresh_token anew.",
        )
    return cast(JsonObject, answer)


def _events(calendar: str, event: str | None = None) -> str:
    path = f"/calendar/v3/calendars/{quote(calendar, safe='')}/events"
    return path if event is None else f"{path}/{quote(event, safe='')}"


def _id_of(key: str) -> str:
    """An event's id made of a request key, in the letters that Google allows: base32hex in lower case."""
    digest = hashlib.sha256(key.encode()).digest()
    return base64.b32hexencode(digest).decode("ascii").rstrip("=").lower()
