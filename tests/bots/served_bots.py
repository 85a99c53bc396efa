"""Bots behind a real MCP client: the whole server in this process, with the state in a project's folder."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client

from tests.in_process import in_process
from tests.support import told
from trysquare.app import open_app
from trysquare.settings import Origin, Settings

STORY_BOT = Path(__file__).parents[2] / "examples" / "bots" / "story_bot"
OPTION = Origin(source="option", location="--project")


@dataclass
class Person:
    """The person behind a client: agrees or not, and remembers what was asked."""

    agrees: bool = True
    asked: list[str] = field(default_factory=list[str])

    async def __call__(self, _context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(params.message)
        return types.ElicitResult(action="accept", content={"approve": self.agrees})


@dataclass(frozen=True, kw_only=True)
class BotClient:
    """A client of one bot, in one project."""

    client: Client
    project: Path
    bot: str = "story_bot"

    async def call(self, tool: str, /, **parameters: Any) -> dict[str, Any]:
        """Call a tool of the bot by what comes after the bot's name, and return the envelope."""
        arguments = {"parameters": parameters} if parameters else {}
        result = await self.client.call_tool(f"{self.bot}_{tool}", arguments)
        return told(result)

    async def follow(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Send the call that an answer proposes."""
        return await self.send(answer["next"])

    async def send(self, call: dict[str, Any]) -> dict[str, Any]:
        """Send a call that stands in an answer, as it stands there."""
        result = await self.client.call_tool(call["tool"], call["arguments"])
        return told(result)

    def state(self) -> dict[str, Any]:
        """What the project's state file says."""
        return json.loads((self.project / "workflow_state.json").read_text(encoding="utf-8"))

    def write_state(self, **fields: Any) -> None:
        """Write a state file by hand."""
        (self.project / "workflow_state.json").write_text(json.dumps(fields), encoding="utf-8")

    def completed(self) -> list[str]:
        """The completed actions of the state file, without the bot's name."""
        entries = self.state()["completed_actions"]
        return [entry["action_state"].partition(".")[2] for entry in entries if not entry.get("reopened")]


@asynccontextmanager
async def served(
    project: Path,
    *,
    bot: Path = STORY_BOT,
    name: str = "story_bot",
    mode: str = "auto",
    named: bool = True,
    person: Person | None = None,
    **settings: Any,
) -> AsyncGenerator[BotClient]:
    """A bot in a project, behind a client."""
    configured = Settings.model_validate({"bot": [bot], "project": project, **settings})
    origins = {"project": OPTION} if named else {}
    async with open_app(configured, origins=origins) as app:
        server = in_process(app.toolset, app.serve_options())
        async with Client(server, mode=mode, elicitation_callback=person) as client:  # pyright: ignore[reportArgumentType]
            yield BotClient(client=client, project=project, bot=name)
