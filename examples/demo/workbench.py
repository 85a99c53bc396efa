"""Steps of the workbench: edits that lose nothing, and a command in a sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from examples.demo.conversation import Conversation, converse
from examples.demo.stage import Stage, envelope_of
from trysquare.processes.sandbox.backends import available_sandbox

FILE = "prices.py"


def missing() -> str | None:
    """What to install so that the workbench can be shown, or None if it can."""
    sandbox = available_sandbox(("bubblewrap", "landlock"))
    return None if sandbox else "it needs a sandbox; run: apt-get install bubblewrap"


def write_workspace(project: Path) -> Path:
    """Make a workspace with one file; returns its folder."""
    folder = project / "workspace"
    (folder / "made").mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text("RATE = 1\n\n\ndef total(prices):\n    return sum(prices) * RATE\n", encoding="utf-8")
    return folder


@asynccontextmanager
async def workbench_server(stage: Stage) -> AsyncGenerator[Conversation]:
    """A server with a workbench of its own."""
    folder = await asyncio.to_thread(write_workspace, stage.project)
    async with converse(stage, "--workbench", str(folder)) as talk:
        yield talk


async def edit_and_undo(talk: Conversation) -> None:
    """An edit by line is refused before the file was read, made afterwards, and reverted."""
    edit: dict[str, object] = {
        "action": "edit_lines", "path": FILE, "start_line": 1, "end_line": 1, "new_content": "RATE = 2",
    }  # fmt: skip
    refused = envelope_of(await talk.call("code_edit", edit))
    talk.transcript.expect(refused.get("code") == "FILE_CONFLICT", "nobody edits lines that they have not seen")
    await talk.call("file", {"action": "read", "path": FILE})
    changed = envelope_of(await talk.call("code_edit", edit))
    talk.transcript.expect(changed["modified_files"] == [FILE], "the changed file is named")
    await talk.call("file", {"action": "undo", "path": FILE})
    found = envelope_of(await talk.call("search", {"action": "grep", "pattern": "^RATE = 1$"}))
    talk.transcript.expect(found["data"]["count"] == 1, "the file is as it was")


async def confine_a_command(talk: Conversation) -> None:
    """A command works in its folder, reaches nothing else, and is ended with all that it started."""
    worked = envelope_of(await talk.call("bash", {"command": "echo made >made/a.txt; cat made/a.txt"}))
    talk.transcript.expect(worked["modified_files"] == ["made/a.txt"], "the files that it made are named")
    escape = "touch /etc/escaped; echo x >.trysquare/state.db; (exec 3<>/dev/tcp/127.0.0.1/22) && echo connected"
    held = envelope_of(await talk.call("bash", {"command": escape}))
    talk.transcript.expect("connected" not in held["output"], "nothing outside is written, and no network is there")
    endless = envelope_of(await talk.call("bash", {"command": "yes & yes"}))
    talk.transcript.expect(len(endless["output"]) < 50_000, "output without end is cut, and its writer ended")
