"""Git repositories of the tests: real ones, without the configuration of whoever runs them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def git(folder: Path, *words: str, fails: bool = False) -> str:
    """Run git in a folder; with `fails` it may end with an error, as a merge with conflicts does."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_EDITOR": "true",
    }  # fmt: skip
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ["git", *settings, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert fails or done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "work")
