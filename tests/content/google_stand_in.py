"""A stand-in for Google Calendar, not Google: it implements the documented requests of API version 3 that we make.

It keeps events in memory, and refuses what the documentation says is refused: a missing token, an id with letters that
are not base32hex, an id that is taken, a time without an offset, an end before its start.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.content.web_server import Answered, Asked, answer_json

_EVENTS = re.compile(r"/calendar/v3/calendars/([^/]+)/events(?:/([^/]+))?")
_ID = re.compile(r"[a-v0-9]{5,1024}")


def refused(status: int, message: str) -> Answered:
    return answer_json({"error": {"code": status, "message": message, "errors": [{"reason": "x"}]}}, status)


@dataclass(kw_only=True)
class GoogleStandIn:
    """The calendars of one account."""

    token: str = "access-1"
    refresh_token: str = "refresh-1"
    calendars: dict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: {"primary": {}})
    grants: int = 0
    lose_answers: int = 0
    """How many of the next events are made without the answer getting through."""

    def answer(self, asked: Asked) -> Answered | None:
        if asked.path == "/token":
            return self._grant(asked)
        if asked.headers.get("authorization") != f"Bearer {self.token}":
            return refused(401, "Request had invalid authentication credentials.")
        if asked.path == "/calendar/v3/freeBusy":
            return self._busy(asked.json)
        found = _EVENTS.fullmatch(asked.path)
        if found is None or found[1] not in self.calendars:
            return refused(404, "Not Found")
        events = self.calendars[found[1]]
        return self._all(asked, events) if found[2] is None else self._one(asked, events, found[2])

    def _grant(self, asked: Asked) -> Answered:
        form = dict(pair.split("=") for pair in asked.body.decode().split("&"))
        if (form.get("grant_type"), form.get("refresh_token")) != ("refresh_token", self.refresh_token):
            return answer_json({"error": "invalid_grant"}, 400)
        self.grants += 1
        return answer_json({"access_token": self.token, "expires_in": 3599, "token_type": "Bearer"})

    def _all(self, asked: Asked, events: dict[str, dict[str, Any]]) -> Answered | None:
        if asked.method == "GET":
            return self._listed(asked.query, events)
        event = asked.json
        own = event.get("id", f"made{len(events):05d}")
        if not _ID.fullmatch(own):
            return refused(400, "Invalid resource id value.")
        if own in events:
            return refused(409, "The requested identifier already exists.")
        if (problem := _problem(event)) is not None:
            return refused(400, problem)
        events[own] = {**event, "id": own, "status": "confirmed", "htmlLink": f"https://calendar.example/{own}"}
        if self.lose_answers:
            self.lose_answers -= 1
            return None
        return answer_json(events[own])

    def _listed(self, query: dict[str, str], events: dict[str, dict[str, Any]]) -> Answered:
        assert query["singleEvents"] == "true", "orderBy=startTime is only for single events"
        start, end = query.get("timeMin"), query.get("timeMax")
        kept = [event for event in events.values() if event["status"] != "cancelled"]
        kept = [event for event in kept if start is None or _at(event["end"]) > datetime.fromisoformat(start)]
        kept = [event for event in kept if end is None or _at(event["start"]) < datetime.fromisoformat(end)]
        return answer_json({"items": sorted(kept, key=lambda each: _at(each["start"]))[: int(query["maxResults"])]})

    def _one(self, asked: Asked, events: dict[str, dict[str, Any]], own: str) -> Answered:
        event = events.get(own)
        if event is None:
            return refused(404, "Not Found")
        if asked.method == "GET":
            return answer_json(event)
        if asked.method == "DELETE":
            if event["status"] == "cancelled":
                return refused(410, "Resource has been deleted")
            event["status"] = "cancelled"
            return Answered(status=204)
        changed = {**event, **asked.json}
        if (problem := _problem(changed)) is not None:
            return refused(400, problem)
        events[own] = changed
        return answer_json(changed)

    def _busy(self, body: dict[str, Any]) -> Answered:
        [wanted] = [each["id"] for each in body["items"]]
        if wanted not in self.calendars:
            return answer_json({"calendars": {wanted: {"errors": [{"domain": "global", "reason": "notFound"}]}}})
        start, end = datetime.fromisoformat(body["timeMin"]), datetime.fromisoformat(body["timeMax"])
        spans = [
            {"start": event["start"]["dateTime"], "end": event["end"]["dateTime"]}
            for event in self.calendars[wanted].values()
            if _at(event["start"]) < end and _at(event["end"]) > start
        ]
        return answer_json({"kind": "calendar#freeBusy", "calendars": {wanted: {"busy": spans}}})


def _problem(event: dict[str, Any]) -> str | None:
    if "start" not in event or "end" not in event:
        return "Missing end time."
    try:
        return None if _at(event["start"]) < _at(event["end"]) else "The specified time range is empty."
    except (KeyError, TypeError, ValueError):
        return "Missing time zone definition for start time."


def _at(moment: dict[str, str]) -> datetime:
    if "date" in moment:
        return datetime.fromisoformat(moment["date"] + "T00:00:00+00:00")
    found = datetime.fromisoformat(moment["dateTime"])
    if found.tzinfo is None:
        raise ValueError("no offset")
    return found
