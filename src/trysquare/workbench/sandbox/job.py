"""Sandbox jobs, their environment, hidden paths."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.files.globs import is_under
from trysquare.store import user_state
from trysquare.store.location import FOLDER
from trysquare.workbench.workspace import PROTECTED

PASSED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL")
HOME = "/tmp/home"
"""Home of a command, in the sandbox's own /tmp: empty, and removed with it."""


def clean_environment(own: Mapping[str, str] = os.environ, *, passed: Sequence[str] = ()) -> dict[str, str]:
    env = {name: own[name] for name in (*PASSED, *passed) if name in own}
    # A relative directory would be another one wherever a command runs.
    absolute = [path for path in env.get("PATH", "").split(os.pathsep) if path.startswith("/")]
    env["PATH"] = os.pathsep.join(absolute) or os.defpath
    return {**env, "TERM": "dumb", "NO_COLOR": "1", "GIT_TERMINAL_PROMPT": "0"}


_HOME_SECRETS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".npmrc", ".pypirc",
    ".password-store", ".config/gcloud", ".config/gh", ".config/git/credentials", ".config/trysquare",
    ".local/share/keyrings", ".mozilla", ".config/google-chrome", ".config/chromium", ".bash_history",
    ".zsh_history", ".python_history", ".vault-token", ".cargo/credentials.toml", ".terraform.d",
)  # fmt: skip
_SYSTEM_SECRETS = ("/etc/shadow", "/etc/gshadow", "/etc/ssh", "/etc/sudoers", "/run/secrets", "/var/run/secrets")


MAX_SCANNED = 200_000


def hidden_paths(root: Path, project: Path | None, env: Mapping[str, str] = os.environ) -> list[Path]:
    """Existing paths with secrets of the user, the system and Trysquare's own state."""
    home = Path(env.get("HOME") or Path.home())
    paths = [home / name for name in _HOME_SECRETS] + [Path(name) for name in _SYSTEM_SECRETS]
    paths += [user_state(env).parent, root / FOLDER]
    if project is not None:
        paths.append(project.resolve() / FOLDER)
    return [path for path in dict.fromkeys(paths) if path.exists() and not path.is_symlink()]


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


Ended: TypeAlias = Literal["exit", "deadline", "output", "processes"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxJob:
    """A command and what it may do besides reading."""

    command: Sequence[str]
    seconds: float
    merged: bool = True
    """Whether stderr goes to stdout, in the order written."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    network: bool = False
    git_folders: Sequence[str] = ()
    """Directories of the repository that may be written, except what makes git run programs."""
    shows_home: bool = False
    """Whether it may read the user's home with its secrets, as a push does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a command ended, and its bounded output."""

    status: int | None
    ended: Ended
    output: str
    errors: str = ""
    left_out: int = 0
    """Bytes of output that were dropped."""

    @property
    def ok(self) -> bool:
        return self.ended == "exit" and self.status == 0
