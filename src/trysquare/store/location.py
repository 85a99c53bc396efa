"""Where state lives: a folder of the project, or of the user where there is no project."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from trysquare.core.errors import ConfigurationError

FOLDER = ".trysquare"
FILE = "state.db"

_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "afs", "ceph", "glusterfs"})


def project_state(project: Path) -> Path:
    """The state file of a project."""
    return project / FOLDER / FILE


def user_state(env: Mapping[str, str] = os.environ) -> Path:
    """The state file of this user, for what belongs to no project."""
    base = env.get("XDG_STATE_HOME", "")
    # The XDG rules say that a relative path is to be ignored.
    root = Path(base) if base.startswith("/") else Path(env.get("HOME") or Path.home()) / ".local" / "state"
    return root / "trysquare" / FILE


def prepare_folder(folder: Path) -> None:
    """Make the folder, for its owner only, and let it ignore itself in git."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (about := folder.stat()).st_uid == os.geteuid() and about.st_mode & 0o077:
            folder.chmod(0o700)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"The state folder cannot be used: {error.strerror or error}.",
            where=str(folder),
            hint="Make it writable, or choose another project folder with --project.",
        ) from error
    _refuse_network(folder)


def _refuse_network(folder: Path) -> None:
    kind = filesystem_of(folder)
    if kind in _NETWORK:
        raise ConfigurationError(
            f"The state folder is on a network file system ({kind}), where SQLite cannot keep its promises.",
            where=str(folder),
            hint="Choose a project folder on a local disk with --project.",
        )


def filesystem_of(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """The type of the file system that holds a folder, where the system tells."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        wanted = str(folder.resolve())
    except OSError:
        return None
    best, kind = "", None
    for line in lines:
        fields, _, rest = line.partition(" - ")
        point = fields.split(" ")[4].replace("\\040", " ")
        holds = wanted == point or wanted.startswith(point.rstrip("/") + "/")
        if holds and len(point) >= len(best):
            best, kind = point, rest.split(" ", 1)[0]
    return kind
