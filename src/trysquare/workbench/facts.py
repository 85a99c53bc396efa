"""Facts: the files and branches that there are, for those who narrow what a model can name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trysquare.core.errors import ToolError
from trysquare.workbench.repository.repository import git_folders
from trysquare.workbench.tree import walk
from trysquare.workbench.workspace import Workspace

MOST_FILES = 10_000


def workspace_files(root: Path, *, most: int = MOST_FILES, hidden: Sequence[str] = ()) -> list[str]:
    """The files of a workspace that have a name in UTF-8, in order, up to a number."""
    workspace = Workspace(root, hidden)
    try:
        found = (each.path for each in walk(workspace) if each.is_file and _is_text(each.path))
        return [path for _, path in zip(range(most), found, strict=False)]
    finally:
        workspace.close()


def workspace_branches(root: Path) -> list[str]:
    """The branches of the workspace's repository, in order; none where there is no repository."""
    try:
        common = Path(git_folders(root.resolve())[0])
    except ToolError:
        return []
    heads = common / "refs" / "heads"
    loose = {path.relative_to(heads).as_posix() for path in heads.rglob("*") if path.is_file()}
    return sorted(loose | _packed(common / "packed-refs"))


def _packed(file: Path) -> set[str]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    names = (line.partition(" ")[2] for line in lines)
    return {name.removeprefix("refs/heads/") for name in names if name.startswith("refs/heads/")}


def _is_text(path: str) -> bool:
    return path.isprintable() and path.encode("utf-8", "replace").decode("utf-8") == path
