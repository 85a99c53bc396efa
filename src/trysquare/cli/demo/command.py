"""`trysquare demo`: start the server and drive every room through a real MCP client, in both eras."""

from __future__ import annotations

import argparse
import asyncio
import logging
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path

from trysquare.cli.demo import debugger, local, workbench
from trysquare.cli.demo.bot import bot_server
from trysquare.cli.demo.conversation import Conversation
from trysquare.cli.demo.gateway import GatewayTalk, is_missing, write_servers
from trysquare.cli.demo.guide import GuideTalk, can_be_shown, write_content
from trysquare.cli.demo.stage import ERAS, MODERN, Person, Stage
from trysquare.cli.demo.steps import (
    AT_THE_WORKBENCH,
    BEHIND_THE_GATEWAY,
    IN_EACH_ERA,
    OF_THE_DEBUGGER,
    OF_THE_GUIDE,
    OVER_HTTP,
    WITH_A_BOT,
    WITH_A_LOCAL_MODEL,
)
from trysquare.cli.demo.transcript import Transcript
from trysquare.cli.output import styled
from trysquare.core.errors import ToolError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `demo`."""
    parser.add_argument("--debug-traceback", action="store_true", help="show the traceback of an unexpected error")


def run(arguments: argparse.Namespace) -> int:
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
        person = Person(transcript=stage.transcript)
        async with stage.stdio(era, person) as client:
            talk = Conversation(client=client, person=person, transcript=stage.transcript, era=era)
            for step in IN_EACH_ERA:
                stage.transcript.step(step.title, step.shows)
                await _guarded(stage, step.play(talk))
    await _play_guide(stage)
    await _play_gateway(stage)
    await _play_debugger(stage)
    await _play_workbench(stage)
    await _play_local(stage)
    stage.transcript.chapter("A server over streamable HTTP")
    async with stage.http_server() as server:
        for served in OVER_HTTP:
            stage.transcript.step(served.title, served.shows)
            await _guarded(stage, served.play(stage, server))
    stage.transcript.chapter("A workflow bot: two behaviors of story_bot")
    async with bot_server(stage) as (own, server):
        for worked in WITH_A_BOT:
            stage.transcript.step(worked.title, worked.shows)
            await _guarded(stage, worked.play(own, server))


async def _play_guide(stage: Stage) -> None:
    stage.transcript.chapter("The guide: a team's content for its agents")
    if not can_be_shown():
        stage.transcript.note("left out: it needs PyYAML; install it with: pip install 'trysquare[guide]'")
        return
    folder = write_content(stage.project)
    person = Person(transcript=stage.transcript)
    async with stage.stdio(MODERN, person, "--guide", str(folder)) as client:
        talk = Conversation(client=client, person=person, transcript=stage.transcript, era=MODERN)
        for step in OF_THE_GUIDE:
            stage.transcript.step(step.title, step.shows)
            await _guarded(stage, step.play(GuideTalk(talk=talk, stage=stage, folder=folder)))


async def _play_gateway(stage: Stage) -> None:
    stage.transcript.chapter("The gateway: real servers from npm behind one")
    if (missing := is_missing()) is not None:
        stage.transcript.note(f"left out: {missing}")
        return
    file = await asyncio.to_thread(write_servers, stage.project)
    person = Person(transcript=stage.transcript)
    async with stage.stdio(MODERN, person, "--gateway", str(file)) as client:
        talk = Conversation(client=client, person=person, transcript=stage.transcript, era=MODERN)
        for step in BEHIND_THE_GATEWAY:
            stage.transcript.step(step.title, step.shows)
            await _guarded(stage, step.play(GatewayTalk(talk=talk, stage=stage)))


async def _play_debugger(stage: Stage) -> None:
    stage.transcript.chapter("The debugger: why a test fails, and step by step")
    if not debugger.can_be_shown():
        stage.transcript.note("left out: it needs debugpy; install it with: pip install 'trysquare[debug]'")
        return
    await asyncio.to_thread(debugger.write_program, stage.project)
    person = Person(transcript=stage.transcript)
    async with stage.stdio(MODERN, person, "--debug") as client:
        talk = Conversation(client=client, person=person, transcript=stage.transcript, era=MODERN)
        for step in OF_THE_DEBUGGER:
            stage.transcript.step(step.title, step.shows)
            await _guarded(stage, step.play(talk))


async def _play_workbench(stage: Stage) -> None:
    stage.transcript.chapter("The workbench: code in one folder, and commands that are held")
    if not await asyncio.to_thread(workbench.can_be_shown):
        stage.transcript.note("left out: it needs a sandbox; install the Debian package bubblewrap")
        return
    folder = await asyncio.to_thread(workbench.write_workspace, stage.project)
    person = Person(transcript=stage.transcript)
    async with stage.stdio(MODERN, person, "--workbench", str(folder)) as client:
        talk = Conversation(client=client, person=person, transcript=stage.transcript, era=MODERN)
        for step in AT_THE_WORKBENCH:
            stage.transcript.step(step.title, step.shows)
            await _guarded(stage, step.play(talk))


async def _play_local(stage: Stage) -> None:
    stage.transcript.chapter("A local model: calls that cannot be malformed")
    if (missing := local.is_missing()) is not None:
        stage.transcript.note(f"left out: {missing}")
        return
    for step in WITH_A_LOCAL_MODEL:
        stage.transcript.step(step.title, step.shows)
        await _guarded(stage, step.play(stage))


async def _guarded(stage: Stage, playing: Awaitable[None]) -> None:
    """Play one step; what breaks it is a failure of that step, and the next one is played."""
    from mcp import MCPError

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
