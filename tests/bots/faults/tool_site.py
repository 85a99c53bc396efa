"""Two small bots in one project, served by two processes that can end at any write, and a person with an editor."""

from __future__ import annotations

import asyncio
import functools
import json
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from unittest import mock

from tests.bots.bot_folders import write_bot
from tests.bots.faults.crashing import Faults, FaultyDatabase, failing_files
from trysquare import CallContext, Result, call_tool
from trysquare.bots import BotConfig, load_bot, open_bot, projects
from trysquare.bots.definition.model import BotDefinition
from trysquare.bots.provider import BotToolset
from trysquare.bots.workflow.sync import NAME
from trysquare.store import Database, LazyDatabase, StoredApprovals, project_state
from trysquare.store.approvals import PendingApproval
from trysquare.store.workflows import SqliteWorkflows

_ACTION = {"workflow": True}
_FOLDERS: Mapping[str, Mapping[str, Any]] = {
    "mini": {
        "bot_config.json": {
            "name": "mini",
            "behaviors": ["shape", "code"],
            "gates": {
                "shape.gather_context": {"proof": True},
                "code.gather_context": {"policy": "combine_next"},
                "code.build_knowledge": {"proof": True},
            },
        },
        "behaviors/1_shape/2_content/1_knowledge_graph/build_map.json": {
            "name": "map", "template": "map-template.json", "path": "docs", "output": "map.json",
        },
        "behaviors/1_shape/2_content/1_knowledge_graph/map-template.json": {"schema": 1, "epics": []},
    },
    "aide": {
        "bot_config.json": {
            "name": "aide",
            "behaviors": ["shape", "code"],
            "jumps": {"ahead": "deny", "reopened": "confirm"},
            "gates": {"code.initialize_project": {"policy": "skip"}},
        },
        "base_actions/3_build_knowledge/action_config.json": None,
    },
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Law:
    """What the tests know of a bot: the order of its actions, and which of them a person has to close."""

    bot: str
    actions: tuple[str, ...]
    proof: frozenset[str]
    combined: frozenset[str] = frozenset()
    """Actions that are closed together with the next one."""
    passed_over: frozenset[str] = frozenset()
    ahead: bool = True
    """Whether an action may be opened before its turn."""
    reopens_alone: bool = True
    """Whether nobody has to agree when an action is taken up again."""
    behaviors: tuple[str, ...] = ("shape", "code")

    @property
    def order(self) -> list[str]:
        return [f"{behavior}.{action}" for behavior in self.behaviors for action in self.actions]

    def after(self, path: str) -> str | None:
        """The next action of the same behavior."""
        behavior = path.split(".")[0]
        rest = self.order[self.order.index(path) + 1 :]
        return next((each for each in rest if each.startswith(f"{behavior}.") and each not in self.passed_over), None)

    def together(self, path: str) -> list[str]:
        """An action and those that are closed with it."""
        following = self.after(path) if path in self.combined else None
        return [path] if following is None else [path, *self.together(following)]

    def tools(self) -> list[str]:
        """The tools that open an action."""
        own = [*self.actions, "correct_bot"]
        each = [f"{self.bot}_{behavior}_{action}" for behavior in self.behaviors for action in own]
        return [f"{self.bot}_tool", *(f"{self.bot}_{behavior}_tool" for behavior in self.behaviors), *each]


_ALL = ("initialize_project", "gather_context", "build_knowledge")
LAWS = {
    "mini": Law(
        bot="mini",
        actions=_ALL,
        proof=frozenset({"shape.gather_context", "code.build_knowledge"}),
        combined=frozenset({"code.gather_context"}),
    ),
    # Served strictly: every close needs a person.
    "aide": Law(
        bot="aide",
        actions=_ALL[:2],
        proof=frozenset(f"{behavior}.{action}" for behavior in ("shape", "code") for action in _ALL[:2]),
        passed_over=frozenset({"code.initialize_project"}),
        ahead=False,
        reopens_alone=False,
    ),
}


def _memory() -> Path | None:
    """A place in memory where there is one: what a disk forgets in a power cut is not tested here."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() else None


@functools.cache
def _bots() -> tempfile.TemporaryDirectory[str]:
    """The folders of the bots, written once for the process."""
    made = tempfile.TemporaryDirectory(dir=_memory())
    for name, changes in _FOLDERS.items():
        write_bot(Path(made.name) / name, changes)
    return made


def bot_folder(name: str) -> Path:
    """The folder of a bot. Whoever changes it puts it back."""
    return Path(_bots().name) / name


@functools.cache
def _loaded(folder: Path) -> BotDefinition:
    """The definition of a bot. Servers end often here, and what they read at their start is always the same."""
    return load_bot(folder)


class Server:
    """One process: the bots that were called in it, over one open state file."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._database = FaultyDatabase(project_state(site.project), site.faults)
        self._toolsets: dict[str, BotToolset] = {}
        self._stack = AsyncExitStack()
        self.left = False

    async def toolset(self, bot: str) -> BotToolset:
        """The tools of a bot, opened at the first call."""
        if bot not in self._toolsets:
            config = BotConfig(
                folder=bot_folder(bot), project=self._site.project, project_named=True, strict=bot == "aide",
                watch=False,
            )  # fmt: skip
            door = open_bot(
                config,
                open_store=lambda _: SqliteWorkflows(self._database),
                approvals=StoredApprovals(cast(Database, self._database)),
                leave=self._leave,
            )
            with mock.patch.object(projects, "load_bot", _loaded):
                self._toolsets[bot] = await self._stack.enter_async_context(door)
        return self._toolsets[bot]

    async def call(self, tool: str, parameters: Mapping[str, Any], context: CallContext | None = None) -> Result[Any]:
        """Call a tool by its name; through the gateway where the parameters name a tool to do."""
        return await call_tool(await self.toolset(tool.split("_")[0]), tool, {"parameters": {**parameters}}, context)

    def end(self) -> None:
        """The system takes back what a process held."""
        self._site.loop.run_until_complete(self._stack.aclose())
        self._database.close()

    def _leave(self) -> None:
        self.left = True


class Site:
    """The project, its servers, and what a person can reach without them."""

    def __init__(self) -> None:
        self.project = Path(tempfile.mkdtemp(dir=_memory()))
        self.faults = Faults()
        self.loop = asyncio.new_event_loop()
        self._patched = ExitStack()
        self._patched.enter_context(failing_files(self.faults))
        self._own = LazyDatabase(project_state(self.project))
        self.approvals = StoredApprovals(cast(Database, self._own))
        self.servers = [Server(self), Server(self)]

    def restart(self, number: int | None = None) -> None:
        """One process ends and is started again, or all of them."""
        for each in range(len(self.servers)) if number is None else (number,):
            self.servers[each].end()
            self.servers[each] = Server(self)

    def remove(self) -> None:
        for server in self.servers:
            server.end()
        self._own.close()
        self._patched.close()
        self.loop.close()
        shutil.rmtree(self.project)

    def database(self) -> LazyDatabase:
        """The state file as the person's own programs open it."""
        return self._own

    def waiting(self) -> list[PendingApproval]:
        """The calls that wait for a person."""
        return self.approvals.pending()

    def has_worked(self, bot: str) -> bool:
        """Whether a bot has a state file of its own in the project."""
        with self._own.read() as connection:
            return connection.execute("SELECT 1 FROM workflow_bots WHERE bot = ?", (bot,)).fetchone() is not None

    def window(self, bot: str) -> Path:
        """Where the state file of a bot lies."""
        with self._own.read() as connection:
            row = connection.execute("SELECT window_path FROM workflow_bots WHERE bot = ?", (bot,)).fetchone()
        return self.project / (NAME if row is None else row[0])


def read_document(data: bytes) -> dict[str, Any] | None:
    """What stands in a state file, or None where it is none."""
    try:
        document = json.loads(data)
    except ValueError:
        return None
    return cast(dict[str, Any], document) if isinstance(document, dict) and "completed_actions" in document else None
