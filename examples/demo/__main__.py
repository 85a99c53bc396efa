"""Start servers and drive every toolset through a real MCP client, in both protocol versions. `make demo` runs this."""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from mcp import MCPError

from examples.demo import debugger, gateway, guide, local, steps, workbench
from examples.demo.bot import bot_server
from examples.demo.conversation import Conversation
from examples.demo.gateway import GatewayTalk
from examples.demo.guide import GuideTalk
from examples.demo.stage import ERAS, MODERN, Human, Stage
from examples.demo.steps import P, Step
from examples.demo.transcript import Transcript
from trysquare.cli.terminal import safe_streams, styled
from trysquare.core.errors import ToolError


def main() -> int:
    """Play every step; 1 if any of them did not show what it should."""
    # The client's library warns when it calls a tool that is not listed; here that is the point.
    logging.getLogger("client").setLevel(logging.ERROR)
    logging.getLogger("mcp").setLevel(logging.ERROR)
    transcript = Transcript()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="trysquare-demo-") as folder:
        stage = Stage(transcript=transcript, project=Path(folder))
        asyncio.run(_play(stage))
        log = stage.log.read_text(encoding="utf-8")
    return _conclude(transcript, time.monotonic() - started, log)


async def _play(stage: Stage) -> None:
    for era in ERAS:
        stage.transcript.chapter(f"A conversation over stdio, protocol {era}")
        async with _conversation(stage, era) as talk:
            await _play_steps(stage, steps.IN_EACH_ERA, talk)
    await _play_guide(stage)
    await _play_gateway(stage)
    await _play_debugger(stage)
    await _play_workbench(stage)
    if _chapter(stage, "A local model: calls that cannot be malformed", local.missing()):
        await _play_steps(stage, steps.WITH_A_LOCAL_MODEL, stage)
    stage.transcript.chapter("A server over streamable HTTP")
    async with stage.http_server() as server:
        await _play_steps(stage, steps.OVER_HTTP, stage, server)
    stage.transcript.chapter("A workflow bot: two behaviors of story_bot")
    async with bot_server(stage) as (own, server):
        await _play_steps(stage, steps.WITH_A_BOT, own, server)


async def _play_guide(stage: Stage) -> None:
    if _chapter(stage, "The guide: a team's content for its agents", guide.missing()):
        folder = guide.write_content(stage.project)
        async with _conversation(stage, MODERN, "--guide", str(folder)) as talk:
            await _play_steps(stage, steps.OF_THE_GUIDE, GuideTalk(talk=talk, stage=stage, folder=folder))


async def _play_gateway(stage: Stage) -> None:
    if _chapter(stage, "The gateway: real servers from npm behind one", gateway.missing()):
        file = await asyncio.to_thread(gateway.write_servers, stage.project)
        async with _conversation(stage, MODERN, "--gateway", str(file)) as talk:
            await _play_steps(stage, steps.BEHIND_THE_GATEWAY, GatewayTalk(talk=talk, stage=stage))


async def _play_debugger(stage: Stage) -> None:
    if _chapter(stage, "The debugger: why a test fails, and step by step", debugger.missing()):
        await asyncio.to_thread(debugger.write_program, stage.project)
        async with _conversation(stage, MODERN, "--debugger") as talk:
            await _play_steps(stage, steps.OF_THE_DEBUGGER, talk)


async def _play_workbench(stage: Stage) -> None:
    missing = await asyncio.to_thread(workbench.missing)
    if _chapter(stage, "The workbench: code in one folder, and commands in a sandbox", missing):
        folder = await asyncio.to_thread(workbench.write_workspace, stage.project)
        async with _conversation(stage, MODERN, "--workbench", str(folder)) as talk:
            await _play_steps(stage, steps.AT_THE_WORKBENCH, talk)


def _chapter(stage: Stage, title: str, missing: str | None) -> bool:
    """Print a heading; whether what the chapter needs is installed."""
    stage.transcript.chapter(title)
    if missing is not None:
        stage.transcript.note(f"left out: {missing}")
    return missing is None


@asynccontextmanager
async def _conversation(stage: Stage, era: str, *options: str) -> AsyncGenerator[Conversation]:
    human = Human(transcript=stage.transcript)
    async with stage.stdio(era, human, *options) as client:
        yield Conversation(client=client, human=human, transcript=stage.transcript, era=era)


async def _play_steps(stage: Stage, chosen: Sequence[Step[P]], *about: P.args, **named: P.kwargs) -> None:
    for step in chosen:
        stage.transcript.step(step.title, step.shows)
        await _guarded(stage, step.play(*about, **named))


async def _guarded(stage: Stage, playing: Awaitable[None]) -> None:
    """Play one step; what breaks it is a failure of that step, and the next one is played."""
    try:
        await playing
    except (MCPError, ToolError, KeyError, OSError, TimeoutError, RuntimeError, ExceptionGroup) as error:
        stage.transcript.broke(error)


def _conclude(transcript: Transcript, seconds: float, log: str) -> int:
    print()
    if not transcript.failures:
        print(styled(f"All {transcript.steps} steps showed what they should, in {seconds:.1f} s.", "green"))
        return 0
    print(styled(f"{len(transcript.failures)} of {transcript.steps} steps did not show what they should:", "red"))
    for failure in transcript.failures:
        print(f"  {failure}")
    print("The server's log ends with:")
    for line in log.splitlines()[-15:]:
        print(f"  {line}")
    return 1


if __name__ == "__main__":
    with safe_streams():
        sys.exit(main())
