"""The section `debug`: our debugger beside the npm package `@debugmcp/mcp-debugger`, both over stdio on one program."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measures import running
from benchmarks.peers.known import NODE_PROJECT, Start, node
from benchmarks.stdio_client import StdioClient
from benchmarks.tables import Table, Target
from benchmarks.workload import HANDSHAKE, request

OURS, THEIRS = "Trysquare", "@debugmcp/mcp-debugger"
PACKAGE = NODE_PROJECT / "node_modules" / "@debugmcp" / "mcp-debugger"
STEPS = 40
PROGRAM = """\
def work(rounds):
    total = 0
    names = ["ada", "grace"]
    for number in range(rounds):
        square = number * number
        total = total + square
    return total


print(work(10_000))
"""
FIRST_LINE = 5
TEST = """\
def price(items):
    total = 0
    for item in items:
        total = total + item["cost"]
    return total


def test_price():
    assert price([{"cost": 2}, {"cost": 3}]) == 6
"""


@dataclass(slots=True)
class DebugResults:
    """What each server took, every round of it, in milliseconds; and what its list and its explanation cost."""

    times: dict[tuple[str, str], list[float]] = field(default_factory=dict[tuple[str, str], list[float]])
    """By what was done and by whom."""
    listed: dict[str, int] = field(default_factory=dict[str, int])
    """Bytes of tools/list."""
    calls: dict[str, int] = field(default_factory=dict[str, int])
    """Calls until a failing test is explained."""

    def add(self, what: str, server: str, milliseconds: float) -> None:
        """Keep one time."""
        self.times.setdefault((what, server), []).append(milliseconds)

    def middle(self, what: str, server: str) -> float | None:
        """The median of what was found."""
        found = self.times.get((what, server))
        return median(found) if found else None


class Talk:
    """A conversation with a server: numbered calls, each with the time that its answer took."""

    def __init__(self, client: StdioClient) -> None:
        self._client = client
        self._number = 0

    def ask(self, method: str, params: dict[str, Any]) -> tuple[dict[str, Any], float]:
        """The result of a request, and the milliseconds it took."""
        self._number += 1
        began = time.perf_counter()
        self._client.send(request(self._number, method, params, HANDSHAKE))
        answer = self._client.answer(self._number)
        taken = (time.perf_counter() - began) * 1000
        if "result" not in answer or answer["result"].get("isError"):
            raise RuntimeError(f"{params.get('name', method)} failed: {str(answer)[:1000]}")
        return answer["result"], taken

    def call(self, tool: str, **arguments: Any) -> tuple[dict[str, Any], float]:
        """The result of a tool, and the milliseconds it took."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})


def measure_debug(results: DebugResults, *, quick: bool = False) -> None:
    """One round of everything, each server in turn."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "program.py").write_text(PROGRAM, encoding="utf-8")
        (project / "test_price.py").write_text(TEST, encoding="utf-8")
        for name, server in _servers().items():
            _measure(results, name, server, project, steps=5 if quick else STEPS)


Conversation = Callable[[DebugResults, Talk, Path, int], None]


def _servers() -> dict[str, tuple[list[str], Conversation]]:
    found = {OURS: ([sys.executable, "-m", "trysquare", "serve", "--debugger"], _our_conversation)}
    if PACKAGE.exists():
        found[THEIRS] = ([str(node()), str(PACKAGE / "dist" / "cli.mjs"), "stdio"], _their_conversation)
    else:
        print(f"{THEIRS} is left out: run `make node`", file=sys.stderr)
    return found


def _measure(
    results: DebugResults, name: str, server: tuple[list[str], Conversation], project: Path, *, steps: int
) -> None:
    command, converse = server
    environment = {**os.environ, "XDG_STATE_HOME": str(project / "state")}
    began = time.perf_counter()
    with running(Start(command=command, environment=environment), piped=True) as process:
        talk = Talk(StdioClient(process))
        listed, _ = talk.ask("tools/list", {})
        results.add("start", name, (time.perf_counter() - began) * 1000)
        results.listed[name] = len(json.dumps(listed["tools"], ensure_ascii=False, separators=(",", ":")).encode())
        converse(results, talk, project, steps)


def _our_conversation(results: DebugResults, talk: Talk, project: Path, steps: int) -> None:
    where = {"workspace_root": str(project)}
    stops = [{"file": "program.py", "line": FIRST_LINE}]
    for what in ("first launch", "launch"):
        _, taken = talk.call("debug_session_start", target="program.py", breakpoints=stops, **where)
        results.add(what, OURS, taken)
        if what == "first launch":
            talk.call("debug_session", action="stop")
    for _ in range(steps):
        results.add("step", OURS, talk.call("debug_step")[1])
    for _ in range(steps):
        _, taken = talk.call("debug_inspect", target="expression", expression="total + number")
        results.add("evaluate", OURS, taken)
    talk.call("debug_session", action="stop")
    _, taken = talk.call("debug_explain", target="test_price.py::test_price", **where)
    results.add("explain", OURS, taken)
    results.calls[OURS] = 1


def _their_conversation(results: DebugResults, talk: Talk, project: Path, steps: int) -> None:
    session = _their_launch(results, talk, project, "first launch")
    talk.call("close_debug_session", sessionId=session)
    session = _their_launch(results, talk, project, "launch")
    for _ in range(steps):
        results.add("step", THEIRS, talk.call("step_over", sessionId=session)[1])
    for _ in range(steps):
        found = talk.call("evaluate_expression", sessionId=session, expression="total + number")
        results.add("evaluate", THEIRS, found[1])
    talk.call("close_debug_session", sessionId=session)
    _explain_as_they_can(results, talk, project)


def _their_launch(results: DebugResults, talk: Talk, project: Path, what: str) -> str:
    program = str(project / "program.py")
    session, taken = _their_session(talk)
    taken += talk.call("set_breakpoint", sessionId=session, file=program, line=FIRST_LINE)[1]
    taken += talk.call("start_debugging", sessionId=session, scriptPath=program)[1]
    results.add(what, THEIRS, taken)
    return session


def _explain_as_they_can(results: DebugResults, talk: Talk, project: Path) -> None:
    """The five calls that it takes there to see where a test fails, with which values and what it wrote."""
    session, taken = _their_session(talk)
    runner = project / "run_test.py"
    runner.write_text(
        f"import sys\nsys.path.insert(0, {str(project)!r})\nfrom test_price import test_price\ntest_price()\n",
        encoding="utf-8",
    )
    taken += talk.call("start_debugging", sessionId=session, scriptPath=str(runner))[1]
    taken += talk.call("get_stack_trace", sessionId=session)[1]
    taken += talk.call("get_local_variables", sessionId=session)[1]
    taken += talk.call("get_output", sessionId=session)[1]
    results.add("explain", THEIRS, taken)
    results.calls[THEIRS] = 5
    talk.call("close_debug_session", sessionId=session)


def _their_session(talk: Talk) -> tuple[str, float]:
    made, taken = talk.call("create_debug_session", language="python", executablePath=sys.executable)
    return json.loads(made["content"][0]["text"])["sessionId"], taken


_TITLES = {
    "start": "server started, tools listed",
    "first launch": "program launched by the very first call, at its first stop",
    "launch": "program launched, at its first stop",
    "step": "one step, with what it answers",
    "evaluate": "one expression",
    "explain": "failing test explained",
}


def debug_tables(results: DebugResults) -> Iterator[Table]:
    """The figures of this section."""
    if not results.times:
        return
    rows: list[list[str]] = []
    for what, title in _TITLES.items():
        own, theirs = results.middle(what, OURS), results.middle(what, THEIRS)
        rows.append([title, _shown(own), _shown(theirs), f"{theirs / own:.1f}x" if own and theirs else "-"])
    rows.append(
        [
            "tools/list",
            *(f"{results.listed[name]} bytes" if name in results.listed else "-" for name in (OURS, THEIRS)),
            "-",
        ]
    )
    rows.append(
        ["calls to explain a failing test", *(str(results.calls.get(name, "-")) for name in (OURS, THEIRS)), "-"]
    )
    yield Table(title="The debugger over stdio, Python, medians", head=["what", OURS, THEIRS, "to ours"], rows=rows)


def _shown(milliseconds: float | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds:.1f} ms"


_LIMITS = {"start": 1.5, "first launch": 0.25, "launch": 0.25, "step": 0.05, "evaluate": 0.05}


def debug_targets(results: DebugResults) -> Iterator[Target]:
    """What we promise of this section."""
    for what, limit in _LIMITS.items():
        own, theirs = results.middle(what, OURS), results.middle(what, THEIRS)
        if own and theirs:
            yield Target(promise=f"debugger, {_TITLES[what]}: time to {THEIRS}'s", found=own / theirs, limit=limit)
    if OURS in results.listed:
        yield Target(promise="debugger, kilobytes of tools/list", found=results.listed[OURS] / 1024, limit=12)
    if OURS in results.calls:
        yield Target(promise="debugger, calls to explain a failing test", found=results.calls[OURS], limit=1)
