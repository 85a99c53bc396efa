"""Sandbox for commands: read-only system, writable workspace, no network, no process left running."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache
from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.threads import run_in_thread
from trysquare.processes.supervisor import Command, ProcessSupervisor
from trysquare.workbench.sandbox.isolation import bubblewrap_command, landlock_command
from trysquare.workbench.sandbox.job import Outcome, SandboxJob, clean_environment, hidden_paths, matching_paths
from trysquare.workbench.sandbox.landlock_exec import missing as missing_landlock
from trysquare.workbench.sandbox.runner import process_group, run_to_end
from trysquare.workbench.workspace import WorkbenchConfig, own_state_folder

_GRACE = 1.0
"""Seconds for the Landlock program to kill a command's processes; with bubblewrap the kernel does it."""


class Sandbox:
    def __init__(
        self,
        config: WorkbenchConfig,
        root: Path,
        supervisor: ProcessSupervisor,
        repository: Callable[[], Sequence[Path]] = tuple,
    ) -> None:
        self._config, self._root, self._supervisor, self._repository = config, root, supervisor, repository
        self._patterns: tuple[str, ...] = ()

    def hiding(self, patterns: Sequence[str]) -> Sandbox:
        """Copy with paths of the workspace that no command may see."""
        other = copy(self)
        other._patterns = tuple(patterns)
        return other

    def _hidden(self, job: SandboxJob) -> list[Path]:
        """Paths that a job cannot see. Git's own jobs see the whole workspace; their output is filtered instead."""
        hidden = hidden_paths(self._root, self._config.project)
        if not self._patterns or job.git_folders:
            return hidden
        # The repository holds earlier contents of the hidden files.
        return [*hidden, *matching_paths(self._root, self._patterns), *self._repository()]

    async def run(self, job: SandboxJob) -> Outcome:
        # First, so that a command finds the state directories hidden and cannot create its own.
        await run_in_thread(self._create_state_folders)
        backend = await run_in_thread(lambda: available_sandbox(self._config.sandboxes))
        if backend is None:
            raise sandbox_unavailable(self._config.sandboxes)
        hidden = await run_in_thread(lambda: self._hidden(job))
        processes = self._config.processes
        if backend == "bubblewrap":
            program = shutil.which("bwrap") or "bwrap"
            return await self._run(
                job, bubblewrap_command(program, self._root, job, hidden=hidden, processes=processes)
            )
        with tempfile.TemporaryDirectory(prefix="trysquare-") as folder:
            line = landlock_command(self._root, job, temporary=Path(folder), hidden=hidden, processes=processes)
            home = str(Path.home()) if job.shows_home else folder
            return await self._run(job, line, {"TMPDIR": folder, "HOME": home}, grace=_GRACE)

    async def _run(
        self, job: SandboxJob, line: list[str], own: Mapping[str, str] | None = None, *, grace: float = 0.0
    ) -> Outcome:
        group = process_group(self._config.processes)
        # Without a cgroup the processes are counted here, so they must not starve us.
        line = ["nice", "-n", "19", *line] if group is None else group.entering(line)
        environment = {**clean_environment(passed=self._config.passed), **(own or {}), **job.environment}
        command = Command(program=line[0], arguments=line[1:], environment=environment, folder=str(self._root))
        # RLIMIT_NPROC does not apply to root.
        counted = self._config.processes if group is None and os.geteuid() == 0 else None
        try:
            return await run_to_end(self._supervisor, command, seconds=job.seconds, grace=grace, most_processes=counted)
        finally:
            if group is not None:
                await group.remove()

    def _create_state_folders(self) -> None:
        own_state_folder(self._root)
        project = self._config.project
        if project is not None and project.resolve().is_relative_to(self._root):
            own_state_folder(project.resolve())


def available_sandbox(wanted: tuple[str, ...]) -> str | None:
    """The first of the wanted backends that works here."""
    return next((backend for backend in wanted if _unavailable_reason(backend) is None), None)


def sandbox_unavailable(wanted: tuple[str, ...]) -> ToolError:
    reasons = "; ".join(f"{backend}: {_unavailable_reason(backend)}" for backend in wanted) or "none is allowed"
    return ToolError(
        f"No sandbox is available ({reasons}). Commands run only in a sandbox.",
        code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
        instruction="Work without commands. The user can install bubblewrap (Debian package `bubblewrap`).",
    )


@cache
def _unavailable_reason(backend: str) -> str | None:
    """Try a backend; None if it works, else the reason."""
    if backend == "landlock":
        return missing_landlock()
    program = shutil.which("bwrap")
    if program is None:
        return "bwrap is not installed"
    trial = [program, "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--", "true"]
    ran = subprocess.run(trial, capture_output=True, stdin=subprocess.DEVNULL, timeout=30)
    return None if ran.returncode == 0 else ran.stderr.decode("utf-8", "replace").strip()[:200] or "it fails"
