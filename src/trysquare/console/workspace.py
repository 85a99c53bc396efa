"""What the pages read: the app, and the stores of its project, each opened when a page first needs it."""

from __future__ import annotations

import importlib
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from trysquare.app import App
from trysquare.catalog.lint.base import Finding, LintOptions
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.core.toolset import Toolset, introduced
from trysquare.providers import Origins, approval_files, jobs_address, project_approvers
from trysquare.server import ServeOptions
from trysquare.store import LazyDatabase, StoredApprovals, user_state

if TYPE_CHECKING:
    from trysquare.bots.projects import LiveBot
    from trysquare.gateway import GatewayService, LaunchPins
    from trysquare.jobs import JobReader
    from trysquare.store.call_ledger import CallLedger


class Workspace:
    """One app with its stores. What a command reads, it reads through the same functions."""

    def __init__(
        self, app: App, origins: Origins, stack: AsyncExitStack, *, toolset: Toolset, options: ServeOptions
    ) -> None:
        self.app = app
        self.toolset = toolset
        """The tools as clients call them."""
        self.options = options
        self.origins = origins
        self.opened = time.time()
        self._stack = stack
        self._states = {
            path: stack.enter_context(closing(LazyDatabase(path))) for path in approval_files(app.settings, origins)
        }
        self._jobs: JobReader | None = None
        self.approvers = project_approvers(app.settings, origins)
        """Whose signatures count in strict mode."""
        self._linted: tuple[tuple[Tool, ...], list[Finding]] | None = None

    @property
    def project(self) -> Path:
        """The directory of the project."""
        return self.app.settings.project

    @property
    def state_files(self) -> Sequence[Path]:
        """The state files that a page shows something of."""
        return tuple(self._states)

    def approvals(self) -> list[StoredApprovals]:
        """The approvals of every state file that exists."""
        approvers, strict = self.approvers, self.app.settings.strict
        lifetime = self.app.settings.limits.approval_seconds
        present = [state for path, state in self._states.items() if path.exists()]
        return [StoredApprovals(state, approvers=approvers, strict=strict, lifetime=lifetime) for state in present]

    @cached_property
    def gateway(self) -> GatewayService | None:
        """The servers behind the gateway, if this app has one."""
        if not self.app.settings.gateway:
            return None
        from trysquare.gateway import GatewayToolset

        found = (each.servers for each in self.app.toolsets if isinstance(each, GatewayToolset))
        return next(found, None)

    @cached_property
    def bots(self) -> Sequence[LiveBot]:
        """The bots that this app serves, with their present definitions."""
        if not self.app.settings.bot:
            return ()
        from trysquare.bots.provider import BotToolset

        parts = (part for toolset in self.app.toolsets for part in introduced(toolset))
        return tuple(part.bot for part in parts if isinstance(part, BotToolset))

    @cached_property
    def launch_pins(self) -> LaunchPins:
        """The approved launches of the servers behind the gateway."""
        from trysquare.gateway import LaunchPins
        from trysquare.store.pins import CommandPins

        return LaunchPins(CommandPins(self._states[user_state()]))

    @cached_property
    def ledger(self) -> CallLedger:
        """The ledger of the calls through the gateway: that of this process, where it has one."""
        if self.gateway is not None:
            return self.gateway.sender.ledger
        from trysquare.store.call_ledger import CallLedger

        ledger = CallLedger(self.ledger_file)
        self._stack.callback(ledger.close)
        return ledger

    def findings(self) -> list[Finding]:
        """What the rules say about the tools, read anew when the tools have changed."""
        from trysquare.catalog.lint.engine import lint

        tools = tuple(self.app.plain.tools())
        if self._linted is None or self._linted[0] != tools:
            own = self.app.settings.lint
            limits = own.model_dump(exclude={"ignore"})
            options = LintOptions(ignore=frozenset(own.ignore), profiles=self.app.profiles, **limits)
            self._linted = tools, lint(self.app.plain, options)
        return self._linted[1]

    @property
    def ledger_file(self) -> Path:
        """The file of the ledger."""
        return user_state().with_name("ledger.db")

    @property
    def jobs_file(self) -> Path | None:
        """The file of the jobs, unless they are in a database of their own."""
        url = jobs_address(self.app.settings, self.origins).url
        return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:///") else None

    @asynccontextmanager
    async def jobs(self) -> AsyncGenerator[JobReader]:
        """The jobs of the project. Their reader stays open once there was a job."""
        yield self._jobs or await self._open_jobs()

    async def _open_jobs(self) -> JobReader:
        from trysquare.jobs import available, open_reader
        from trysquare.jobs.engine import NoJobs

        address, file = jobs_address(self.app.settings, self.origins), self.jobs_file
        if not available() or (file is not None and not file.exists()):
            return NoJobs(address.url)
        # In a thread: the import takes about a second.
        await run_in_thread(lambda: importlib.import_module("trysquare.jobs.dbos"))
        found = await self._stack.enter_async_context(open_reader(address.url, project=address.project))
        self._jobs = self._jobs or found
        return self._jobs
