"""ProcessGroup: a group of the kernel's (cgroup) that holds no more than so many processes, where we may make one."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import anyio

_MOUNT = Path("/sys/fs/cgroup")
_TRIES = 50


class ProcessGroup:
    """One group for one command. It is removed when the command is over."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def entering(self, command: list[str]) -> list[str]:
        """The command, started by a shell that first enters the group."""
        enter = 'echo $$ >"$0" || exit 126; exec "$@"'
        return ["/bin/sh", "-c", enter, str(self._folder / "cgroup.procs"), *command]

    async def remove(self) -> None:
        """Remove the group. Its last process may take a moment to be gone."""
        for _ in range(_TRIES):
            try:
                self._folder.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                await anyio.sleep(0.02)
            else:
                return


def process_group(most: int, *, mount: Path = _MOUNT, own: Path = Path("/proc/self/cgroup")) -> ProcessGroup | None:
    """A new group, or None where the system lets us make none."""
    for parent in _parents(mount, own):
        folder = parent / f"trysquare-{os.getpid()}-{secrets.token_hex(4)}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            (folder / "pids.max").write_text(str(most), encoding="ascii")
        except OSError:
            folder.rmdir()
            continue
        return ProcessGroup(folder)
    return None


def _parents(mount: Path, own: Path) -> list[Path]:
    """Our own groups, in the one hierarchy of newer systems and in that of the limit of older ones."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found: list[Path] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            found.append(mount / path.lstrip("/"))
        elif "pids" in controllers.split(","):
            found.append(mount / "pids" / path.lstrip("/"))
    return found
