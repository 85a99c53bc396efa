"""Repository: where git keeps its own files for a workspace, and which of them may be written."""

from __future__ import annotations

from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError


def git_folders(root: Path) -> list[str]:
    """The folders of git that belong to the workspace: `.git`, or those of a linked worktree that names it back.

    A command could write a file `.git` that leads to any repository of the user, so a lead alone does not count.
    """
    own = root / ".git"
    if own.is_symlink():
        raise _refused("`.git` is a link")
    if own.is_dir():
        return [str(own)]
    if own.is_file():
        return _of_worktree(own)
    raise ToolError(
        "The workspace is no git repository.",
        code=ErrorCode.FILE_NOT_FOUND,
        instruction="Do without git, or ask the person to make a repository.",
    )


def repository_places(root: Path) -> list[Path]:
    """Where the objects of a workspace's repository lie, as far as that can be told; none without a repository."""
    own = root / ".git"
    if own.is_symlink() or not own.exists():
        return []
    try:
        return list(dict.fromkeys((own, *map(Path, git_folders(root)))))
    except ToolError:
        return [own]


def _of_worktree(own: Path) -> list[str]:
    lead = own.read_text(encoding="utf-8", errors="replace").strip().removeprefix("gitdir:").strip()
    folder = (own.parent / lead).resolve()
    try:
        named_back = (folder / "gitdir").read_text(encoding="utf-8").strip()
        common = (folder / (folder / "commondir").read_text(encoding="utf-8").strip()).resolve()
    except OSError:
        raise _refused("`.git` leads to a repository that does not know this worktree") from None
    if Path(named_back).resolve() != own.resolve() or not folder.is_relative_to(common):
        raise _refused("`.git` leads to a repository that does not know this worktree")
    return [str(common), str(folder)]


def _refused(why: str) -> ToolError:
    return ToolError(
        f"{why}, so git is not run here.",
        code=ErrorCode.FILE_NOT_ALLOWED,
        instruction="Tell the person: the workspace must be a repository or a worktree of one.",
    )
