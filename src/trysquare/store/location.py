"""Locations of state files, and project ids."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError

FOLDER = ".trysquare"
FILE = "state.db"

_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "afs", "ceph", "glusterfs"})


def project_state(project: Path) -> Path:
    """State file of a project."""
    return project / FOLDER / FILE


def user_state(env: Mapping[str, str] = os.environ) -> Path:
    """State file of the user, for what belongs to no project."""
    base = env.get("XDG_STATE_HOME", "")
    # XDG: a relative path is ignored.
    root = Path(base) if base.startswith("/") else Path(env.get("HOME") or Path.home()) / ".local" / "state"
    return root / "trysquare" / FILE


def hidden_paths(root: Path, project: Path | None, env: Mapping[str, str] = os.environ) -> list[Path]:
    """Existing paths that no sandboxed job sees: secrets of the user and the system, and Trysquare's own state."""
    from trysquare.processes.sandbox.job import secret_paths

    paths = [*secret_paths(env), user_state(env).parent, root / FOLDER]
    if project is not None:
        paths.append(project.resolve() / FOLDER)
    return [path for path in dict.fromkeys(paths) if path.exists() and not path.is_symlink()]


def prepare_folder(folder: Path) -> None:
    """Create a state directory, private to its owner and ignored by git."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (about := folder.stat()).st_uid == os.geteuid() and about.st_mode & 0o077:
            folder.chmod(0o700)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"Cannot use the state directory: {error.strerror or error}.",
            where=str(folder),
            hint="Make it writable, or choose another project directory with --project.",
        ) from error
    if (kind := filesystem_of(folder)) in _NETWORK:
        raise ConfigurationError(
            f"The state directory is on a network file system ({kind}), where SQLite is not reliable.",
            where=str(folder),
            hint="Choose a project directory on a local disk with --project.",
        )


def filesystem_of(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """Type of the file system of a directory, if the system reports it."""
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


PROJECT_ID_FILE = "project-id"
_MAX_ID_LENGTH = 200


def find_project_id(project: Path) -> str | None:
    """Id of a project, or None if it has none yet."""
    try:
        text = (project / FOLDER / PROJECT_ID_FILE).read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _id_error(project, str(error)) from error
    return text.strip()[:_MAX_ID_LENGTH] or None


def get_project_id(project: Path) -> str:
    """Id of a project, created if needed; processes that create one at the same time all get the same.

    The id is stored in the project's directory, so that it moves with it, and projects at the same path of two
    machines stay two. The setting `project_id` lets several checkouts share their runs instead.
    """
    if (known := find_project_id(project)) is not None:
        return known
    file = project / FOLDER / PROJECT_ID_FILE
    temporary = file.with_name(f".{PROJECT_ID_FILE}.{secrets.token_hex(8)}.tmp")
    try:
        prepare_folder(file.parent)
        temporary.write_text(f"{secrets.token_hex(16)}\n", encoding="utf-8")
        try:
            # Atomic, and never over the id of another process.
            os.link(temporary, file)
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
    except (OSError, ConfigurationError) as error:
        raise _id_error(project, str(error)) from error
    return find_project_id(project) or get_project_id(project)


def _id_error(project: Path, why: str) -> ToolError:
    return ToolError(
        f"Cannot store the id of the project in {project / FOLDER}: {why.rstrip('.')}.",
        code=ErrorCode.STATE_UNAVAILABLE,
        instruction="Ask the user to make the directory writable, or to set `project_id`.",
    )
