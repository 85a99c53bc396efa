"""Sandbox jobs, their environment, and paths with secrets."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

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


def secret_paths(env: Mapping[str, str] = os.environ) -> list[Path]:
    """Paths with secrets of the user and the system; some may not exist."""
    home = Path(env.get("HOME") or Path.home())
    return [*(home / name for name in _HOME_SECRETS), *(Path(name) for name in _SYSTEM_SECRETS)]


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
    writes: bool = True
    """Whether it may write the root; without it, only its own temporary directory."""
    reads_input: bool = False
    """Whether it gets the standard input of the process that starts it."""
    memory_bytes: int = 8 * 1024 * 1024 * 1024
    """Memory that is only reserved, as by Node, does not count."""
    file_bytes: int = 1024 * 1024 * 1024
    """The largest file that it can write, also as its output."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Confinement:
    """What surrounds a job: its working directory, and what it cannot see or change there."""

    root: Path
    hidden: Sequence[Path] = ()
    protected: frozenset[str] = frozenset({".git"})
    """Entries of the root that no job writes."""
    readable: Sequence[Path] = ()
    """Further directories to read, where the system's own do not contain them."""
    processes: int = 512

    def kept(self) -> list[Path]:
        """The protected entries that exist and are not hidden."""
        paths = (self.root / name for name in sorted(self.protected))
        return [path for path in paths if path.exists() and not path.is_symlink() and path not in self.hidden]


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
