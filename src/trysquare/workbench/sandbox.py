"""Sandbox for commands: read-only system, writable workspace, no network, no process left running."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.threads import run_in_thread
from trysquare.files.globs import is_under
from trysquare.processes.sandbox.backends import available_sandbox, sandbox_unavailable
from trysquare.processes.sandbox.isolation import bubblewrap_command, landlock_command
from trysquare.processes.sandbox.job import Confinement, Outcome, SandboxJob, clean_environment
from trysquare.processes.sandbox.runner import process_group, run_to_end
from trysquare.processes.supervisor import Command, ProcessSupervisor
from trysquare.store.location import hidden_paths
from trysquare.workbench.workspace import PROTECTED, SETTINGS_FILE, WorkbenchConfig, own_state_folder

_GRACE = 1.0
"""Seconds for the Landlock program to kill a command's processes; with bubblewrap the kernel does it."""
_READ_ONLY = frozenset({*PROTECTED, SETTINGS_FILE})


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
        inside = Confinement(root=self._root, hidden=hidden, protected=_READ_ONLY, processes=self._config.processes)
        if backend == "bubblewrap":
            return await self._run(job, bubblewrap_command(shutil.which("bwrap") or "bwrap", job, inside))
        with tempfile.TemporaryDirectory(prefix="trysquare-") as folder:
            line = landlock_command(job, inside, temporary=Path(folder))
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


MAX_SCANNED = 200_000


def matching_paths(root: Path, patterns: Sequence[str]) -> list[Path]:
    """Files and directories that match a pattern, relative to the root or plain absolute."""
    absolute = [Path(pattern) for pattern in patterns if pattern.startswith("/")]
    found = [path for path in absolute if path.exists() and not path.is_symlink()]
    relative = [pattern for pattern in patterns if not pattern.startswith("/")]
    return [*found, *_walked(root, relative)] if relative else found


def _walked(root: Path, patterns: Sequence[str]) -> Iterator[Path]:
    scanned = 0
    for folder, folders, files in os.walk(root):
        inside = Path(folder).relative_to(root)
        hidden = [name for name in (*folders, *files) if is_under((inside / name).as_posix(), patterns)]
        yield from (Path(folder, name) for name in hidden if not Path(folder, name).is_symlink())
        pruned = {*hidden, *(PROTECTED if folder == str(root) else ())}
        folders[:] = [name for name in folders if name not in pruned]
        scanned += len(folders) + len(files)
        if scanned > MAX_SCANNED:
            raise ToolError(
                f"The workspace has more than {MAX_SCANNED:,} files, too many to find the hidden ones.",
                code=ErrorCode.COMMAND_NOT_ALLOWED,
                instruction="Work without commands here: hidden files could not be kept from them.",
            )
