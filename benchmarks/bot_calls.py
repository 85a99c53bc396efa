"""Calls of a workflow bot under load, over stdio, beside a plain tool of the same server process."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measures import Load, cpu_seconds, running
from benchmarks.peers.known import ROOT, Start
from benchmarks.stdio_client import StdioClient
from benchmarks.workload import HANDSHAKE, call, expected_text, request

BOT = ROOT / "examples" / "bots" / "story_bot"
BEHAVIORS = ("shape", "prioritization", "arrange", "discovery", "exploration", "scenarios", "tests", "code")
ACTIONS = (
    "initialize_project",
    "gather_context",
    "decide_planning_criteria",
    "build_knowledge",
    "render_output",
    "synchronize_output",
    "validate_rules",
)
_WARM = 7

Turn = Callable[["BotClient", int], None]


def write_state(project: Path, completed: int) -> None:
    """A state file with a long history; the bot takes it over at its first call. Every behavior was begun."""
    entries = [
        {"action_state": f"story_bot.{BEHAVIORS[number % 8]}.{ACTIONS[number // 8 % 7]}", "timestamp": time_of(number)}
        for number in range(completed)
    ]
    document = {
        "current_behavior": "story_bot.shape",
        "current_action": "story_bot.shape.gather_context",
        "timestamp": time_of(completed),
        "completed_actions": entries,
        "behaviors": {name: {"current_action": ACTIONS[1]} for name in BEHAVIORS},
    }
    project.mkdir(parents=True)
    (project / "workflow_state.json").write_text(json.dumps(document), encoding="utf-8")


def time_of(number: int) -> str:
    return f"2026-01-{1 + number // 1440 % 28:02d}T{number // 60 % 24:02d}:{number % 60:02d}:00+00:00"


class BotClient:
    """Calls one server and checks what it answers."""

    def __init__(self, client: StdioClient, name: str = BOT.name) -> None:
        self._client = client
        self._name = name
        self._number = 0
        client.answer(0)

    def plain(self) -> None:
        """Call the plain tool."""
        self._number += 1
        self._client.send(call(self._number, 1, HANDSHAKE))
        answer = self._client.answer(self._number)
        if answer["result"]["content"][0]["text"] != expected_text(self._number):
            raise RuntimeError(f"a wrong answer: {answer}")

    def bot(self, tool: str, action: str | None = None) -> None:
        """Call a tool of the bot; `action` is the one that the answer must be about."""
        self._number += 1
        params: dict[str, Any] = {"name": f"{self._name}_{tool}", "arguments": {}}
        self._client.send(request(self._number, "tools/call", params, HANDSHAKE))
        result = self._client.answer(self._number)["result"]
        told = result.get("structuredContent", {})
        if result.get("isError") or action not in (None, told.get("action")):
            raise RuntimeError(f"{tool} did not answer of {action}: {str(result)[:500]}")


def plain_turn(client: BotClient, turn: int) -> None:
    """A call of a plain tool."""
    client.plain()


def forward_turn(client: BotClient, turn: int) -> None:
    """A call of the bot tool, which hands out the current action and changes nothing."""
    client.bot("tool", "gather_context")


def behavior_turn(client: BotClient, turn: int) -> None:
    """A call of one of two behavior tools in turn: each writes `current_behavior`."""
    client.bot(f"{BEHAVIORS[turn % 2]}_tool", "gather_context")


def action_turn(client: BotClient, turn: int) -> None:
    """A call of one of two actions' tools in turn: each moves the pointer."""
    client.bot(f"discovery_{ACTIONS[1 + turn % 2]}", ACTIONS[1 + turn % 2])


def close_turn(client: BotClient, turn: int) -> None:
    """A close of the current action; after a behavior's six closes, a call that takes its first action up again."""
    if turn % 7 == 0:
        client.bot(f"discovery_{ACTIONS[1]}", ACTIONS[1])
    else:
        client.bot("close_current_action", ACTIONS[turn % 7])


def bot_load(project: Path, turn: Turn, seconds: float) -> Load:
    """What the server uses for one kind of call, one after the other, after some to warm up."""
    with running(start_bot(project), piped=True) as process:
        client = BotClient(StdioClient(process))
        for number in range(2):
            behavior_turn(client, number)
        for number in range(_WARM):
            turn(client, number)
        before, started, calls = cpu_seconds(process.pid), time.monotonic(), 0
        while calls < _WARM or time.monotonic() < started + seconds:
            turn(client, _WARM + calls)
            calls += 1
        return Load(calls=calls, seconds=time.monotonic() - started, cpu=cpu_seconds(process.pid) - before)


def start_bot(project: Path, bot: Path = BOT) -> Start:
    """The server of a bot and of plain tools in a project."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {
        **os.environ,
        "PYTHONPATH": paths,
        "BENCH_TOOLS": "1",
        "XDG_STATE_HOME": str(project.with_name("user-state")),
    }
    served = ["--bot", str(bot), "--tools", "benchmarks.peers.trysquare_tools:tools"]
    words = ["-m", "trysquare", "serve", *served, "--profile", "full", "--project", str(project)]
    return Start(command=[sys.executable, *words], environment=environment)
