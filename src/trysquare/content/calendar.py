"""Tool `calendar` and the Google Calendar API."""

from __future__ import annotations

import base64
import functools
import hashlib
import time
from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any, Literal, cast
from urllib.parse import quote

from pydantic import Field

from trysquare.content.config import CalendarConfig
from trysquare.content.service import Api, ServiceRefused, http_client
from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.metadata import Consent, Example
from trysquare.core.result import Result, answered
from trysquare.core.tool import Tool, tool
from trysquare.core.untrusted import folded, quote_untrusted

CHANGING = frozenset({"create_event", "update_event", "delete_event"})

CalendarId = Annotated[str | None, Field(max_length=300, description="By default the configured one")]
EventId = Annotated[str, Field(min_length=1, max_length=1024, description="As list_events gives it")]
Moment = Annotated[str, Field(max_length=40, description="2026-11-20T09:00:00+01:00, or 2026-11-20 for a day")]
Words = Annotated[str | None, Field(max_length=8000, description="What it is about")]
Location = Annotated[str | None, Field(max_length=1000, description="Where it is")]
Summary = Annotated[str, Field(min_length=1, max_length=1000, description="Its title")]


class _OfCalendar(ToolArguments):
    calendar_id: CalendarId = None


class ListEvents(_OfCalendar):
    action: Literal["list_events"]
    time_min: Annotated[Moment | None, Field(description="From when, with the offset from UTC")] = None
    time_max: Annotated[Moment | None, Field(description="Until when, with the offset from UTC")] = None
    max_results: Annotated[int, Field(ge=1, le=250, description="How many at most")] = 10


class GetEvent(_OfCalendar):
    action: Literal["get_event"]
    event_id: EventId


class CreateEvent(_OfCalendar):
    action: Literal["create_event"]
    summary: Summary
    start_time: Moment
    end_time: Moment
    description: Words = None
    location: Location = None
    request_key: Annotated[
        str | None,
        Field(min_length=1, max_length=200, description="A key of your choice: repeated, nothing is created twice"),
    ] = None


class UpdateEvent(_OfCalendar):
    action: Literal["update_event"]
    event_id: EventId
    summary: Summary | None = None
    start_time: Moment | None = None
    end_time: Moment | None = None
    description: Words = None
    location: Location = None


class DeleteEvent(_OfCalendar):
    action: Literal["delete_event"]
    event_id: EventId


class CheckAvailability(_OfCalendar):
    action: Literal["check_availability"]
    time_min: Annotated[Moment, Field(description="From when, with the offset from UTC")]
    time_max: Annotated[Moment, Field(description="Until when, with the offset from UTC")]


Arguments = ListEvents | GetEvent | CreateEvent | UpdateEvent | DeleteEvent | CheckAvailability


# Documented as in guide/tools/README.md.
def calendar_tool(config: CalendarConfig) -> Tool:
    @functools.cache
    def google() -> GoogleCalendar:
        return GoogleCalendar(config)

    async def calendar(args: Arguments) -> Result[Any]:
        """Look into a Google calendar, or change it."""
        match args:
            case ListEvents():
                return await _list_events(google(), args)
            case GetEvent():
                return _format_events([await google().get(args.calendar_id, args.event_id)], full=True)
            case CreateEvent():
                return await _create_event(google(), args)
            case UpdateEvent():
                return await _update_event(google(), args)
            case DeleteEvent():
                gone = await google().delete(args.calendar_id, args.event_id)
                return answered(f"Event {args.event_id} {'was deleted' if gone else 'was already deleted'}.")
            case CheckAvailability():
                return await _check_availability(google(), args)

    return tool(
        calendar,
        category="research",
        needs=("google_calendar",),
        toolset="workbench",
        consent=Consent(question="Let {action} change the calendar?", actions=CHANGING),
        destructive=True,
        open_world=True,
        result_limit=None,
        use_when="the text is about dates, events or free time of the user",
        avoid_when="the prompt names no event and no time",
        limits="Google Calendar; the user is asked before each change",
        examples=(Example(arguments={"action": "list_events", "max_results": 5}, explanation="The next five."),),
        trigger_words=("calendar", "events", "meeting", "available", "schedule"),
        meta={"trysquare/read_only_actions": ("list_events", "get_event", "check_availability")},
    )


async def _list_events(google: GoogleCalendar, args: ListEvents) -> Result[Any]:
    query: dict[str, str | int] = {"maxResults": args.max_results}
    # Without a start Google lists from the first event ever.
    query["timeMin"] = _instant("time_min", args.time_min) if args.time_min else datetime.now().astimezone().isoformat()
    if args.time_max:
        query["timeMax"] = _instant("time_max", args.time_max)
    events = await google.list(args.calendar_id, query=query)
    return _format_events(events) if events else answered("There are no events in that time.", data={"events": []})


async def _create_event(google: GoogleCalendar, args: CreateEvent) -> Result[Any]:
    start, end = _moment("start_time", args.start_time), _moment("end_time", args.end_time)
    _require_order(args.start_time, args.end_time)
    event: JsonObject = {"summary": args.summary, "start": start, "end": end}
    event |= _given(description=args.description, location=args.location)
    made, is_new = await google.create(args.calendar_id, event, key=args.request_key)
    outcome = "was created" if is_new else "was created by an earlier call with this key"
    return answered(
        f"Event {made.get('id')} {outcome}: {folded(str(made.get('htmlLink', '')))}",
        data={"event_id": made.get("id"), "link": made.get("htmlLink"), "new": is_new},
    )


async def _update_event(google: GoogleCalendar, args: UpdateEvent) -> Result[Any]:
    changes = _given(summary=args.summary, description=args.description, location=args.location)
    if args.start_time is not None:
        changes["start"] = _moment("start_time", args.start_time)
    if args.end_time is not None:
        changes["end"] = _moment("end_time", args.end_time)
    if not changes:
        raise InvalidArguments(
            "Nothing to change. Send at least one of summary, start_time, end_time, description, location."
        )
    if args.start_time is not None and args.end_time is not None:
        _require_order(args.start_time, args.end_time)
    event = await google.update(args.calendar_id, args.event_id, changes)
    return answered(f"Event {event.get('id')} was changed: {', '.join(changes)}.", data={"event_id": event.get("id")})


async def _check_availability(google: GoogleCalendar, args: CheckAvailability) -> Result[Any]:
    start, end = _instant("time_min", args.time_min), _instant("time_max", args.time_max)
    _require_order(args.time_min, args.time_max)
    busy = await google.busy(args.calendar_id, start=start, end=end)
    spans = [f"{span.get('start')} to {span.get('end')}" for span in busy]
    text = "Free all the time." if not spans else "Busy: " + "; ".join(spans)
    return answered(text, data={"free": not spans, "busy": busy})


def _format_events(events: list[JsonObject], *, full: bool = False) -> Result[Any]:
    """Events quoted as untrusted text: the sender of an invitation writes it."""
    text = "\n".join(_line(event, full=full) for event in events)
    return answered(
        quote_untrusted(text, source="Google Calendar"), data={"events": [str(event.get("id")) for event in events]}
    )


def _line(event: JsonObject, *, full: bool) -> str:
    span = f"{_when(event.get('start'))} to {_when(event.get('end'))}"
    parts = [event.get("id"), span, event.get("summary"), event.get("location"), event.get("status")]
    line = "* " + " | ".join(folded(str(part)) for part in parts if part)
    words = event.get("description")
    return f"{line}\n  {folded(str(words), 2000)}" if full and words else line


def _when(moment: JsonObject | None) -> str:
    return str(moment.get("dateTime") or moment.get("date")) if moment else "?"


def _given(**parts: str | None) -> JsonObject:
    return {name: part for name, part in parts.items() if part is not None}


def _moment(name: str, text: str) -> JsonObject:
    """A time in Google's form: an instant, or a whole day."""
    return {"date": text} if _is_day(text) else {"dateTime": _instant(name, text)}


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _instant(name: str, text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidArguments(
            f"`{name}` is `{text[:40]}`, not a time with a UTC offset.",
            instruction="Send it as 2026-11-20T09:00:00+01:00 or 2026-11-20T08:00:00Z.",
        )
    return moment.isoformat()


def _require_order(start: str, end: str) -> None:
    first, last = _is_day(start), _is_day(end)
    if first != last:
        raise InvalidArguments("The start and the end must both be dates, or both be times.")
    if datetime.fromisoformat(end) <= datetime.fromisoformat(start):
        raise InvalidArguments(
            "The end must come after the start.",
            instruction="For a whole day the end is the next day." if first else None,
        )


_EARLY = 60.0
"""Seconds before its expiry at which an access token is refreshed."""


class GoogleCalendar:
    """Google Calendar API of one account; a calendar that is not named is the configured one."""

    def __init__(self, config: CalendarConfig) -> None:
        self._config = config
        self._api = Api(service="Google Calendar", url=config.url, token_setting="content.google_token")
        self._token = config.token
        self._until = float("inf") if config.token else 0.0

    async def list(self, calendar: str | None, *, query: Mapping[str, str | int]) -> list[JsonObject]:
        """Events by start time, recurring ones expanded."""
        asked = {**query, "singleEvents": "true", "orderBy": "startTime"}
        return (await self._send("GET", self._events(calendar), query=asked)).get("items", [])

    async def get(self, calendar: str | None, event: str) -> JsonObject:
        return await self._send("GET", self._events(calendar, event))

    async def create(self, calendar: str | None, event: JsonObject, *, key: str | None) -> tuple[JsonObject, bool]:
        """Create an event, or return the one that the same key created before; and whether it is new."""
        if key is None:
            return await self._send("POST", self._events(calendar), body=event), True
        # In the alphabet that Google allows for ids: lower-case base32hex.
        digest = hashlib.sha256(key.encode()).digest()
        own_id = base64.b32hexencode(digest).decode("ascii").rstrip("=").lower()
        try:
            return await self._send("POST", self._events(calendar), body={**event, "id": own_id}), True
        except ServiceRefused as error:
            # Google rejects an id that is taken, so an event of an earlier attempt is not created again.
            if error.status != 409:
                raise
            return await self.get(calendar, own_id), False

    async def update(self, calendar: str | None, event: str, changes: JsonObject) -> JsonObject:
        return await self._send("PATCH", self._events(calendar, event), body=changes)

    async def delete(self, calendar: str | None, event: str) -> bool:
        """Delete an event; False if it was already deleted."""
        try:
            await self._send("DELETE", self._events(calendar, event))
        except ServiceRefused as error:
            if error.status != 410:
                raise
            return False
        return True

    async def busy(self, named: str | None, *, start: str, end: str) -> list[JsonObject]:
        calendar = named or self._config.calendar
        asked: JsonObject = {"timeMin": start, "timeMax": end, "items": [{"id": calendar}]}
        answer = await self._send("POST", "/calendar/v3/freeBusy", body=asked)
        # Taken by position, since `primary` may come back under its real name.
        calendars: dict[str, JsonObject] = answer.get("calendars") or {}
        found = next(iter(calendars.values()), {"errors": [{"reason": "no answer"}]})
        if errors := found.get("errors"):
            raise ServiceRefused(
                f"Google Calendar returned no free/busy data for `{calendar}`: {errors[0].get('reason', 'unknown')}.",
                status=404,
                code=ErrorCode.RESOURCE_NOT_FOUND,
                instruction="Check calendar_id; the calendar may not be shared with this account.",
            )
        return found.get("busy", [])

    def _events(self, calendar: str | None, event: str | None = None) -> str:
        path = f"/calendar/v3/calendars/{quote(calendar or self._config.calendar, safe='')}/events"
        return path if event is None else f"{path}/{quote(event, safe='')}"

    async def _send(self, method: str, path: str, *, retry: bool = True, **more: Any) -> JsonObject:
        headers = {"Authorization": f"Bearer {await self._current_token()}"}
        try:
            return await self._api.send(method, path, headers=headers, **more)
        except ServiceRefused as error:
            if not retry or error.status != 401 or not self._config.refresh_token:
                raise
        self._until = 0.0
        return await self._send(method, path, retry=False, **more)

    async def _current_token(self) -> str:
        if self._token is not None and time.monotonic() < self._until:
            return self._token
        if not self._config.is_set:
            raise ToolError(
                "Google Calendar is not configured.",
                code=ErrorCode.CONFIG_NOT_FOUND,
                instruction="Continue without it, or ask the user to set content.google_token, or "
                "content.google_client, content.google_client_secret and content.google_refresh_token.",
            )
        answer = await _fetch_token(self._config)
        self._token = str(answer["access_token"])
        self._until = time.monotonic() + float(answer.get("expires_in", 3600)) - _EARLY
        return self._token


async def _fetch_token(config: CalendarConfig) -> JsonObject:
    """The token endpoint's response; it has secrets, so no error repeats it."""
    # Before the import, since it reports a missing package.
    client = await http_client(config.token_url)
    import httpx2

    form = {
        "grant_type": "refresh_token",
        "client_id": config.client or "",
        "client_secret": config.client_secret or "",
        "refresh_token": config.refresh_token or "",
    }
    try:
        async with client:
            response = await client.post(config.token_url, data=form)
        answer: Any = response.json() if response.is_success else None
    except (httpx2.HTTPError, ValueError) as error:
        raise ToolError(
            f"Google returned no access token: {type(error).__name__}.", code=ErrorCode.UPSTREAM_UNAVAILABLE
        ) from None
    if not isinstance(answer, dict) or "access_token" not in answer:
        raise ToolError(
            f"Google returned no access token: status {response.status_code}.",
            code=ErrorCode.UPSTREAM_REFUSED,
            instruction="Ask the user to sign in again and to update content.google_refresh_token.",
        )
    return cast(JsonObject, answer)
