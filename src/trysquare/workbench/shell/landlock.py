"""Landlock: what a command may read and write where bubblewrap cannot make namespaces.

Rights are given to folders with all that is in them, so a part of a folder cannot be taken out again. What lies at the
top of the workspace is therefore named piece by piece, without `.git` and the state folder: a command can change what
is there, but cannot make or remove anything at the top itself.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from trysquare.workbench.shell import landlock_program
from trysquare.workbench.shell.bubblewrap import LARGEST_FILE, LARGEST_MEMORY
from trysquare.workbench.shell.job import Job
from trysquare.workbench.workspace import PROTECTED, SETTINGS_FILE

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix", "/proc", "/sys", "/var/lib")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")


def landlocked_command(root: Path, job: Job, *, temporary: Path, hidden: Sequence[Path], processes: int) -> list[str]:
    """The command line that runs a job in a Landlock domain."""
    specification = {
        "list": [str(root)],
        "read": list(_readable(root, job, hidden)),
        "write": [str(temporary), *_DEVICES, *_writable(root, hidden), *job.git_folders],
        "network": job.network,
        "merged": job.merged,
        "processes": processes,
        "file_bytes": LARGEST_FILE * 512,
        "memory_bytes": LARGEST_MEMORY * 1024,
        "command": list(job.command),
    }
    program = str(Path(landlock_program.__file__))
    return [sys.executable, "-I", "-S", program, json.dumps(specification)]


def _readable(root: Path, job: Job, hidden: Sequence[Path]) -> Iterator[str]:
    for place in dict.fromkeys((*_SYSTEM, sys.prefix, sys.base_prefix)):
        yield from _without(Path(os.path.realpath(place)), hidden)
    own = root / ".git"
    if own.exists() and not own.is_symlink() and own not in hidden:
        yield str(own)
    yield from (str(root / name) for name in (SETTINGS_FILE,))
    if job.shows_home:
        yield str(Path.home())


def _without(place: Path, hidden: Sequence[Path]) -> Iterator[str]:
    """A place, or, where something in it is hidden, what else is in it."""
    if place in hidden:
        return
    if not any(each.is_relative_to(place) for each in hidden):
        yield str(place)
        return
    for inner in place.iterdir():
        yield from _without(inner, hidden)


def _writable(root: Path, hidden: Sequence[Path]) -> Iterator[str]:
    for entry in os.scandir(root):
        if entry.name not in PROTECTED and entry.name != SETTINGS_FILE and not entry.is_symlink():
            yield from _without(Path(entry.path), hidden)
