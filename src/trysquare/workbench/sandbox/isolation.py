"""Command lines of bubblewrap and Landlock."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from trysquare.workbench.sandbox import landlock_exec as landlock_program
from trysquare.workbench.sandbox.job import HOME, SandboxJob
from trysquare.workbench.workspace import PROTECTED, SETTINGS_FILE

TEMPORARY_BYTES = 1024 * 1024 * 1024
MAX_FILE_BLOCKS = 2 * 1024 * 1024
"""In blocks of 512 bytes, the unit of `ulimit -f`: 1 GiB."""
MAX_MEMORY_KIB = 8 * 1024 * 1024
"""In KiB, the unit of `ulimit -d`. Memory that is only reserved, as by Node, does not count."""

# The process limit is set inside, where it counts the processes of the sandbox only; shells differ in its option.
# A limit that cannot be set is skipped: processes are limited in another way too.
_LIMITED = """\
{ ulimit -u "$1" || ulimit -p "$1"; ulimit -f "$2"; ulimit -d "$3"; ulimit -c 0; } 2>/dev/null
echo 1000 2>/dev/null >/proc/self/oom_score_adj
mkdir -p "$HOME"
merged=$4; shift 4
if [ "$merged" = 1 ]; then exec "$@" </dev/null 2>&1; else exec "$@" </dev/null; fi
"""


def bubblewrap_command(
    program: str, root: Path, job: SandboxJob, *, hidden: Sequence[Path], processes: int
) -> list[str]:
    """Command line that runs a job in bubblewrap."""
    merged = "1" if job.merged else "0"
    limits = [str(processes), str(MAX_FILE_BLOCKS), str(MAX_MEMORY_KIB)]
    inner = ["/bin/sh", "-c", _LIMITED, "sh", *limits, merged, *job.command]
    return [program, *_options(root, job, hidden), "--", *inner]


def _options(root: Path, job: SandboxJob, hidden: Sequence[Path]) -> Iterator[str]:
    # /run holds sockets of system services.
    yield from ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
    if job.network:
        yield "--share-net"
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    yield from ("--size", str(TEMPORARY_BYTES), "--tmpfs", "/tmp", "--tmpfs", "/run")
    for path in dict.fromkeys((sys.prefix, sys.base_prefix)):
        if _is_in_empty_mount(Path(path)):
            yield from ("--ro-bind", path, path)
    if job.network:
        yield from ("--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve")
    if not job.shows_home:
        yield from _hiding([path for path in hidden if not _is_in_empty_mount(path)])
    yield from ("--bind", str(root), str(root))
    yield from ("--ro-bind-try", str(root / SETTINGS_FILE), str(root / SETTINGS_FILE))
    yield from _git_options(root, job, hidden)
    inside = [path for path in hidden if path.is_relative_to(root)]
    # A directory that is a mount of its own cannot be renamed to uncover what is hidden in it.
    above = {folder for path in inside for folder in path.parents if folder != root and folder.is_relative_to(root)}
    yield from (part for folder in sorted(above) for part in ("--bind", str(folder), str(folder)))
    yield from _hiding(inside)
    yield from ("--setenv", "HOME", str(Path.home()) if job.shows_home else HOME, "--chdir", str(root))


def _hiding(paths: Sequence[Path]) -> Iterator[str]:
    for path in paths:
        yield from ("--tmpfs", str(path)) if path.is_dir() else ("--ro-bind", "/dev/null", str(path))


def _is_in_empty_mount(path: Path) -> bool:
    return path.is_relative_to("/tmp") or path.is_relative_to("/run")


def _git_options(root: Path, job: SandboxJob, hidden: Sequence[Path]) -> Iterator[str]:
    """The repository: read-only, or writable for git itself except what makes git run programs."""
    own = root / ".git"
    if not job.git_folders and own.exists() and not own.is_symlink() and own not in hidden:
        yield from ("--ro-bind", str(own), str(own))
    for folder in job.git_folders:
        yield from ("--bind", folder, folder)
        for name in ("config", "config.worktree", "hooks", "info/attributes"):
            yield from ("--ro-bind-try", f"{folder}/{name}", f"{folder}/{name}")


_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix", "/proc", "/sys", "/var/lib")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")


def landlock_command(
    root: Path, job: SandboxJob, *, temporary: Path, hidden: Sequence[Path], processes: int
) -> list[str]:
    """Command line that runs a job in a Landlock domain."""
    specification = {
        "list": [str(root)],
        "read": list(_readable(root, job, hidden)),
        "write": [str(temporary), *_DEVICES, *_writable(root, hidden), *job.git_folders],
        "network": job.network,
        "merged": job.merged,
        "processes": processes,
        "file_bytes": MAX_FILE_BLOCKS * 512,
        "memory_bytes": MAX_MEMORY_KIB * 1024,
        "command": list(job.command),
    }
    program = str(Path(landlock_program.__file__))
    return [sys.executable, "-I", "-S", program, json.dumps(specification)]


def _readable(root: Path, job: SandboxJob, hidden: Sequence[Path]) -> Iterator[str]:
    for path in dict.fromkeys((*_SYSTEM, sys.prefix, sys.base_prefix)):
        yield from _without(Path(os.path.realpath(path)), hidden)
    own = root / ".git"
    if own.exists() and not own.is_symlink() and own not in hidden:
        yield str(own)
    yield str(root / SETTINGS_FILE)
    if job.shows_home:
        yield str(Path.home())


def _without(path: Path, hidden: Sequence[Path]) -> Iterator[str]:
    """A path, or its children one by one if something below it is hidden."""
    if path in hidden:
        return
    if not any(each.is_relative_to(path) for each in hidden):
        yield str(path)
        return
    for inner in path.iterdir():
        yield from _without(inner, hidden)


def _writable(root: Path, hidden: Sequence[Path]) -> Iterator[str]:
    """The entries of the workspace one by one: Landlock cannot exclude `.git` from a right to the whole."""
    for entry in os.scandir(root):
        if entry.name not in PROTECTED and entry.name != SETTINGS_FILE and not entry.is_symlink():
            yield from _without(Path(entry.path), hidden)
