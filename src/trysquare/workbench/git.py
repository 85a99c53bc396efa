"""Git commands in the sandbox, repository paths, names of refs."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.processes.sandbox.job import Outcome, SandboxJob
from trysquare.workbench.context import WorkspaceContext
from trysquare.workbench.workspace import Workspace, walk


def git_folders(root: Path) -> list[str]:
    """Directories of the repository: `.git`, or those of a linked worktree that refers back to this one.

    A command could write a `.git` file that points to any repository, so the pointer alone is not trusted.
    """
    own = root / ".git"
    if own.is_symlink():
        raise _refused("`.git` is a link")
    if own.is_dir():
        return [str(own)]
    if own.is_file():
        return _worktree_folders(own)
    raise ToolError(
        "The workspace is not a git repository.",
        code=ErrorCode.FILE_NOT_FOUND,
        instruction="Work without git, or ask the user to create a repository.",
    )


def repository_paths(root: Path) -> list[Path]:
    """Paths of the repository's objects; empty without a repository."""
    own = root / ".git"
    if own.is_symlink() or not own.exists():
        return []
    try:
        return list(dict.fromkeys((own, *map(Path, git_folders(root)))))
    except ToolError:
        return [own]


def _worktree_folders(own: Path) -> list[str]:
    target = own.read_text(encoding="utf-8", errors="replace").strip().removeprefix("gitdir:").strip()
    folder = (own.parent / target).resolve()
    refused = _refused("`.git` points to a repository that does not refer back to this worktree")
    try:
        back = (folder / "gitdir").read_text(encoding="utf-8").strip()
        common = (folder / (folder / "commondir").read_text(encoding="utf-8").strip()).resolve()
    except OSError:
        raise refused from None
    if Path(back).resolve() != own.resolve() or not folder.is_relative_to(common):
        raise refused
    return [str(common), str(folder)]


def _refused(why: str) -> ToolError:
    return ToolError(
        f"{why}; git is not run here.",
        code=ErrorCode.FILE_NOT_ALLOWED,
        instruction="Tell the user: the workspace must be a repository or a worktree of one.",
    )


MAX_FILES = 10_000


def workspace_files(root: Path, *, most: int = MAX_FILES, hidden: Sequence[str] = ()) -> list[str]:
    """Paths of the workspace's files that are valid UTF-8, sorted, up to `most`."""
    with closing(Workspace(root, hidden)) as workspace:
        found = (each.path for each in walk(workspace) if each.is_file and _is_text(each.path))
        return [path for _, path in zip(range(most), found, strict=False)]


def workspace_branches(root: Path) -> list[str]:
    """Branches of the workspace's repository, sorted; empty without a repository."""
    try:
        common = Path(git_folders(root.resolve())[0])
    except ToolError:
        return []
    heads = common / "refs" / "heads"
    loose = {path.relative_to(heads).as_posix() for path in heads.rglob("*") if path.is_file()}
    try:
        lines = (common / "packed-refs").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(" ")[2] for line in lines)
    return sorted(loose | {name.removeprefix("refs/heads/") for name in names if name.startswith("refs/heads/")})


def _is_text(path: str) -> bool:
    return path.isprintable() and path.encode("utf-8", "replace").decode("utf-8") == path


SECONDS = 60.0
PUSH_SECONDS = 300.0
_SWITCHED_OFF = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.pager=cat", "core.quotePath=false", "color.ui=never",
    "commit.gpgSign=false", "tag.gpgSign=false", "push.gpgSign=false", "submodule.recurse=false", "gc.auto=0",
    "protocol.ext.allow=never", "diff.external=", "core.editor=true", "sequence.editor=true", "core.askPass=true",
)  # fmt: skip


def git_job(ctx: WorkspaceContext, *arguments: str, network: bool = False) -> SandboxJob:
    """Sandbox job for a git command. Paths go after `--` and are taken literally."""
    if shutil.which("git") is None:
        raise ToolError("git is not installed.", code=ErrorCode.CAPABILITY_NOT_SUPPORTED)
    options = [part for setting in _SWITCHED_OFF for part in ("-c", setting)]
    return SandboxJob(
        command=["git", "--no-pager", "--literal-pathspecs", *options, *arguments],
        seconds=PUSH_SECONDS if network else SECONDS,
        merged=False,
        environment=_environment(ctx.workspace.root),
        network=network,
        git_folders=git_folders(ctx.workspace.root),
        shows_home=network,
    )


async def run_git(ctx: WorkspaceContext, *arguments: str, network: bool = False) -> Outcome:
    """Run git; a failure is raised with git's own message."""
    return succeeded(await ctx.sandbox.run(git_job(ctx, *arguments, network=network)))


def succeeded(outcome: Outcome) -> Outcome:
    if outcome.ok:
        return outcome
    message = (outcome.errors or outcome.output).strip()
    how = "timed out" if outcome.ended == "deadline" else "failed"
    raise ToolError(f"git {how}: {message[-2_000:]}", code=ErrorCode.COMMAND_FAILED, fields={"output": outcome.output})


def _environment(root: Path) -> dict[str, str]:
    home = Path(os.environ.get("HOME") or Path.home())
    own = next((file for file in (home / ".gitconfig", home / ".config/git/config") if file.is_file()), None)
    return {
        # No repository above the workspace.
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


_NAMES = {
    "a branch, tag or commit": re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_./@{}^~+=%,#-]{0,249}"),
    # No piece may be empty, begin or end with a dot, or end with `.lock`.
    "a branch": re.compile(r"(?!.*(?:\.\.|/[./]|/$|\.(?:lock)?(?:/|$)))[A-Za-z0-9_][A-Za-z0-9_./+=%,#-]{0,199}"),
    # URLs are refused: the user approved a push to a configured remote.
    "a remote": re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}"),
}


def checked_name(given: str, what: str) -> str:
    """The name, if it is a valid one of `a branch`, `a remote` or `a branch, tag or commit`."""
    if not _NAMES[what].fullmatch(given):
        raise InvalidArguments(
            f"`{given[:80]}` is not a valid name of {what}.",
            instruction="Start with a letter or digit, as in main or v1.2.",
        )
    return given
