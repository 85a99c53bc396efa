"""SealedFolder: a folder that files are read from and written to, and never anything outside it."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.files.beneath import open_beneath

MAX_FILE = 4 * 1024 * 1024


class PathRefused(ToolError):
    """A path that may not be used: it leads outside, or to something that is no plain file."""

    default_code = ErrorCode.VALIDATION_INVALID_PARAM


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A plain file in the folder, by its relative path."""

    path: str
    size: int
    changed_ns: int


class SealedFolder:
    """A folder held open, so that it stays the same one even if its path is replaced."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        """Let the folder go."""
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1

    def __enter__(self) -> SealedFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def read_bytes(self, path: str, *, limit: int = MAX_FILE) -> bytes:
        """The contents of a plain file, refused above a size."""
        # Non-blocking, so that a FIFO in the folder cannot make the reader wait for a writer.
        with self._opened(path, os.O_RDONLY | os.O_NONBLOCK) as descriptor:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise PathRefused(f"`{_short(path)}` is not a plain file.")
            if found.st_size > limit:
                raise PathRefused(f"`{_short(path)}` has {found.st_size:,} bytes; at most {limit:,} are read.")
            with os.fdopen(os.dup(descriptor), "rb") as file:
                # One byte more than allowed tells a file that grew meanwhile.
                data = file.read(limit + 1)
        if len(data) > limit:
            raise PathRefused(f"`{_short(path)}` has more than {limit:,} bytes.")
        return data

    def read_text(self, path: str, *, limit: int = MAX_FILE) -> str:
        """The contents of a plain UTF-8 file."""
        try:
            return self.read_bytes(path, limit=limit).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise PathRefused(f"`{_short(path)}` is not UTF-8 text (byte {error.start}).") from None

    def stat(self, path: str) -> Entry:
        """Size and time of change of a plain file."""
        with self._opened(path, os.O_RDONLY | os.O_NONBLOCK) as descriptor:
            found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise PathRefused(f"`{_short(path)}` is not a plain file.")
        return Entry(path=path, size=found.st_size, changed_ns=found.st_mtime_ns)

    def walk(self, below: str = ".", *, max_depth: int = 8) -> Iterator[Entry]:
        """Every plain file below a folder, in order of name; hidden and `_` names are left out, links not followed."""
        with self._opened(below, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
            yield from _walk(descriptor, "" if below in (".", "") else below.strip("/") + "/", max_depth)

    def folders(self, below: str = ".") -> list[str]:
        """The names of the folders directly below one, in order; hidden and `_` names are left out."""
        with self._opened(below, os.O_RDONLY | os.O_DIRECTORY) as descriptor, os.scandir(descriptor) as scan:
            found = [each.name for each in scan if each.is_dir(follow_symlinks=False)]
        return sorted(name for name in found if not name.startswith((".", "_")) and _is_text(name))

    def write_bytes(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file whole: it has the old contents or the new ones, never something between."""
        parent, name = self._parent(path)
        with self._made_folder(parent) as folder:
            temporary = f".{name[:100]}.{secrets.token_hex(6)}.tmp"
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                _remove_if_there(temporary, folder)
                raise
            os.fsync(folder)

    def remove(self, path: str) -> None:
        """Remove a file; a link is removed, never what it leads to."""
        parent, name = self._parent(path)
        with self._opened(parent or ".", os.O_RDONLY | os.O_DIRECTORY) as folder:
            try:
                os.unlink(name, dir_fd=folder)
            except OSError as error:
                raise _refusal(path, error) from None

    def _parent(self, path: str) -> tuple[str, str]:
        parent, _, name = path.rstrip("/").rpartition("/")
        if name in ("", ".", "..") or path.startswith("/") or "\0" in path:
            raise PathRefused(f"`{_short(path)}` does not name a file inside the folder.")
        return parent, name

    @contextmanager
    def _made_folder(self, path: str) -> Generator[int]:
        made = "."
        for piece in (piece for piece in path.split("/") if piece not in ("", ".")):
            with self._opened(made, os.O_RDONLY | os.O_DIRECTORY) as folder:
                try:
                    os.mkdir(piece, dir_fd=folder)
                except FileExistsError:
                    pass
                except OSError as error:
                    raise _refusal(path, error) from None
            made = f"{made}/{piece}"
        with self._opened(path or ".", os.O_RDONLY | os.O_DIRECTORY) as folder:
            yield folder

    @contextmanager
    def _opened(self, path: str, flags: int) -> Generator[int]:
        try:
            descriptor = open_beneath(self._folder, path, flags)
        except (OSError, UnicodeEncodeError, ValueError) as error:
            raise _refusal(path, error) from None
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _walk(folder: int, prefix: str, depth: int) -> Iterator[Entry]:
    with os.scandir(folder) as scan:
        found = sorted(scan, key=lambda each: each.name)
    for each in found:
        if each.name.startswith((".", "_")) or not _is_text(each.name):
            continue
        if each.is_dir(follow_symlinks=False) and depth > 1:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                below = os.open(each.name, flags, dir_fd=folder)
            except OSError:
                continue  # removed or replaced between the listing and now
            try:
                yield from _walk(below, f"{prefix}{each.name}/", depth - 1)
            finally:
                os.close(below)
        elif each.is_file(follow_symlinks=False):
            try:
                known = os.stat(each.name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                continue
            yield Entry(path=prefix + each.name, size=known.st_size, changed_ns=known.st_mtime_ns)


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _remove_if_there(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return


def _refusal(path: str, error: Exception) -> ToolError:
    code = error.errno if isinstance(error, OSError) else None
    if code in (errno.ENOENT, errno.ENOTDIR):
        return NotFound(f"There is no file `{_short(path)}`.", code=ErrorCode.RESOURCE_NOT_FOUND)
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO):
        return ToolError(f"`{_short(path)}` cannot be written: {os.strerror(code)}.", code=ErrorCode.STATE_UNAVAILABLE)
    return PathRefused(
        f"`{_short(path)}` leads outside the folder, or cannot be opened.",
        instruction="Use a path relative to the folder, without `..` and without links that leave it.",
    )


def _short(path: str) -> str:
    clean = path.encode("utf-8", "replace").decode("utf-8")
    return clean if len(clean) <= 80 else clean[:79] + "…"
