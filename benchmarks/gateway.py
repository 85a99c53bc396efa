"""The sections `gateway`, `gateway-start` and `gateway-large`: real servers behind us and behind the peers."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks.gateway_client import Caller
from benchmarks.gateway_peers import (
    FASTMCP,
    HUB,
    KINDS,
    OURS,
    SERVERS,
    TRYSQUARE,
    Running,
    known_kinds,
    plain_server,
    real_servers,
    running,
    text_within,
)
from benchmarks.measures import Load, cpu_seconds
from benchmarks.peers.known import BASELINE
from benchmarks.tables import Table, Target
from benchmarks.workload import HANDSHAKE, line, opening, request
from tests.gateway.torture.chaos import large_text
from tests.gateway.torture.fronts import end, write_config
from tests.gateway.torture.journal import Journal, open_journal
from tests.gateway.torture.servers import stdio_entry

PLAIN = "plain"
CALLERS = (1, 16, 64)
LARGE = 50_000_000
TEN = 10
_LONGEST_REST, _LOOK, _IDLE = 60.0, 0.5, 0.1
"""Seconds that a load waits for others at most, between two looks, and the share of a core that is as good as none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A call of a real server."""

    server: str
    tool: str
    inputs: dict[str, Any] = field(default_factory=dict[str, Any], hash=False)
    expected: bytes = b""


@dataclass(slots=True)
class GatewayResults:
    """The best of all rounds, each figure by itself; of the others' waits the worst."""

    cpu: dict[tuple[str, str, int], float] = field(default_factory=dict[tuple[str, str, int], float])
    """Microseconds of CPU a call, by gateway, server and callers."""
    rate: dict[tuple[str, str, int], float] = field(default_factory=dict[tuple[str, str, int], float])
    first: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds to the first good call with ten cold servers: ours over pipes, as clients start it."""
    later: dict[str, float] = field(default_factory=dict[str, float])
    """The same in the next session, which starts the server of the last session's first call at once."""
    first_over_http: dict[str, float] = field(default_factory=dict[str, float])
    memory: dict[str, float] = field(default_factory=dict[str, float])
    large: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds for 50 MB."""
    waits: dict[str, float] = field(default_factory=dict[str, float])
    """The p99 of others' calls meanwhile."""
    back: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds to the next good call after kill -9 of the server."""
    own_start: float = 0.0
    """Seconds that the killed server itself takes to start."""
    notes: list[str] = field(default_factory=list[str])

    def add_load(self, name: str, server: str, callers: int, load: Load) -> None:
        """Keep the better of what is known and what was found."""
        key = (name, server, callers)
        self.cpu[key] = min(self.cpu.get(key, load.cpu_per_call), load.cpu_per_call)
        self.rate[key] = max(self.rate.get(key, 0.0), load.rate)


def measure_calls(results: GatewayResults, seconds: float, *, quick: bool = False) -> None:
    """One round of the section `gateway`."""

    async def measure(names: Sequence[str], folder: Path) -> None:
        await _measure_plain(results, folder, seconds, quick=quick)
        await _measure_calls(results, names, folder, seconds, quick=quick)

    _with_folder(measure)


def measure_starts(results: GatewayResults) -> None:
    """One round of the section `gateway-start`."""

    async def measure(names: Sequence[str], folder: Path) -> None:
        own = await _own_start(folder)
        results.own_start = min(results.own_start or own, own)
        for name in names:
            _keep_least(results.back, name, await _after_kill(results, name, folder))
            await _measure_ten(results, name, folder)

    _with_folder(measure)


def measure_large(results: GatewayResults, *, quick: bool = False) -> None:
    """One round of the section `gateway-large`; nothing in a quick run."""

    async def measure(names: Sequence[str], folder: Path) -> None:
        for name in () if quick else names:
            # Once is enough of what takes some of them a minute.
            if name not in results.large or name in OURS:
                await _measure_large(results, name, folder)

    _with_folder(measure)


def _with_folder(measure: Callable[[Sequence[str], Path], Coroutine[Any, Any, None]]) -> None:
    with tempfile.TemporaryDirectory(prefix="gateways") as folder:
        (Path(folder) / "note.txt").write_text("a note\n", encoding="utf-8")
        asyncio.run(measure(known_kinds(), Path(folder)))


def questions(folder: Path) -> list[Question]:
    """One call of each real server."""
    return [
        Question(server="everything", tool="echo", inputs={"message": "hello " * 16}, expected=b"Echo: hello"),
        Question(server="memory", tool="read_graph", expected=b"entities"),
        Question(server="files", tool="read_text_file", inputs={"path": str(folder / "note.txt")}, expected=b"a note"),
    ]


async def _measure_plain(results: GatewayResults, folder: Path, seconds: float, *, quick: bool) -> None:
    asked = Question(server=PLAIN, tool="tool_0001", inputs={"text": "hello " * 16}, expected=b"hello")
    async with plain_server(folder) as server:
        for callers in CALLERS[: 1 if quick else None]:
            results.add_load(TRYSQUARE, PLAIN, callers, await _load(server, asked, callers, seconds))


async def _measure_calls(
    results: GatewayResults, names: Sequence[str], folder: Path, seconds: float, *, quick: bool
) -> None:
    """All gateways by turns, load by load: a shared machine is as fast for each of them as for the next."""
    async with AsyncExitStack() as stack:
        gateways = {
            name: await stack.enter_async_context(running(name, real_servers(folder), folder / name)) for name in names
        }
        for asked in questions(folder):
            for gateway in gateways.values():
                await gateway.until_answered(asked.server, asked.tool, asked.inputs, asked.expected)
            for callers, (name, gateway) in product(CALLERS[: 1 if quick else None], gateways.items()):
                await _at_rest(gateways.values())
                load = await _load(gateway, asked, callers, seconds)
                results.add_load(name, asked.server, callers, load)
                print(
                    f"  {name} {asked.server} {callers}: {load.cpu_per_call:.0f} us, {load.rate:.0f}/s", file=sys.stderr
                )


async def _at_rest(gateways: Collection[Running]) -> None:
    """Wait until no gateway works off what its last clients left: it would take a core from the next one.

    mcp-hub takes a whole one for ten seconds and more after 64 clients have hung up.
    """
    until = time.monotonic() + _LONGEST_REST
    is_busy = True
    while is_busy and time.monotonic() < until:
        before = sum(cpu_seconds(gateway.pid) for gateway in gateways)
        await asyncio.sleep(_LOOK)
        is_busy = sum(cpu_seconds(gateway.pid) for gateway in gateways) - before > _LOOK * _IDLE


async def _load(gateway: Running, asked: Question, callers: int, seconds: float) -> Load:
    """Keep that many callers busy for that long."""
    clients = [await gateway.opened(asked.server) for _ in range(callers)]
    await asyncio.gather(*(_call_until(gateway, client, asked, time.monotonic() + 0.3) for client in clients))
    before, began = cpu_seconds(gateway.pid), time.monotonic()
    counts = await asyncio.gather(*(_call_until(gateway, client, asked, began + seconds) for client in clients))
    took, cpu = time.monotonic() - began, cpu_seconds(gateway.pid) - before
    for client in clients:
        client.close()
    return Load(calls=sum(counts), seconds=took, cpu=cpu)


async def _call_until(gateway: Running, client: Caller, asked: Question, until: float) -> int:
    count = 0
    while not count or time.monotonic() < until:
        answer = await gateway.answer(client, asked.server, asked.tool, asked.inputs)
        if asked.expected not in answer:
            raise RuntimeError(f"{gateway.kind.title} answers wrongly: {answer[:500]!r}")
        count += 1
    return count


async def _measure_ten(results: GatewayResults, name: str, folder: Path) -> None:
    """From the start of a gateway over ten servers to the first good call; then its memory with all servers up."""
    async with open_journal() as journal:
        servers = {**real_servers(folder), **_small_servers(journal, TEN - 3)}
        async with running(name, servers, folder / f"{name}-ten") as gateway:
            asked, *others = questions(folder)
            await gateway.until_answered(asked.server, asked.tool, asked.inputs, asked.expected)
            _keep_least(results.first_over_http, name, time.monotonic() - gateway.started)
            for other in others:
                await gateway.until_answered(other.server, other.tool, other.inputs, other.expected)
            for small in _small_servers(journal, TEN - 3):
                await gateway.until_answered(small, "echo", {"text": "hello"}, b"hello")
            _keep_least(results.memory, name, gateway.memory())
        if name in OURS:
            for kept in (results.first, results.later):
                _keep_least(kept, name, await first_over_pipes(name, servers, folder, questions(folder)[0]))
        else:
            results.first[name] = results.later[name] = results.first_over_http[name]


async def first_over_pipes(gateway: str, servers: Mapping[str, dict[str, Any]], parent: Path, asked: Question) -> float:
    """Seconds from the start of our gateway, by a client over pipes, to the first good answer."""
    kind, folder = KINDS[gateway], parent / f"{gateway}-pipes"
    name, arguments = kind.name(asked.server, asked.tool, asked.inputs)
    calling = request(1, "tools/call", {"name": name, "arguments": arguments}, HANDSHAKE)
    words = ["-m", "trysquare", "serve", "--gateway", str(write_config(servers, folder)), "--project", str(folder)]
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, env=kind.environment(folder), cwd=folder,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    initialize, initialized = opening(HANDSHAKE)
    process.stdin.write(line(initialize))
    # A client sends nothing more before it has this answer.
    await process.stdout.readline()
    process.stdin.write(line(initialized) + line(calling))
    while asked.expected not in (answer := await process.stdout.readline()):
        if not answer or b'"id":1,' in answer:
            raise RuntimeError(f"we answer wrongly: {answer[:300]!r}")
    took = time.monotonic() - began
    await end(process)
    return took


def _small_servers(journal: Journal, count: int) -> dict[str, dict[str, Any]]:
    return {f"small{number}": stdio_entry(journal, f"small{number}") for number in range(count)}


async def _after_kill(results: GatewayResults, name: str, folder: Path) -> float:
    asked = questions(folder)[0]
    async with running(name, real_servers(folder), folder / f"{name}-kill") as gateway:
        await gateway.until_answered(asked.server, asked.tool, asked.inputs, asked.expected)
        os.kill(_server_process(gateway), signal.SIGKILL)
        try:
            async with asyncio.timeout(15):
                return await gateway.until_answered(asked.server, asked.tool, asked.inputs, asked.expected)
        except (TimeoutError, ConnectionError, EOFError):
            return float("inf")


def _server_process(gateway: Running) -> int:
    mark = str(SERVERS / "server-everything")
    children = psutil.Process(gateway.pid).children(recursive=True)
    return next(one.pid for one in children if any(mark in word for word in one.cmdline()))


async def _own_start(folder: Path) -> float:
    """How long the server takes from its start to its answer to the handshake, with nobody between."""
    entry = real_servers(folder)["everything"]
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        entry["command"], *entry["args"],
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line(opening(HANDSHAKE)[0]))
    await process.stdout.readline()
    took = time.monotonic() - began
    process.kill()
    await process.wait()
    return took


async def _measure_large(results: GatewayResults, name: str, folder: Path) -> None:
    async with open_journal() as journal:
        servers = {
            "big": {**stdio_entry(journal, "big"), "x-trysquare": {"result_bytes": 0}},
            "steady": stdio_entry(journal, "steady"),
        }
        async with running(name, servers, folder / f"{name}-large") as gateway:
            for server in servers:
                await gateway.until_answered(server, "echo", {"text": "hello"}, b"hello")
            await _pass_large(results, name, gateway)


async def _pass_large(results: GatewayResults, name: str, gateway: Running) -> None:
    caller, others = await gateway.opened("big"), [await gateway.opened(one) for one in ("big", "steady")]
    waits: list[float] = []
    began = time.monotonic()
    calling = asyncio.create_task(gateway.answer(caller, "big", "large", {"text": str(LARGE)}))
    watching = [
        asyncio.create_task(_watch(gateway, other, server, waits, calling))
        for other, server in zip(others, ("big", "steady"), strict=True)
    ]
    try:
        async with asyncio.timeout(180):
            answer = await calling
    except TimeoutError:
        results.notes.append(f"{KINDS[name].title} does not pass 50 MB within 180 s")
        return
    took = time.monotonic() - began
    await asyncio.wait(watching)
    if await asyncio.to_thread(text_within, answer) != large_text(LARGE):
        results.notes.append(f"{KINDS[name].title} does not pass 50 MB whole: {answer[:200]!r}")
        return
    _keep_least(results.large, name, took)
    results.waits[name] = max(results.waits.get(name, 0.0), sorted(waits)[int(len(waits) * 0.99)] if waits else 0.0)


async def _watch(
    gateway: Running, caller: Caller, server: str, waits: list[float], calling: asyncio.Task[bytes]
) -> None:
    while not calling.done():
        began = time.monotonic()
        await gateway.answer(caller, server, "echo", {"text": "hello"})
        waits.append(time.monotonic() - began)
        await asyncio.sleep(0.005)


def _keep_least(kept: dict[str, float], name: str, found: float) -> None:
    kept[name] = min(kept.get(name, found), found)


def call_tables(results: GatewayResults) -> Iterator[Table]:
    """The figures of the section `gateway`."""
    if results.cpu:
        yield _calls_table(results)


def _calls_table(results: GatewayResults) -> Table:
    columns = list(dict.fromkeys((server, callers) for _, server, callers in results.cpu if server != PLAIN))
    rows: list[list[str]] = []
    measured = {name for name, _, _ in results.cpu}
    for name, kind in KINDS.items():
        if name not in measured:
            continue
        found = [(results.cpu.get((name, *one)), results.rate.get((name, *one))) for one in columns]
        rows.append([kind.title, *(f"{cpu:.0f} us, {rate:.0f}/s" if cpu and rate else "-" for cpu, rate in found)])
    plain = {callers: cpu for (_, server, callers), cpu in results.cpu.items() if server == PLAIN}
    rows.append(["a plain tool of Trysquare", *(f"{plain[callers]:.0f} us" for _, callers in columns)])
    head = ["gateway", *(f"{server}, {callers} callers: CPU a call, calls a second" for server, callers in columns)]
    return Table(title="The gateway: real servers from npm, over HTTP, 2025-11-25", head=head, rows=rows)


def start_tables(results: GatewayResults) -> Iterator[Table]:
    """The figures of the section `gateway-start`."""
    columns = {
        "ten cold servers: first good call": (results.first, "{:.2f} s"),
        "the same in the next session": (results.later, "{:.2f} s"),
        "the first over HTTP": (results.first_over_http, "{:.2f} s"),
        "memory with ten servers": (results.memory, "{:.0f} MB"),
        "next good call after kill -9": (results.back, "{:.2f} s"),
    }
    if results.first:
        yield _table_of("The gateway: starts, memory and kills", columns)


def large_tables(results: GatewayResults) -> Iterator[Table]:
    """The figures of the section `gateway-large`."""
    columns = {"50 MB whole": (results.large, "{:.2f} s"), "others' p99 meanwhile": (results.waits, "{:.3f} s")}
    if results.large:
        yield _table_of("The gateway: a result of 50 MB", columns, results.notes)


def _table_of(title: str, columns: Mapping[str, tuple[Mapping[str, float], str]], notes: Sequence[str] = ()) -> Table:
    def shown(kept: Mapping[str, float], name: str, form: str) -> str:
        found = kept.get(name)
        return "-" if found is None else "never" if found == float("inf") else form.format(found)

    known = [name for name in KINDS if any(name in kept for kept, _ in columns.values())]
    rows = [[KINDS[name].title, *(shown(kept, name, form) for kept, form in columns.values())] for name in known]
    rows += [[note, *[""] * len(columns)] for note in dict.fromkeys(notes)]
    return Table(title=title, head=["gateway", *columns], rows=rows)


def start_targets(results: GatewayResults) -> Iterator[Target]:
    """What we promise of starts, memory and kills."""
    first = "first good call with ten cold servers"
    yield from _to_best_peer(results.first, f"{first}, to the best peer's", 0.44)
    for kept, which in ((results.first, ""), (results.later, " of the next session")):
        if BASELINE in kept:
            found = kept[TRYSQUARE] / kept[BASELINE]
            yield Target(promise=f"{first}{which}, to the baseline's", found=found, limit=1)
    yield from _to_best_peer(results.memory, "memory with ten servers, to the least of the peers'", 1.5)
    if TRYSQUARE in results.back:
        found = results.back[TRYSQUARE] - results.own_start
        yield Target(promise="s to the next call after kill -9, beyond the server's own start", found=found, limit=0.5)


def large_targets(results: GatewayResults) -> Iterator[Target]:
    """What we promise of a large result."""
    yield from _to_best_peer(results.large, "time for 50 MB, to the best peer's that passes it", 0.1)
    if TRYSQUARE in results.waits:
        yield Target(promise="s, others' p99 during 50 MB", found=results.waits[TRYSQUARE], limit=0.5)


def _to_best_peer(kept: Mapping[str, float], promise: str, limit: float) -> Iterator[Target]:
    theirs = [kept[name] for name in KINDS if name not in OURS and name in kept]
    if theirs and TRYSQUARE in kept:
        yield Target(promise=promise, found=kept[TRYSQUARE] / min(theirs), limit=limit)


def call_targets(results: GatewayResults) -> Iterator[Target]:
    """What we promise of calls."""
    most = max((callers for _, _, callers in results.cpu), default=1)
    for callers in sorted({callers for _, _, callers in results.cpu}):
        own, plain = _mean(results, TRYSQUARE, callers), results.cpu.get((TRYSQUARE, PLAIN, callers))
        if own and plain:
            promise = f"ms of CPU that the gateway adds to a plain call, {callers} callers"
            yield Target(promise=promise, found=(own - plain) / 1000, limit=0.3)
        for name, limit in ((HUB, 1.2), (FASTMCP, 0.2)):
            theirs = _mean(results, name, callers)
            if own and theirs:
                promise = f"CPU a call in all, {callers} callers, to {KINDS[name].title}'s"
                yield Target(promise=promise, found=own / theirs, limit=limit)
    own, theirs = _rate(results, TRYSQUARE, most), _rate(results, HUB, most)
    if own and theirs:
        promise = f"calls a second, {most} callers, to mcp-hub's (1.5 is the goal)"
        yield Target(promise=promise, found=own / theirs, limit=1.3, at_least=True)


def _mean(results: GatewayResults, name: str, callers: int) -> float | None:
    """CPU a call over all real servers."""
    found = [
        cpu for (one, server, count), cpu in results.cpu.items() if (one, count) == (name, callers) and server != PLAIN
    ]
    return sum(found) / len(found) if found else None


def _rate(results: GatewayResults, name: str, callers: int) -> float | None:
    found = [
        rate
        for (one, server, count), rate in results.rate.items()
        if (one, count) == (name, callers) and server != PLAIN
    ]
    return median(found) if found else None
