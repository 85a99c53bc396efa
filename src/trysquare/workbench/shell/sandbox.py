"""Sandbox: where commands run: the system read-only, the workspace writable, no network, nothing left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.threads import run_in_thread
from trysquare.processes.child import Command
from trysquare.processes.nursery import Nursery
from trysquare.workbench.config import WorkbenchConfig
from trysquare.workbench.shell.bubblewrap import wrapped_command
from trysquare.workbench.shell.environment import clean_environment
from trysquare.workbench.shell.hidden import hidden_places, matching_places
from trysquare.workbench.shell.job import Job, Outcome
from trysquare.workbench.shell.landlock import landlocked_command
from trysquare.workbench.shell.landlock_program import missing as missing_landlock
from trysquare.workbench.shell.process_group import process_group
from trysquare.workbench.shell.running import Ran, run_to_end
from trysquare.workbench.state_folder import own_state_folder

_GRACE = 1.0
"""Seconds in which Landlock's own program ends what a command has started; bubblewrap leaves that to the kernel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """A command line for one job, with what it needs around it."""

    command: list[str]
    environment: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    grace: float = 0.0


class Sandbox:
    """Runs jobs of one workspace."""

    def __init__(
        self, config: WorkbenchConfig, root: Path, nursery: Nursery, repository: Callable[[], Sequence[Path]] = tuple
    ) -> None:
        self._config, self._root, self._nursery, self._repository = config, root, nursery, repository
        self._patterns: tuple[str, ...] = ()

    def hiding(self, patterns: Sequence[str]) -> Sandbox:
        """The same with paths of the workspace that no command sees."""
        other = copy(self)
        other._patterns = tuple(patterns)
        return other

    def _hidden(self, job: Job) -> list[Path]:
        """What a job does not see. Git's own jobs see the workspace whole; their answers are looked through instead."""
        hidden = hidden_places(self._root, self._config.project)
        if not self._patterns or job.git_folders:
            return hidden
        # The repository holds what its files were: a command would find there what is hidden in the workspace.
        return [*hidden, *matching_places(self._root, self._patterns), *self._repository()]

    async def run(self, job: Job) -> Outcome:
        """Run a job to its end."""
        await run_in_thread(self._claim_state_folders)
        way = await run_in_thread(lambda: available_way(self._config.sandboxes))
        if way is None:
            raise no_sandbox(self._config.sandboxes)
        hidden = await run_in_thread(lambda: self._hidden(job))
        with self._bubblewrapped(job, hidden) if way == "bubblewrap" else self._landlocked(job, hidden) as prepared:
            return _outcome(await self._ran(job, prepared))

    async def _ran(self, job: Job, prepared: Prepared) -> Ran:
        group = process_group(self._config.processes)
        # Where we have to count processes ourselves, they must not keep us from it.
        line = ["nice", "-n", "19", *prepared.command] if group is None else group.entering(prepared.command)
        environment = {**clean_environment(passed=self._config.passed), **prepared.environment, **job.environment}
        command = Command(program=line[0], arguments=line[1:], environment=environment, folder=str(self._root))
        # The kernel's limit for a user's processes does not hold for root.
        counted = self._config.processes if group is None and os.geteuid() == 0 else None
        try:
            return await run_to_end(
                self._nursery, command, seconds=job.seconds, grace=prepared.grace, most_processes=counted
            )
        finally:
            if group is not None:
                await group.remove()

    @contextmanager
    def _bubblewrapped(self, job: Job, hidden: Sequence[Path]) -> Generator[Prepared]:
        program = shutil.which("bwrap") or "bwrap"
        command = wrapped_command(program, self._root, job, hidden=hidden, processes=self._config.processes)
        yield Prepared(command=command)

    @contextmanager
    def _landlocked(self, job: Job, hidden: Sequence[Path]) -> Generator[Prepared]:
        with tempfile.TemporaryDirectory(prefix="trysquare-") as folder:
            temporary = Path(folder)
            command = landlocked_command(
                self._root, job, temporary=temporary, hidden=hidden, processes=self._config.processes
            )
            home = str(Path.home()) if job.shows_home else folder
            yield Prepared(command=command, environment={"TMPDIR": folder, "HOME": home}, grace=_GRACE)

    def _claim_state_folders(self) -> None:
        """Make the folders that decide what is allowed, so that a command finds them hidden and cannot make its own."""
        own_state_folder(self._root)
        project = self._config.project
        if project is not None and project.resolve().is_relative_to(self._root):
            own_state_folder(project.resolve())


def available_way(wanted: tuple[str, ...]) -> str | None:
    """The first way of those wanted that works here."""
    return next((way for way in wanted if _reason_against(way) is None), None)


def no_sandbox(wanted: tuple[str, ...]) -> ToolError:
    """The refusal where commands cannot be held: then none is run."""
    reasons = "; ".join(f"{way}: {_reason_against(way)}" for way in wanted) or "none is allowed"
    return ToolError(
        f"Commands are run only in a sandbox, and there is none ({reasons}).",
        code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
        instruction="Do without commands. A person can install bubblewrap (the Debian package `bubblewrap`).",
    )


@cache
def _reason_against(way: str) -> str | None:
    """Why a way does not work here, tried for real; None where it does."""
    if way == "landlock":
        return missing_landlock()
    program = shutil.which("bwrap")
    if program is None:
        return "bwrap is not installed"
    trial = [program, "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--", "true"]
    ran = subprocess.run(trial, capture_output=True, stdin=subprocess.DEVNULL, timeout=30)
    return None if ran.returncode == 0 else ran.stderr.decode("utf-8", "replace").strip()[:200] or "it fails"


def _outcome(ran: Ran) -> Outcome:
    return Outcome(
        status=ran.status,
        ended=ran.ended,
        output=ran.output.text(),
        errors=ran.errors.text(),
        left_out=ran.output.left_out,
    )
