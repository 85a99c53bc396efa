"""The part Servers: those behind the gateway, how they do, and what a person can do about it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse, Response

from trysquare.core.errors import InvalidArguments, NotFound, ToolError
from trysquare.core.threads import run_in_thread
from trysquare.store.call_ledger import CallTiming

if TYPE_CHECKING:
    from trysquare.console.app import Visit
    from trysquare.gateway import GatewayService, ServerEntry
    from trysquare.gateway.models import ServerStatus

HOUR = 3600.0
_SLOTS = 30
_HEIGHT = 24.0
_MOST_CALLS = 5_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One bar of a sparkline."""

    x: float
    width: float
    height: float
    bad: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerRow:
    """One server of the list."""

    entry: ServerEntry
    status: ServerStatus | None
    problem: str
    name: str
    tools: int | None
    held: int
    calls: int
    errors: int
    median: float | None
    points: tuple[Point, ...]
    stderr: str

    @property
    def state(self) -> str:
        """The state in a word."""
        if self.problem:
            return "broken"
        if self.status is None:
            return "unknown"
        if self.status.failures:
            return "failing"
        return "ended" if self.status.lost and self.status.state == "asleep" else self.status.state


async def show(visit: Visit) -> Response:
    """The servers, or what to do to have some."""
    gateway = visit.console.workspace.gateway
    rows = [] if gateway is None else await _rows(visit, gateway)
    return visit.page("_server_rows.html" if visit.is_part else "servers.html", part="servers", rows=rows)


async def act(visit: Visit) -> Response:
    """Stop, restart or test one server."""
    from trysquare.gateway import ServerConfig

    gateway, name = visit.console.workspace.gateway, visit.request.path_params["name"]
    entry = None if gateway is None else gateway.entries.get(name)
    if gateway is None or not isinstance(entry, ServerConfig):
        raise NotFound("There is no such server.", instruction="Choose one of the list.")
    wanted, said = visit.field("do"), ""
    if wanted not in ("stop", "restart", "test"):
        raise InvalidArguments("A server can be stopped, restarted and tested.", instruction="Choose one of these.")
    try:
        if wanted in ("stop", "restart"):
            await gateway.pool.stop(name)
            said = f"{name} is stopped; the next call starts it."
        if wanted in ("restart", "test"):
            began = time.monotonic()
            await gateway.refresh(entry)
            info = await gateway.pool.server_info(name)
            tools = len(gateway.names(entry) or ())
            said = (
                f"{name} works: {info.name} {info.server_version}, {tools} tools in {time.monotonic() - began:.2f} s."
            )
    except ToolError as error:
        said = error.message
    if not visit.is_part:
        return RedirectResponse("/servers", 303)
    return visit.page("_server_rows.html", part="servers", rows=await _rows(visit, gateway), said=said)


async def _rows(visit: Visit, gateway: GatewayService) -> list[ServerRow]:
    now, status = time.time(), gateway.pool.status()
    ledger = visit.console.workspace.ledger
    calls = await run_in_thread(lambda: ledger.timings(since=now - HOUR, limit=_MOST_CALLS))
    by_server: dict[str, list[CallTiming]] = {}
    for call in calls:
        by_server.setdefault(call.server, []).append(call)
    return await run_in_thread(
        lambda: [
            _row(gateway, entry, status.get(name), by_server.get(name, []), now)
            for name, entry in gateway.entries.items()
        ]
    )


def _row(
    gateway: GatewayService, entry: ServerEntry, status: ServerStatus | None, calls: Sequence[CallTiming], now: float
) -> ServerRow:
    from trysquare.gateway import ServerConfig

    is_usable = isinstance(entry, ServerConfig)
    names = gateway.names(entry) if is_usable else None
    took = sorted(call.ended - call.started for call in calls if call.ended is not None)
    return ServerRow(
        entry=entry,
        status=status,
        problem="" if is_usable else f"{entry.reason} ({entry.location})",
        name=entry.name,
        tools=None if names is None else len(names),
        held=len(gateway.registry.pending(entry.name)) if is_usable else 0,
        calls=len(calls),
        errors=sum(1 for call in calls if is_bad(call)),
        median=took[len(took) // 2] if took else None,
        points=sparkline(calls, now),
        stderr=gateway.pool.stderr_tail(entry.name) if status is not None else "",
    )


def is_bad(call: CallTiming) -> bool:
    """Whether a call failed, or nobody knows."""
    return bool(call.is_error) or call.state in ("not_sent", "sent_unknown")


def sparkline(calls: Sequence[CallTiming], now: float) -> tuple[Point, ...]:
    """The slowest call of each two minutes of the last hour, in the width of 120 and the height of 24."""
    slots: dict[int, list[CallTiming]] = {}
    for call in calls:
        slots.setdefault(_SLOTS - 1 - int((now - call.started) / HOUR * _SLOTS), []).append(call)
    slowest = {slot: max((call.ended or now) - call.started for call in found) for slot, found in slots.items()}
    most = max(slowest.values(), default=0.0) or 1.0
    width = 120 / _SLOTS
    return tuple(
        Point(
            x=round(slot * width + 0.5, 1), width=width - 1, height=round(3 + (_HEIGHT - 3) * slowest[slot] / most, 1),
            bad=any(is_bad(call) for call in found),
        )
        for slot, found in sorted(slots.items())
    )  # fmt: skip


VIEWS = (("GET", "/servers", show), ("POST", "/servers/{name:path}", act))
