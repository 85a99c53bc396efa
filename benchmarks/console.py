"""The section `console`: server CPU of every page on a large project, and of a page that is only open."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import httpx2

from benchmarks.bot_calls import BOT, BotClient, start_bot
from benchmarks.bot_growth import SMALL, write_history
from benchmarks.measures import cpu_seconds, running
from benchmarks.peers.known import ROOT, Start
from benchmarks.stdio_client import StdioClient
from benchmarks.tables import Table, Target
from trysquare.core.approvals import ConsentRequest
from trysquare.core.json import JsonObject
from trysquare.jobs import JobRun, jobs_file, open_engine
from trysquare.store import LazyDatabase, StoredApprovals, project_state
from trysquare.store.call_ledger import CallEnd, CallLedger, CallState, NewCall
from trysquare.store.location import prepare_folder

LIMIT = 100.0
"""Milliseconds of the server's CPU for one page."""
IDLE_LIMIT = 5.0
"""Milliseconds of CPU in a second for a page that is only open, beyond those of the server without one."""
FIRST_PAINT = 50.0
"""Kilobytes of a first paint: the page, with its scripts and styles."""
IDLE = "a second without a page"
OPEN = "a second with a page that is only open"
NEEDS = "Needs you"
PAGES: Mapping[str, str] = {
    NEEDS: "/",
    "Needs you, the list alone": "/",
    "Needs you, the number alone": "/needs/badge",
    "Tools": "/tools",
    "a tool": "/tools/story_bot_tool",
    "Servers": "/servers",
    "Calls": "/calls",
    "Calls, by a filter": "/calls?tool=tool-7&outcome=error",
    "a call": "/calls/{call}",
    "Bots": "/bots",
    "a run": "/bots/story_bot/main",
    "two versions of a run": "/bots/story_bot/main/difference?before={before}&after={after}",
    "Jobs": "/jobs",
    "a job": "/jobs/{job}",
    "Failures": "/failures",
}
_PARTS = {"Needs you, the list alone", "Needs you, the number alone"}
_SERVERS = 9
_VERSIONS = re.compile(r'name="(before|after)" value="(\d+)"')
_ASSET = re.compile(r'(?:src|href)="(/static/[^"]+)"')


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """How much a project has."""

    calls: int
    runs: int
    jobs: int
    approvals: int
    turns: int
    """How often each page is asked for."""


FULL = Size(calls=10_000, runs=1_000, jobs=1_000, approvals=500, turns=12)
QUICK = Size(calls=50, runs=2, jobs=2, approvals=3, turns=1)


@dataclass(slots=True)
class ConsoleResults:
    """Milliseconds of CPU by page, the best of all rounds, and kilobytes of a first paint."""

    size: Size = FULL
    cpu: dict[str, float] = field(default_factory=dict[str, float])
    paint: dict[str, float] = field(default_factory=dict[str, float])


def measure_console(results: ConsoleResults, folder: Path, seconds: float, *, quick: bool = False) -> None:
    """One round: a project of this size, and each of its pages."""
    results.size = QUICK if quick else FULL
    home = folder / f"console-{'quick' if quick else 'full'}"
    project, marker = home / "project", home / "known"
    if not marker.exists():
        call = _fill(project, home / "state", results.size)
        marker.write_text(call, encoding="utf-8")
    known: dict[str, str] = {"call": marker.read_text(encoding="utf-8"), "job": "job-0000"}
    with running(_start(project, home / "state"), piped=False) as process:
        assert process.stderr is not None
        link = _link(process.stderr)
        with httpx2.Client(base_url=f"http://{urlsplit(link).netloc}", follow_redirects=True, timeout=60) as browser:
            _require_page(browser.get(link))
            board = browser.get("/bots/story_bot/main").text
            known |= dict(_VERSIONS.findall(board))
            for title, path in PAGES.items():
                address, headers = path.format(**known), {"hx-request": "true"} if title in _PARTS else {}
                found = _page_cost(browser, process.pid, address, headers, results.size.turns)
                results.cpu[title] = min(results.cpu.get(title, found), found)
                if title not in _PARTS:
                    results.paint[title] = _first_paint(browser, address)
            still = 0.5 if quick else 4 * seconds
            for title, cost in ((IDLE, _cpu_of(process.pid, still)), (OPEN, _open_cost(browser, process.pid, still))):
                results.cpu[title] = min(results.cpu.get(title, cost), cost)


def _start(project: Path, state: Path) -> Start:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "BENCH_TOOLS": "75",
        "XDG_STATE_HOME": str(state),
    }
    entries = {f"server-{number}": {"command": sys.executable, "args": ["-c", ""]} for number in range(_SERVERS)}
    gateway = project / "mcp.json"
    gateway.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    served = ["--bot", str(BOT), "--tools", "benchmarks.peers.trysquare_tools:tools", "--project", str(project)]
    served += ["--gateway", str(gateway)]
    words = ["-m", "trysquare", "console", "--no-open", "--port", "0", *served]
    return Start(command=[sys.executable, *words], environment=environment)


def _link(stderr: IO[bytes]) -> str:
    """The link that the terminal shows. What comes after it is read too, so that the server never waits for it."""
    lines: list[bytes] = []
    for line in stderr:
        lines.append(line)
        if found := re.search(rb"Console: (http\S+)", line):
            threading.Thread(target=stderr.read, daemon=True).start()
            return found[1].decode()
    raise RuntimeError(f"the console did not start: {b''.join(lines).decode(errors='replace')[-2000:]}")


def _require_page(response: httpx2.Response) -> httpx2.Response:
    if response.status_code != 200:
        raise RuntimeError(f"{response.url.path} was answered with {response.status_code}: {response.text[:500]}")
    return response


def _page_cost(browser: httpx2.Client, process: int, address: str, headers: Mapping[str, str], turns: int) -> float:
    """The CPU of one answer. The first one is not counted: it imports the part, and opens its stores."""
    _require_page(browser.get(address, headers=headers))
    before = cpu_seconds(process)
    for _ in range(turns):
        _require_page(browser.get(address, headers=headers))
    return (cpu_seconds(process) - before) / turns * 1000


def _first_paint(browser: httpx2.Client, address: str) -> float:
    """What goes over the wire for a page that was never seen: itself and what it names, compressed as it is sent."""
    page = _require_page(browser.get(address))
    answers = [page, *(_require_page(browser.get(each)) for each in dict.fromkeys(_ASSET.findall(page.text)))]
    return sum(each.num_bytes_downloaded for each in answers) / 1000


def _open_cost(browser: httpx2.Client, process: int, seconds: float) -> float:
    """The CPU of a second in which a page is open and nothing happens."""
    with browser.stream("GET", "/live") as stream:
        reading = stream.iter_lines()
        while not next(reading).startswith("event: jobs"):
            pass
        return _cpu_of(process, seconds)


def _cpu_of(process: int, seconds: float) -> float:
    """Milliseconds of CPU that the process takes in a second by itself."""
    before, began = cpu_seconds(process), time.monotonic()
    time.sleep(seconds)
    return (cpu_seconds(process) - before) / (time.monotonic() - began) * 1000


def _fill(project: Path, state: Path, size: Size) -> str:
    """Write what the project has; returns the id of one of its calls."""
    write_history(project, SMALL, max(size.runs * 100, 200))
    prepare_folder(project / ".trysquare")
    prepare_folder(state / "trysquare")
    with running(start_bot(project), piped=True) as process:
        # The server takes the history over, and the run has a version of its own.
        BotClient(StdioClient(process)).bot("close_current_action")
    with closing(LazyDatabase(project_state(project))) as database:
        approvals = StoredApprovals(database, lifetime=86_400)
        for number in range(size.approvals):
            approvals.decide(_request(number))
    asyncio.run(_fill_jobs(project, size.jobs))
    return _fill_ledger(state / "trysquare" / "ledger.db", size.calls)


def _request(number: int) -> ConsentRequest:
    # One caller may have twenty calls that wait.
    return ConsentRequest(
        tool="refund",
        principal=f"agent-{number // 20}",
        digest=f"{number:064x}",
        question=f"Refund {number / 4} EUR for order {number}?",
        arguments={"order": number, "amount": number / 4, "note": "damaged on arrival, " * 8},
        client="claude-code",
    )


def _fill_ledger(file: Path, calls: int) -> str:
    states: tuple[CallState, ...] = ("done", "done", "done", "sent_unknown", "not_sent")
    call = ""
    with closing(CallLedger(file)) as ledger:
        for number in range(calls):
            tool, arguments = f"tool-{number % 40}", f'{{"order": {number}, "note": "damaged on arrival"}}'
            new = NewCall(f"agent-{number % 7}", f"server-{number % _SERVERS}", tool, arguments, f"{number:064x}")
            call = ledger.begin(new)
            is_error = number % 11 == 0
            ledger.end(call, CallEnd(time.time() + number % 3, states[number % len(states)], is_error, "0" * 64, 900))
    return call


async def _fill_jobs(project: Path, jobs: int) -> None:
    async def look(argument: JsonObject, run: JobRun) -> JsonObject:
        async def answer() -> JsonObject:
            return {"value": {"text": "I look for the orders.", "usage": {"input_tokens": 1840, "output_tokens": 96}}}

        await run.step("model 1", answer)
        return {"summary": "Nothing was found."}

    async with open_engine(jobs_file(project / ".trysquare"), {"look": look}) as engine:
        names = [f"job-{number:04}" for number in range(jobs)]
        for first in range(0, jobs, 50):
            some = names[first : first + 50]
            await asyncio.gather(*(engine.start("look", {}, title="Find paid orders", job=job) for job in some))
            await asyncio.gather(*(engine.wait(job) for job in some))


def console_tables(results: ConsoleResults) -> Iterator[Table]:
    """The figures of this section."""
    size = results.size
    shown = f"{size.calls:,} calls, {size.runs:,} runs, {size.jobs:,} jobs, {size.approvals} approvals that wait"
    rows = [
        [title, f"{cpu:.1f} ms", f"{results.paint[title]:.1f} kB" if title in results.paint else "-"]
        for title, cpu in results.cpu.items()
    ]
    yield Table(title=f"Console: {shown}", head=["page", "CPU of the server", "first paint"], rows=rows)


def console_targets(results: ConsoleResults) -> Iterator[Target]:
    """What we promise of this section."""
    for title in PAGES:
        if title in results.cpu:
            yield Target(promise=f"ms of CPU, {title}", found=results.cpu[title], limit=LIMIT)
    if OPEN in results.cpu:
        beyond = results.cpu[OPEN] - results.cpu[IDLE]
        yield Target(promise="ms of CPU in a second, a page that is only open", found=beyond, limit=IDLE_LIMIT)
    if results.paint:
        largest = max(results.paint, key=lambda title: results.paint[title])
        found = results.paint[largest]
        yield Target(promise=f"kB of a first paint, the largest ({largest})", found=found, limit=FIRST_PAINT)
