"""Steps that are played with a workflow bot: two behaviors, with approvals, a rejection, and a killed server."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp import Client

from examples.demo.stage import HttpServer, Human, Stage, envelope_of, text_of
from trysquare.bots.definition.scaffold import write_new_bot

BOT = "story_bot"
_EXAMPLE = Path(__file__).parents[1] / "bots" / BOT
"""The whole bot, where the sources are at hand; an installed package brings the small one of `bot new` along."""
_MOST_ACTIONS = 20
_GRAPH = {
    "schema": 1,
    "product": "Supper club",
    "goal": "Guests find a free table by themselves",
    "epics": [
        {
            "name": "Come to eat",
            "outcome": "A guest knows within a minute whether there is a table for them.",
            "stories": [
                {
                    "name": "Guest books a table",
                    "users": ["Guest"],
                    "story_type": "user",
                    "context_source": ["talk with the host"],
                }
            ],
        }
    ],
    "increments": [
        {
            "name": "One evening",
            "priority": 1,
            "outcome": "We learn whether guests book without calling.",
            "stories": ["Guest books a table"],
        }
    ],
}


@asynccontextmanager
async def bot_server(stage: Stage) -> AsyncGenerator[HttpServer]:
    """A server with a bot of its own, in a project of its own, where only a human can close an action."""
    project = stage.project / "supper_club"
    await asyncio.to_thread(_write_project, project)
    own = replace(stage, project=project)
    async with own.http_server() as server:
        yield server


def _write_project(project: Path) -> None:
    project.mkdir()
    if _EXAMPLE.is_dir():
        shutil.copytree(_EXAMPLE, project / BOT)
    else:
        write_new_bot(project / BOT, BOT)
    (project / "trysquare.toml").write_text(f'bot = ["{BOT}"]\nstrict = true\n', encoding="utf-8")


class BotTalk:
    """One client and the human behind it, at work with the bot."""

    def __init__(self, stage: Stage, client: Client, human: Human) -> None:
        self.stage, self.client, self.human = stage, client, human

    async def call(self, tool: str, /, **parameters: Any) -> dict[str, Any]:
        """Call a tool of the bot, and show the call and where the run stands after it."""
        arguments = {"parameters": parameters} if parameters else {}
        transcript = self.stage.transcript
        transcript.sent("tools/call", f"{BOT}_{tool}", arguments)
        result = await self.client.call_tool(f"{BOT}_{tool}", arguments)
        answer = envelope_of(result)
        error = text_of(result) if result.is_error else ""
        transcript.received(error or f"{answer.get('behavior')}.{answer.get('action')}: {_stands(answer)}", lines=1)
        return answer

    async def close(self, **parameters: Any) -> dict[str, Any]:
        """Close the current action."""
        return await self.call("close_current_action", **parameters)

    async def go_on_to(self, action: str) -> dict[str, Any]:
        """Deliver and close what comes before an action, and deliver that one."""
        for _ in range(_MOST_ACTIONS):
            answer = await self.call("tool")
            if answer.get("action") == action:
                return answer
            await self.close()
        raise AssertionError(f"{action} never came")


def _stands(answer: dict[str, Any]) -> str:
    following = answer.get("next_action")
    return f"{answer.get('action_state')}" + (f", next is {following}" if following else "")


@asynccontextmanager
async def talking(server: HttpServer) -> AsyncGenerator[BotTalk]:
    """A client with a human who can be asked."""
    human = Human(transcript=server.stage.transcript)
    async with server.client(human=human) as client:
        yield BotTalk(server.stage, client, human)


async def begin(server: HttpServer) -> None:
    """The first action asks where to work, and a human has to agree."""
    stage = server.stage
    async with talking(server) as talk:
        tools = (await talk.client.list_tools()).tools
        names = [tool.name for tool in tools if tool.name.startswith(BOT)]
        stage.transcript.received(f"{len(names)} tools, from {names[0]} to {names[-1]}")
        asked = await talk.call("tool")
        stage.transcript.expect(asked.get("requires_confirmation") is True, "a question about the folder")
        done = await talk.call("tool", confirm=True)
        stage.transcript.expect(
            done.get("next_action") == "gather_context", "the folder settled, the next action named"
        )


async def answer_and_approve(server: HttpServer) -> None:
    """Key questions are answered and saved; the close is confirmed by the human, and not by the agent."""
    stage = server.stage
    async with talking(server) as talk:
        asked = await talk.call("tool")
        questions = asked["data"]["instructions"]["guardrails"]["key_questions"]
        await talk.call("shape_gather_context", answers=dict.fromkeys(questions, "Guests."))
        talk.human.approve = False
        refused = await talk.close()
        stage.transcript.expect(refused.get("code") == "CONSENT_REFUSED", "nothing closed while the human says no")
        talk.human.approve = True
        closed = await talk.close()
        stage.transcript.expect(closed.get("approval") == "confirmed", "a close that is confirmed, with who and when")


async def reject_a_close(server: HttpServer) -> None:
    """A close that the human rejects sends the action back to work, with the reason in its instructions."""
    stage = server.stage
    async with talking(server) as talk:
        answer = await talk.go_on_to("build_knowledge")
        await asyncio.to_thread(_write_graph, stage.project / answer["data"]["documents"][0], "Manage reservations")
        await talk.close(reject="Say what the guest does.")
        again = await talk.call("tool")
        reason = again["data"]["instructions"].get("sent_back", {}).get("reason")
        stage.transcript.expect(reason == "Say what the guest does.", "the reason, where the work is done again")
        closed = await talk.close()
        stage.transcript.expect(closed.get("completed_action") == "build_knowledge", "closed after the approval")


def _write_graph(file: Path, story: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(_GRAPH, indent=2).replace("Guest books a table", story), encoding="utf-8")


async def kill_and_resume(server: HttpServer) -> None:
    """The server is killed in the middle. A new one goes on where the work stood, and the rules find a violation."""
    stage = server.stage
    async with talking(server) as talk:
        stood = await talk.call("tool")
    stage.transcript.note("kill -9 of the server")
    await server.kill()
    await server.start()
    async with talking(server) as talk:
        found = await talk.call("tool")
        stage.transcript.expect(found.get("action") == stood.get("action"), "the action where the work stood")
        found = await talk.go_on_to("validate_rules")
        stage.transcript.expect(found["data"]["clean"] is False, "a story whose name breaks a rule")
        await asyncio.to_thread(_write_graph, _graph_of(stage.project), "Guest books a table")
        clean = await talk.call("tool")
        stage.transcript.expect(clean["data"]["clean"] is True, "clean rules after the name was corrected")
        closed = await talk.close()
        stage.transcript.expect(closed.get("completed_behavior") == "shape", "the first behavior done")


def _graph_of(project: Path) -> Path:
    return next((project / "docs").rglob("story-graph.json"))


async def finish(server: HttpServer) -> None:
    """The second behavior, action by action, each approved, to its end."""
    stage = server.stage
    async with talking(server) as talk:
        await talk.go_on_to("validate_rules")
        closed = await talk.close()
        stage.transcript.expect("completed_behavior" in closed, "the second behavior done")
        stage.transcript.received(f"{closed['completed_behavior']} is done; next is {closed['next_behavior']}")
        state = json.loads(await asyncio.to_thread((stage.project / "workflow_state.json").read_text, "utf-8"))
        approvals = [entry.get("approval") for entry in state["completed_actions"]]
        stage.transcript.received(f"workflow_state.json holds {len(approvals)} completed actions")
        stage.transcript.expect(set(approvals) == {"confirmed"}, "two behaviors, every action confirmed by a human")
