"""Sandbox: where commands run: the system read-only, the workspace writable, no network, nothing left behind."""

from __future__ import annotations

import shutil
from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.processes.child import Command
from trysquare.processes.nursery import Nursery
from trysquare.workbench.config import WorkbenchConfig
from trysquare.workbench.shell.bubblewrap import wrapped_command
from trysquare.workbench.shell.environment import clean_environment
from trysquare.workbench.shell.hidden import hidden_places
from trysquare.workbench.shell.job import Job, Outcome
from trysquare.workbench.shell.process_group import process_group
from trysquare.workbench.shell.running import Ran, run_to_end
from trysquare.workbench.state_folder import own_state_folder


class Sandbox:
    """Runs jobs of one workspace."""

    def __init__(self, config: WorkbenchConfig, root: Path, nursery: Nursery) -> None:
        self._config, self._root, self._nursery = config, root, nursery

    async def run(self, job: Job) -> Outcome:
        """Run a job to its end."""
        program = shutil.which("bwrap")
        if program is None:
            raise ToolError("no sandbox", code=ErrorCode.CAPABILITY_NOT_SUPPORTED)
        self._claim_state_folders()
        hidden = hidden_places(self._root, self._config.project)
        command = wrapped_command(program, self._root, job, hidden=hidden, processes=self._config.processes)
        group = process_group(self._config.processes)
        if group is not None:
            command = group.entering(command)
        environment = {**clean_environment(passed=self._config.passed), **job.environment}
        try:
            ran = await run_to_end(
                self._nursery,
                Command(program=command[0], arguments=command[1:], environment=environment, folder=str(self._root)),
                seconds=job.seconds,
            )
        finally:
            if group is not None:
                await group.remove()
        return _outcome(ran)

    def _claim_state_folders(self) -> None:
        """Make the folders that decide what is allowed, so that a command finds them hidden and cannot make its own."""
        own_state_folder(self._root)
        project = self._config.project
        if project is not None and project.resolve().is_relative_to(self._root):
            own_state_folder(project.resolve())


def _outcome(ran: Ran) -> Outcome:
    return Outcome(
        status=ran.status,
        ended=ran.ended,
        output=ran.output.text(),
        errors=ran.errors.text(),
        left_out=ran.output.left_out,
    )
