"""A copy of a project, for agents that may run things in it and may change nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from trysquare.core.errors import ConfigurationError
from trysquare.core.threads import run_in_thread
from trysquare.files.globs import is_under

SKIPPED = frozenset(
    {".trysquare", ".venv", "venv", "node_modules", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache",
     ".tox", ".nox"}
)  # fmt: skip
"""What is made again by whoever needs it, or is nobody's business in a copy."""
MOST_FILES = 100_000
MOST_BYTES = 2 * 1024**3


@asynccontextmanager
async def working_copy(root: Path, *, without: Sequence[str] = ()) -> AsyncGenerator[Path]:
    """A copy of a folder, without the paths that fit a pattern, that is gone when the block is left."""
    base = Path(await run_in_thread(lambda: tempfile.mkdtemp(prefix="trysquare-copy-")))
    try:
        yield await run_in_thread(lambda: _copied(root, base / (root.name or "project"), without))
    finally:
        await run_in_thread(lambda: shutil.rmtree(base, ignore_errors=True))


def _copied(root: Path, target: Path, without: Sequence[str]) -> Path:
    _require_small(root)

    def left_out(folder: str, names: list[str]) -> set[str]:
        inside = Path(folder).relative_to(root)
        hidden = {name for name in names if without and is_under((inside / name).as_posix(), without)}
        return _skipped(folder, names) | hidden

    # Links are copied as links: what they lead to outside is not made a part of the copy.
    shutil.copytree(root, target, symlinks=True, ignore=left_out)
    pointer = target / ".git"
    if pointer.is_file():
        # A worktree's `.git` leads back to the repository of the original, where a command could leave traces.
        pointer.unlink()
    return target


def _skipped(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name in SKIPPED or not _is_plain(os.path.join(folder, name))}


def _is_plain(path: str) -> bool:
    """Whether a path is something that can be copied: no socket, pipe or device."""
    return os.path.islink(path) or os.path.isfile(path) or os.path.isdir(path)


def _require_small(root: Path) -> None:
    files = size = 0
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED]
        files += len(names)
        size += sum(os.lstat(os.path.join(folder, name)).st_size for name in names)
        if files > MOST_FILES or size > MOST_BYTES:
            raise ConfigurationError(
                f"the project has more than {MOST_FILES:,} files or {MOST_BYTES // 1024**3} GB, too much for a copy.",
                where=str(root),
                hint="Name a smaller folder with --project.",
            )
