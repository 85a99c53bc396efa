"""Command lines of bubblewrap and Landlock."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from trysquare.processes.sandbox import landlock_exec as landlock_program
from trysquare.processes.sandbox.job import HOME, Confinement, SandboxJob

TEMPORARY_BYTES = 1024 * 1024 * 1024

# The process limit is set inside, where it counts the processes of the sandbox only; shells differ in its option.
# A limit that cannot be set is skipped: processes are limited in another way too.
_LIMITED = """\
{ ulimit -u "$1" || ulimit -p "$1"; ulimit -f "$2"; ulimit -d "$3"; ulimit -c 0; } 2>/dev/null
echo 1000 2>/dev/null >/proc/self/oom_score_adj
mkdir -p "$HOME"
[ "$4" = 1 ] && exec 2>&1
[ "$5" = 1 ] || exec </dev/null
shift 5
exec "$@"
"""


def bubblewrap_command(program: str, job: SandboxJob, inside: Confinement) -> list[str]:
    """Command line that runs a job in bubblewrap."""
    # `ulimit -f` counts blocks of 512 bytes, `ulimit -d` KiB.
    limits = [str(inside.processes), str(job.file_bytes // 512), str(job.memory_bytes // 1024)]
    how = [str(int(job.merged)), str(int(job.reads_input))]
    return [program, *_options(job, inside), "--", "/bin/sh", "-c", _LIMITED, "sh", *limits, *how, *job.command]


def _options(job: SandboxJob, inside: Confinement) -> Iterator[str]:
    root, hidden = inside.root, inside.hidden
    # /run holds sockets of system services.
    yield from ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
    if job.network:
        yield "--share-net"
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    yield from ("--size", str(TEMPORARY_BYTES), "--tmpfs", "/tmp", "--tmpfs", "/run")
    for path in dict.fromkeys((Path(sys.prefix), Path(sys.base_prefix), *inside.readable)):
        if _is_in_empty_mount(path):
            yield from ("--ro-bind-try", str(path), str(path))
    if job.network:
        yield from ("--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve")
    if not job.shows_home:
        yield from _hiding([path for path in hidden if not _is_in_empty_mount(path)])
    bind = "--bind" if job.writes else "--ro-bind"
    yield from (bind, str(root), str(root))
    yield from (part for path in inside.kept() for part in ("--ro-bind", str(path), str(path)))
    yield from _git_options(job, hidden)
    within = [path for path in hidden if path.is_relative_to(root)]
    # A directory that is a mount of its own cannot be renamed to uncover what is hidden in it.
    above = {folder for path in within for folder in path.parents if folder != root and folder.is_relative_to(root)}
    yield from (part for folder in sorted(above) for part in (bind, str(folder), str(folder)))
    yield from _hiding(within)
    yield from ("--setenv", "HOME", str(Path.home()) if job.shows_home else HOME, "--chdir", str(root))


def _hiding(paths: Sequence[Path]) -> Iterator[str]:
    for path in paths:
        yield from ("--tmpfs", str(path)) if path.is_dir() else ("--ro-bind", "/dev/null", str(path))


def _is_in_empty_mount(path: Path) -> bool:
    return path.is_relative_to("/tmp") or path.is_relative_to("/run")


def _git_options(job: SandboxJob, hidden: Sequence[Path]) -> Iterator[str]:
    """The repository for git itself: writable except what makes git run programs."""
    for folder in job.git_folders:
        yield from ("--bind", folder, folder)
        for name in ("config", "config.worktree", "hooks", "info/attributes"):
            yield from ("--ro-bind-try", f"{folder}/{name}", f"{folder}/{name}")


_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix", "/proc", "/sys", "/var/lib")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")


def landlock_command(job: SandboxJob, inside: Confinement, *, temporary: Path) -> list[str]:
    """Command line that runs a job in a Landlock domain."""
    own = list(_entries(inside))
    readable = [*_readable(job, inside), *([] if job.writes else own)]
    specification = {
        "list": [str(inside.root)],
        "read": readable,
        "write": [str(temporary), *_DEVICES, *(own if job.writes else ()), *job.git_folders],
        "network": job.network,
        "merged": job.merged,
        "reads_input": job.reads_input,
        "processes": inside.processes,
        "file_bytes": job.file_bytes,
        "memory_bytes": job.memory_bytes,
        "command": list(job.command),
    }
    program = str(Path(landlock_program.__file__))
    return [sys.executable, "-I", "-S", program, json.dumps(specification)]


def _readable(job: SandboxJob, inside: Confinement) -> Iterator[str]:
    for path in dict.fromkeys((*_SYSTEM, sys.prefix, sys.base_prefix, *map(str, inside.readable))):
        yield from _without(Path(os.path.realpath(path)), inside.hidden)
    yield from map(str, inside.kept())
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


def _entries(inside: Confinement) -> Iterator[str]:
    """The entries of the root one by one: Landlock cannot exclude `.git` from a right to the whole."""
    for entry in os.scandir(inside.root):
        if entry.name not in inside.protected and not entry.is_symlink():
            yield from _without(Path(entry.path), inside.hidden)
