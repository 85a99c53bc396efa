"""One trial: a fault, on a lane, against a gateway, and what is checked of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio
from mcp import MCPError
from mcp_types import CallToolResult

from tests.gateway.torture.fronts import Front, Gateway, text_of
from tests.gateway.torture.journal import Journal, open_journal
from tests.gateway.torture.lanes import Lane
from tests.gateway.torture.servers import FAULTY, STEADY, faulty_entry, stdio_entry
from tests.support import size, told

PATIENCE: Final = 20.0
"""Seconds after which nobody is believed to answer any more."""
MUCH_PATIENCE: Final = 15 * PATIENCE
"""Seconds for a call that has much to carry; those beside it get no more than any other."""
LONGEST: Final = 18 * PATIENCE
"""Seconds for a whole trial."""
_ENDED = "comes to its end"
LIMIT: Final = 2.0
"""Seconds that a call, or a start, may take where a trial is about those who take too long."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """How much of something comes."""

    flood: int = size(4_000, 40_000)
    """Notifications."""
    large: int = size(5_000_000, 50_000_000)
    """Bytes of a result."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Heard:
    """What a caller heard of a call, if anything."""

    text: str = ""
    failed: bool = True
    outcome: str | None = None
    seconds: float = 0.0
    never: bool = False
    result: CallToolResult | None = None

    def __str__(self) -> str:
        if self.never:
            return "nothing heard"
        return f"{'failed: ' if self.failed else ''}{self.text[:160]}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One thing that must hold."""

    name: str
    holds: bool
    found: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A fault that servers have."""

    name: str
    title: str
    trial: Callable[[Arena], Awaitable[None]]
    fault: str = ""
    """What is wrong with the server from the start."""
    entry: dict[str, Any] = field(default_factory=dict[str, Any])
    """What the configuration says of the server beside how to reach it."""
    impossible: Callable[[Lane], str | None] = lambda lane: None
    """Why there is no such fault on a lane."""
    ends_gateway: bool = False
    """Whether the gateway is gone at the end, so that its client cannot say goodbye."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What came of a trial."""

    row: str
    lane: str
    gateway: str
    checks: tuple[Check, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether everything held."""
        return all(check.holds for check in self.checks)

    @property
    def failures(self) -> str:
        """What did not hold."""
        return "; ".join(f"{check.name} ({check.found})" for check in self.checks if not check.holds)


USUAL: Final = Sizes()
WHOLE: Final = Sizes(flood=40_000, large=50_000_000)


class Arena:
    """What a trial has at hand."""

    def __init__(
        self, gateway: Gateway, lane: Lane, front: Front, journal: Journal, folder: Path, sizes: Sizes
    ) -> None:
        self.gateway = gateway
        self.lane = lane
        self.front = front
        self.journal = journal
        self.folder = folder
        self.sizes = sizes
        self.checks: list[Check] = []

    def check(self, name: str, holds: object, found: object = "") -> None:
        """Put down whether something holds."""
        self.checks.append(Check(name=name, holds=bool(holds), found=str(found)))

    async def call(self, tool: str, text: str = "", *, server: str = FAULTY, patience: float = PATIENCE) -> Heard:
        """Call a tool and hear what comes of it."""
        began = time.monotonic()
        heard = Heard(never=True)
        with anyio.move_on_after(patience):
            try:
                heard = _heard(await self.front.call(server, tool, {"text": text}), time.monotonic() - began)
            except MCPError as error:
                heard = Heard(text=str(error), seconds=time.monotonic() - began)
        return heard

    @contextlib.asynccontextmanager
    async def under_way(self, tool: str, text: str = "", **options: Any) -> AsyncGenerator[asyncio.Task[Heard]]:
        """A call that its server has received and is not done with."""
        calling = asyncio.create_task(self.call(tool, text, **options))
        try:
            arrived = await self.journal.until(lambda: self.journal.calls(FAULTY, tool), PATIENCE)
            self.check("arrives", arrived, "the server never got the call")
            yield calling
        finally:
            calling.cancel()
            await asyncio.wait([calling])

    def check_failure(self, heard: Heard, outcome: str) -> None:
        """The caller hears at once that the call failed, and what is known of it."""
        self.check("told at once", heard.failed and not heard.never, heard)
        if self.gateway.tells_outcomes:
            self.check("outcome", heard.outcome == outcome, f"{heard.outcome}, not {outcome}: {heard}")

    async def check_next(self, name: str = "next call", *, times: int = 1, server: str = FAULTY) -> None:
        """The very next call works."""
        for number in range(times):
            words = f"{name} {number}"
            heard = await self.call("echo", words, server=server)
            self.check(name, not heard.failed and heard.text == words, heard)

    async def check_others(self) -> None:
        """Callers of another server notice nothing."""
        await self.check_next("others", server=STEADY)

    def check_sent(self, tool: str, times: int = 1) -> None:
        """A call was sent exactly so often."""
        found = len(self.journal.calls(FAULTY, tool))
        self.check("sent once" if times == 1 else f"sent {times} times", found == times, f"{found} times")


def _heard(result: CallToolResult, seconds: float) -> Heard:
    outcome = told(result).get("outcome") or (result.meta or {}).get("trysquare/origin", {}).get("outcome")
    return Heard(text=text_of(result), failed=result.is_error, outcome=outcome, seconds=seconds, result=result)


async def run_trial(row: Row, lane: Lane, gateway: Gateway, sizes: Sizes = USUAL) -> Verdict:
    """Start everything, let the fault happen, and look at what is left. No gateway can hold up a trial for ever."""
    began = time.monotonic()
    checks: list[Check] = []
    with tempfile.TemporaryDirectory(prefix="torture") as folder:
        async with open_journal() as journal:
            try:
                async with asyncio.timeout(LONGEST):
                    await _try(row, lane, gateway, journal, Path(folder), checks, sizes)
            except Exception as error:  # noqa: BLE001 - whatever a gateway does to its client, the trial has failed
                if not row.ends_gateway or all(check.name != _ENDED for check in checks):
                    checks.append(Check(name=_ENDED, holds=False, found=_first(error)))
            checks.append(await _no_orphan(lane, journal))
    seconds = time.monotonic() - began
    return Verdict(row=row.name, lane=str(lane), gateway=gateway.title, checks=tuple(checks), seconds=seconds)


async def _try(
    row: Row, lane: Lane, gateway: Gateway, journal: Journal, folder: Path, checks: list[Check], sizes: Sizes
) -> None:
    async with faulty_entry(journal, lane, row.fault) as faulty:
        servers = {FAULTY: {**faulty, **row.entry}, STEADY: stdio_entry(journal, STEADY)}
        async with gateway.open(servers, lane, folder) as front:
            arena = Arena(gateway, lane, front, journal, folder, sizes)
            try:
                if await _is_ready(arena):
                    await row.trial(arena)
                arena.check(_ENDED, holds=True)
            finally:
                checks += arena.checks


async def _is_ready(arena: Arena) -> bool:
    """A gateway may start its servers first; one that works is waited for. Without it there is nothing to try."""
    until = time.monotonic() + PATIENCE
    while True:
        heard = await arena.call("echo", "ready", server=STEADY, patience=max(0.1, until - time.monotonic()))
        if heard.text == "ready" or time.monotonic() > until:
            break
        await asyncio.sleep(0.1)
    arena.check("others at the start", heard.text == "ready", heard)
    return heard.text == "ready"


async def _no_orphan(lane: Lane, journal: Journal) -> Check:
    """Every process that the gateway started is gone; what is left after all is ended here."""
    started = {entry.pid for entry in journal.entries if entry.what == "start"}
    if lane.transport != "stdio":
        started = {entry.pid for entry in journal.happened(STEADY, "start")}
    left = [pid for pid in started if not await has_ended(pid)]
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return Check(name="no orphan", holds=not left, found=f"{len(left)} of {len(started)} still run")


async def has_ended(pid: int, seconds: float = PATIENCE) -> bool:
    """Wait for a process to be gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        with anyio.move_on_after(seconds):
            await anyio.wait_readable(handle)
            return True
        return False
    finally:
        os.close(handle)


def _first(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"[:300]
