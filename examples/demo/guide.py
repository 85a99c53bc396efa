"""Steps of the guide: content by expression, a flag that changes the answer, and an export that has drifted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from examples.demo.conversation import Conversation, converse
from examples.demo.stage import Stage, envelope_of

CONTENT = {
    "lang/python.md": "---\ntitle: Python\ntags: [backend]\n---\nUse four spaces and type hints.\n",
    "lang/rust.md": "---\ntitle: Rust\ntags: [backend]\n---\nRun cargo fmt before each commit.\n",
    "rules/tests.md": "---\ntype: agent/requirements\npriority: 5\n---\nEvery change has a test that can fail.\n",
    "rules/tickets.md": "---\nrequires-workflow: true\n---\nOpen a ticket before you change anything.\n",
}


@dataclass(frozen=True, kw_only=True)
class GuideTalk:
    """A conversation with a server that serves a team's content."""

    talk: Conversation
    stage: Stage
    folder: Path


@asynccontextmanager
async def guide_server(stage: Stage) -> AsyncGenerator[GuideTalk]:
    """A server with a small content."""
    folder = await asyncio.to_thread(write_content, stage.project)
    async with converse(stage, "--guide", str(folder)) as talk:
        yield GuideTalk(talk=talk, stage=stage, folder=folder)


def missing() -> str | None:
    """What to install so that the guide can be shown, or None if it can."""
    return None if find_spec("yaml") else "it needs PyYAML; install it with: pip install 'trysquare[guide]'"


def write_content(project: Path) -> Path:
    """Write a small content for the demo; returns its folder."""
    folder = project / "docs" / "guide"
    for path, text in CONTENT.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


async def explain_expression(guide: GuideTalk) -> None:
    """An expression names what is wanted; explain tells which documents it means, why, and what they cost."""
    expression = "#backend & lang/py*, rules"
    asked = {"expression": expression, "explain": True}
    guide.talk.transcript.sent("tools/call", "guide_get_content", asked)
    explained = envelope_of(await guide.talk.client.call_tool("guide_get_content", asked))
    for each in explained["value"]["documents"]:
        guide.talk.transcript.received(f"{each['id']:<14}{each['tokens']:>5} tokens, because of {each['because']}")
    documents = {each["id"]: each["because"] for each in explained["value"]["documents"]}
    wanted = {"lang/python": "#backend & lang/py*", "rules/tests": "rules"}
    guide.talk.transcript.expect(documents == wanted, "each document with the part of the expression that chose it")
    fetched = envelope_of(await guide.talk.call("guide_get_content", {"expression": expression}))
    guide.talk.transcript.expect("four spaces" in fetched["value"], f"the text, for project {fetched['project']}")
    again = envelope_of(
        await guide.talk.call("guide_get_content", {"expression": expression, "holding": fetched["holding"]})
    )
    guide.talk.transcript.expect("four spaces" not in str(again), "what the caller holds is not sent again")


async def switch_flag(guide: GuideTalk) -> None:
    """A flag of the project changes what the same expression answers."""
    before = envelope_of(await guide.talk.call("guide_get_content", {"expression": "rules"}))
    guide.talk.transcript.expect("ticket" not in before["value"], "one document hidden, and which flag hides it")
    await guide.talk.call("guide_set_project_flag", {"name": "workflow", "value": True})
    after = envelope_of(await guide.talk.call("guide_get_content", {"expression": "rules"}))
    guide.talk.transcript.expect("Open a ticket" in after["value"], "the document, now that the flag is set")


async def let_export_drift(guide: GuideTalk) -> None:
    """Content written into AGENTS.md, changed afterwards, and found to have drifted."""
    expect = guide.talk.transcript.expect
    expect(await _export(guide, "lang") == 0, "AGENTS.md is made")
    expect(await _export(guide, "--check") == 0, "no drift at first")
    rust = guide.folder / "lang" / "rust.md"
    await asyncio.to_thread(rust.write_text, "Run cargo clippy before each commit.\n", encoding="utf-8")
    guide.talk.transcript.note("lang/rust.md is edited")
    expect(await _export(guide, "--check") == 1, "exit code 1, the file, and why it has drifted")
    expect(await _export(guide) == 0, "brought up to date")


async def _export(guide: GuideTalk, *words: str) -> int:
    guide.talk.transcript.human(f"runs: trysquare guide export {' '.join(words)}".rstrip())
    command = guide.stage.command("guide", "export", *words, "--guide", str(guide.folder))
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        env=guide.stage.environment(), cwd=guide.stage.project,
    )  # fmt: skip
    output, _ = await process.communicate()
    for line in output.decode().splitlines():
        guide.talk.transcript.human(f"sees: {line}")
    return process.returncode or 0
