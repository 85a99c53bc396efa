"""calendar: looks into Google calendars, and changes them with a person's consent."""

from __future__ import annotations

import functools
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import InvalidArguments
from trysquare.core.metadata import Consent, Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import folded, quoted
from trysquare.workbench.answers import answered
from trysquare.workbench.content.config import CalendarConfig

if TYPE_CHECKING:
    from trysquare.workbench.content.google_calendar import GoogleCalendar

CHANGING = frozenset({"create_event", "update_event", "delete_event"})

CalendarId = Annotated[str | None, Field(max_length=300, description="By default the configured one")]
EventId = Annotated[str, Field(min_length=1, max_length=1024, description="As list_events gives it")]
Moment = Annotated[str, Field(max_length=40, description="2026-11-20T09:00:00+01:00, or 2026-11-20 for a day")]
Words = Annotated[str | None, Field(max_length=8000, description="What it is about")]
Place = Annotated[str | None, Field(max_length=1000, description="Where it is")]
Summary = Annotated[str, Field(min_length=1, max_length=1000, description="Its title")]


class _OfCalendar(ToolArguments):
    calendar_id: CalendarId = None


class ListEvents(_OfCalendar):
    """What is coming."""

    action: Literal["list_events"]
    time_min: Annotated[Moment | None, Field(description="From when, with the offset from UTC")] = None
    time_max: Annotated[Moment | None, Field(description="Until when, with the offset from UTC")] = None
    max_results: Annotated[int, Field(ge=1, le=250, description="How many at most")] = 10


class GetEvent(_OfCalendar):
    """One event."""

    action: Literal["get_event"]
    event_id: EventId


class CreateEvent(_OfCalendar):
    """A new event."""

    action: Literal["create_event"]
    summary: Summary
    start_time: Moment
    end_time: Moment
    description: Words = None
    location: Place = None
    request_key: Annotated[
        str | None, Field(min_length=1, max_length=200, description="Sent again with it, nothing is made twice")
    ] = None


class UpdateEvent(_OfCalendar):
    """Changes of an event."""

    action: Literal["update_event"]
    event_id: EventId
    summary: Summary | None = None
    start_time: Moment | None = None
    end_time: Moment | None = None
    description: Words = None
    location: Place = None


class DeleteEvent(_OfCalendar):
    """An event that is to go."""

    action: Literal["delete_event"]
    event_id: EventId


class CheckAvailability(_OfCalendar):
    """Whether a time is free."""

    action: Literal["check_availability"]
    time_min: Annotated[Moment, Field(description="From when, with the offset from UTC")]
    time_max: Annotated[Moment, Field(description="Until when, with the offset from UTC")]


Arguments = ListEvents | GetEvent | CreateEvent | UpdateEvent | DeleteEvent | CheckAvailability


def calendar_tool(config: CalendarConfig) -> Tool:
    """The tool over the calendars of one account."""

    @functools.cache
    def google() -> GoogleCalendar:
        # What speaks HTTP takes long to import, so it is when somebody first wants it; then it keeps its tokens.
        from trysquare.workbench.content.google_calendar import GoogleCalendar

        return GoogleCalendar(config)

    async def calendar(
        args: ListEvents | GetEvent | CreateEvent | UpdateEvent | DeleteEvent | CheckAvailability,
    ) -> Result[Any]:
        """Look into a Google calendar, or change it."""
        return await _done(google(), args)

    return tool(
        calendar,
        category="research",
        needs=("google_calendar",),
        room="workbench",
        consent=Consent(question="Let {action} change the calendar?", actions=CHANGING),
        destructive=True,
        open_world=True,
        result_limit=None,
        use_when="the text is about dates, events or free time of the person",
        avoid_when="the prompt names no event and no time",
        limits="Google Calendar; a person is asked before each change",
        examples=(Example(arguments={"action": "list_events", "max_results": 5}, explanation="The next five."),),
        trigger_words=("calendar", "events", "meeting", "available", "schedule"),
        meta={"trysquare/read_only_actions": ("list_events", "get_event", "check_availability")},
    )


async def _done(google: GoogleCalendar, args: Arguments) -> Result[Any]:
    match args:
        case ListEvents():
            return await _listed(google, args)
        case GetEvent():
            event = await google.get(google.calendar(args.calendar_id), args.event_id)
            return _shown([event], full=True)
        case CreateEvent():
            return await _created(google, args)
        case UpdateEvent():
            return await _updated(google, args)
        case DeleteEvent():
            gone = await google.delete(google.calendar(args.calendar_id), args.event_id)
            return answered(f"Event {args.event_id} {'was deleted' if gone else 'was gone already'}.")
        case CheckAvailability():
            return await _availability(google, args)


async def _listed(google: GoogleCalendar, args: ListEvents) -> Result[Any]:
    query: dict[str, str | int] = {"maxResults": args.max_results}
    # Without a start Google would begin with the first event ever.
    query["timeMin"] = _instant("time_min", args.time_min) if args.time_min else datetime.now().astimezone().isoformat()
    if args.time_max:
        query["timeMax"] = _instant("time_max", args.time_max)
    events = await google.list(google.calendar(args.calendar_id), query=query)
    return _shown(events) if events else answered("There are no events in that time.", data={"events": []})


async def _created(google: GoogleCalendar, args: CreateEvent) -> Result[Any]:
    start, end = _moment("start_time", args.start_time), _moment("end_time", args.end_time)
    _require_order(args.start_time, args.end_time)
    event: JsonObject = {"summary": args.summary, "start": start, "end": end}
    event |= _given(description=args.description, location=args.location)
    made, is_new = await google.create(google.calendar(args.calendar_id), event, key=args.request_key)
    said = "was made" if is_new else "was made by an earlier call with this key"
    return answered(
        f"Event {made.get('id')} {said}: {folded(str(made.get('htmlLink', '')))}",
        data={"event_id": made.get("id"), "link": made.get("htmlLink"), "new": is_new},
    )


async def _updated(google: GoogleCalendar, args: UpdateEvent) -> Result[Any]:
    changes = _given(summary=args.summary, description=args.description, location=args.location)
    if args.start_time is not None:
        changes["start"] = _moment("start_time", args.start_time)
    if args.end_time is not None:
        changes["end"] = _moment("end_time", args.end_time)
    if not changes:
        raise InvalidArguments("Nothing to change was given. Give at least one of summary, start_time, end_time, …")
    if args.start_time is not None and args.end_time is not None:
        _require_order(args.start_time, args.end_time)
    event = await google.update(google.calendar(args.calendar_id), args.event_id, changes)
    return answered(f"Event {event.get('id')} was changed: {', '.join(changes)}.", data={"event_id": event.get("id")})


async def _availability(google: GoogleCalendar, args: CheckAvailability) -> Result[Any]:
    start, end = _instant("time_min", args.time_min), _instant("time_max", args.time_max)
    _require_order(args.time_min, args.time_max)
    busy = await google.busy(google.calendar(args.calendar_id), start=start, end=end)
    spans = [f"{span.get('start')} to {span.get('end')}" for span in busy]
    told = "Free all the time." if not spans else "Busy: " + "; ".join(spans)
    return answered(told, data={"free": not spans, "busy": busy})


def _shown(events: list[JsonObject], *, full: bool = False) -> Result[Any]:
    """Events as a quotation: whoever sends an invitation writes its words."""
    text = "\n".join(_line(event, full=full) for event in events)
    return answered(quoted(text, source="Google Calendar"), data={"events": [str(event.get("id")) for event in events]})


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
    """A time as Google takes it: an instant, or a whole day."""
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
            f"`{name}` is `{text[:40]}`, which is no time with its offset from UTC.",
            instruction="Write it like 2026-11-20T09:00:00+01:00 or 2026-11-20T08:00:00Z.",
        )
    return moment.isoformat()


def _require_order(start: str, end: str) -> None:
    first, last = _is_day(start), _is_day(end)
    if first != last:
        raise InvalidArguments("The start and the end must both be days, or both be times.")
    if datetime.fromisoformat(end) <= datetime.fromisoformat(start):
        raise InvalidArguments(
            "The end must come after the start.",
            instruction="For a whole day the end is the day after." if first else None,
        )
