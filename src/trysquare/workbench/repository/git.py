"""Git: git in the sandbox, with what a repository could make it run switched off."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.workbench.bench import Bench
from trysquare.workbench.repository.repository import git_folders
from trysquare.workbench.shell.job import Job, Outcome

SECONDS = 60.0
PUSH_SECONDS = 300.0
_SWITCHED_OFF = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.pager=cat", "core.quotePath=false", "color.ui=never",
    "commit.gpgSign=false", "tag.gpgSign=false", "push.gpgSign=false", "submodule.recurse=false", "gc.auto=0",
    "protocol.ext.allow=never", "diff.external=", "core.editor=true", "sequence.editor=true", "core.askPass=true",
)  # fmt: skip


def git_job(bench: Bench, *arguments: str, network: bool = False) -> Job:
    """Git with these arguments. Paths among them must come after `--`; they are taken literally."""
    if shutil.which("git") is None:
        raise ToolError("git is not installed.", code=ErrorCode.CAPABILITY_NOT_SUPPORTED)
    options = [part for setting in _SWITCHED_OFF for part in ("-c", setting)]
    return Job(
        command=["git", "--no-pager", "--literal-pathspecs", *options, *arguments],
        seconds=PUSH_SECONDS if network else SECONDS,
        merged=False,
        environment=_environment(bench.workspace.root),
        network=network,
        git_folders=git_folders(bench.workspace.root),
        shows_home=network,
    )


async def run_git(bench: Bench, *arguments: str, network: bool = False) -> Outcome:
    """Run git, and raise what it says where it fails."""
    return succeeded(await bench.sandbox.run(git_job(bench, *arguments, network=network)))


def succeeded(outcome: Outcome) -> Outcome:
    """The outcome, or its failure in git's own words."""
    if outcome.ok:
        return outcome
    said = (outcome.errors or outcome.output).strip()
    how = "took too long" if outcome.ended == "deadline" else "failed"
    raise ToolError(f"git {how}: {said[-2_000:]}", code=ErrorCode.COMMAND_FAILED, fields={"output": outcome.output})


def _environment(root: Path) -> dict[str, str]:
    home = Path(os.environ.get("HOME") or Path.home())
    own = next((file for file in (home / ".gitconfig", home / ".config/git/config") if file.is_file()), None)
    return {
        # Never a repository above the workspace.
        "GIT_CEILING_DIRECTORIES": str(root.parent),
        "GIT_DISCOVERY_ACROSS_FILESYSTEM": "1",
        "GIT_EDITOR": "true",
        "GIT_ASKPASS": "true",
        "SSH_ASKPASS": "true",
        "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
        "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file",
        "GIT_OPTIONAL_LOCKS": "0",
        **({"GIT_CONFIG_GLOBAL": str(own)} if own is not None else {}),
    }
