"""Bubblewrap: the arguments that let a command see the system read-only and write the workspace alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from trysquare.workbench.shell.environment import HOME
from trysquare.workbench.shell.job import Job
from trysquare.workbench.workspace import SETTINGS_FILE

TEMPORARY_BYTES = 1024 * 1024 * 1024
LARGEST_FILE = 2 * 1024 * 1024
"""In blocks of 512 bytes, as the shell counts: a file of one gigabyte."""
LARGEST_MEMORY = 8 * 1024 * 1024
"""In kilobytes, as the shell counts: what one process may fill. What it only reserves, as Node does, is not counted."""

# The limit of processes is set inside: there it counts those of the sandbox, outside all of the user's. Shells name it
# differently. Where a limit cannot be set the command runs all the same; processes are limited in another way too.
_LIMITED = """\
{ ulimit -u "$1" || ulimit -p "$1"; ulimit -f "$2"; ulimit -d "$3"; ulimit -c 0; } 2>/dev/null
echo 1000 2>/dev/null >/proc/self/oom_score_adj
mkdir -p "$HOME"
merged=$4; shift 4
if [ "$merged" = 1 ]; then exec "$@" </dev/null 2>&1; else exec "$@" </dev/null; fi
"""


def wrapped_command(program: str, root: Path, job: Job, *, hidden: Sequence[Path], processes: int) -> list[str]:
    """The command line that runs a job in bubblewrap."""
    merged = "1" if job.merged else "0"
    limits = [str(processes), str(LARGEST_FILE), str(LARGEST_MEMORY)]
    inner = ["/bin/sh", "-c", _LIMITED, "sh", *limits, merged, *job.command]
    return [program, *_options(root, job, hidden), "--", *inner]


def _options(root: Path, job: Job, hidden: Sequence[Path]) -> Iterator[str]:
    # Sockets of the system lie in /run: whoever reaches one of them reaches what answers there.
    yield from ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
    if job.network:
        yield "--share-net"
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    yield from ("--size", str(TEMPORARY_BYTES), "--tmpfs", "/tmp", "--tmpfs", "/run")
    yield from _own_python()
    yield from _resolver(job)
    if not job.shows_home:
        yield from _hiding([place for place in hidden if not _is_in_fresh(place)])
    yield from ("--bind", str(root), str(root))
    yield from ("--ro-bind-try", str(root / SETTINGS_FILE), str(root / SETTINGS_FILE))
    yield from _git_options(root, job, hidden)
    inside = [place for place in hidden if place.is_relative_to(root)]
    # A folder that is a mount of its own cannot be moved, and with it what is hidden in it.
    above = {folder for place in inside for folder in place.parents if folder != root and folder.is_relative_to(root)}
    yield from (part for folder in sorted(above) for part in ("--bind", str(folder), str(folder)))
    yield from _hiding(inside)
    yield from ("--setenv", "HOME", str(Path.home()) if job.shows_home else HOME, "--chdir", str(root))


def _hiding(places: Sequence[Path]) -> Iterator[str]:
    for place in places:
        yield from ("--tmpfs", str(place)) if place.is_dir() else ("--ro-bind", "/dev/null", str(place))


def _is_in_fresh(place: Path) -> bool:
    """Whether a place lies where nothing of the system is shown anyway."""
    return place.is_relative_to("/tmp") or place.is_relative_to("/run")


def _own_python() -> Iterator[str]:
    """Our own Python, where it lies in a folder that is empty in the sandbox."""
    for place in dict.fromkeys((sys.prefix, sys.base_prefix)):
        if _is_in_fresh(Path(place)):
            yield from ("--ro-bind", place, place)


def _resolver(job: Job) -> Iterator[str]:
    """Where names of hosts are looked up, for the few jobs that may."""
    if job.network:
        yield from ("--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve")


def _git_options(root: Path, job: Job, hidden: Sequence[Path]) -> Iterator[str]:
    """The repository is read-only, or, for git itself, writable but for what makes git run programs."""
    own = root / ".git"
    if not job.git_folders and own.exists() and not own.is_symlink() and own not in hidden:
        yield from ("--ro-bind", str(own), str(own))
    for folder in job.git_folders:
        yield from ("--bind", folder, folder)
        for name in ("config", "config.worktree", "hooks", "info/attributes"):
            yield from ("--ro-bind-try", f"{folder}/{name}", f"{folder}/{name}")
