"""DirectoryRoot: reads and writes that cannot leave a directory.

Checking a path before opening it can be raced with a symbolic link. Linux resolves and checks in one step (`openat2`
with RESOLVE_BENEATH). Elsewhere each component is opened without following links, which is as safe, and also refuses
links that stay inside.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import stat
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.files.watch import Entry, FolderStates, entries_below, entry_of, folder_state, is_listed

_SYS_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08


class _OpenHow(ctypes.Structure):
    """The kernel's `struct open_how`."""

    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


def open_beneath(folder: int, path: str, flags: int, *, follow_links: bool = True) -> int:
    """Open a relative path below an open directory; raises `OSError`. Links that stay inside may be followed."""
    # `..` is refused even where the path would stay inside.
    if not path or path.startswith("/") or "\0" in path or ".." in path.split("/"):
        raise OSError(errno.EXDEV, "not a path inside the directory")
    if _has_openat2():
        return _openat2(folder, path, flags | os.O_CLOEXEC, follow_links=follow_links)
    return _open_by_components(folder, path, flags | os.O_CLOEXEC)


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


@cache
def _has_openat2() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    probe = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(_openat2(probe, ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, follow_links=True))
    except OSError:
        # An old kernel, or a container that blocks the call. The fallback is as safe.
        return False
    finally:
        os.close(probe)
    return True


def _openat2(folder: int, path: str, flags: int, *, follow_links: bool) -> int:
    links = _RESOLVE_NO_MAGICLINKS if follow_links else _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS
    how = _OpenHow(flags=flags, mode=0, resolve=_RESOLVE_BENEATH | links)
    encoded, code = os.fsencode(path), 0
    for _ in range(64):
        opened = _libc().syscall(_SYS_OPENAT2, folder, encoded, ctypes.byref(how), ctypes.sizeof(how))
        if opened >= 0:
            return int(opened)
        code = ctypes.get_errno()
        # EAGAIN: a rename happened during the resolution.
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(code, os.strerror(code), path)


def _open_by_components(folder: int, path: str, flags: int) -> int:
    pieces = [piece for piece in path.split("/") if piece not in ("", ".")]
    if path.endswith(("/", "/.")):
        flags |= os.O_DIRECTORY
    current = os.dup(folder)
    try:
        for piece in pieces[:-1]:
            following = os.open(piece, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
            os.close(current)
            current = following
        return os.open(pieces[-1] if pieces else ".", flags | os.O_NOFOLLOW, dir_fd=current)
    finally:
        os.close(current)


MAX_FILE = 4 * 1024 * 1024
MAX_LEVELS = 32
MAX_NAME = 255
_TEMPORARY_NAME = 40
_ATTRIBUTES_ONLY = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY

Pieces: TypeAlias = Sequence[bytes | bytearray]


class PathNotAllowed(ToolError):
    """A path that leads outside, or not to a regular file."""

    default_code = ErrorCode.VALIDATION_INVALID_PARAM


class _OpenDirectory:
    """An open directory, closed with its last user, so that its descriptor is never used after that."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


class DirectoryRoot:
    """A directory that stays open, so that it is the same one even if its path is replaced.

    Links that stay inside are followed. Without `follow_links` a denied name cannot be reached by another one.
    """

    def __init__(self, root: Path, *, follow_links: bool = True) -> None:
        self.root = root
        self._follow_links = follow_links
        self._open: _OpenDirectory | None = _OpenDirectory(os.open(root, _FOLDER | os.O_CLOEXEC))

    def close(self) -> None:
        """Close the directory; operations in progress complete."""
        self._open = None

    def __enter__(self) -> DirectoryRoot:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def is_at_its_path(self) -> bool:
        """Whether the path still leads to this directory."""
        try:
            there = os.stat(self.root)
        except OSError:
            return False
        here = os.fstat(self._folder().number)
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def read_bytes(self, path: str, *, limit: int = MAX_FILE) -> bytes:
        """Read a regular file, refused above a size."""
        # Non-blocking, so that a FIFO does not wait for a writer.
        with self._opened(path, os.O_RDONLY | os.O_NONBLOCK) as descriptor:
            size = _regular(path, descriptor).size
            if size > limit:
                raise PathNotAllowed(f"`{_short(path)}` has {size:,} bytes; at most {limit:,} are read.")
            with _refusals(path), os.fdopen(descriptor, "rb", closefd=False) as file:
                # One byte more than allowed detects a file that grew meanwhile.
                data = file.read(limit + 1)
        if len(data) > limit:
            raise PathNotAllowed(f"`{_short(path)}` has more than {limit:,} bytes.")
        return data

    def read_text(self, path: str, *, limit: int = MAX_FILE) -> str:
        try:
            return self.read_bytes(path, limit=limit).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise PathNotAllowed(f"`{_short(path)}` is not UTF-8 text (byte {error.start}).") from None

    def stat(self, path: str) -> Entry:
        """Size and times of a regular file."""
        with self._opened(path, _ATTRIBUTES_ONLY) as descriptor:
            return _regular(path, descriptor)

    def folder_state(self, path: str = ".") -> tuple[int, ...]:
        """State of a directory, which changes when an entry is added, removed or renamed."""
        with self._opened(path, _ATTRIBUTES_ONLY | os.O_DIRECTORY) as descriptor:
            return folder_state(os.fstat(descriptor))

    def walk(
        self,
        below: str = ".",
        *,
        max_depth: int = 8,
        visited: FolderStates | None = None,
        skipped: dict[str, str] | None = None,
    ) -> Iterator[Entry]:
        """Regular files below a directory, by name, without hidden and `_` names and without following links.

        `visited` receives the state of every directory as it was before it was read, `skipped` what was left out and
        why.
        """
        pieces = [piece for piece in below.split("/") if piece not in ("", ".")]
        with self._opened(below, _FOLDER) as descriptor:
            yield from entries_below(
                descriptor,
                "/".join(pieces),
                max_depth=max_depth,
                visited={} if visited is None else visited,
                skipped=skipped,
            )

    def folders(self, below: str = ".") -> list[str]:
        """Names of the directories directly below one, without hidden and `_` names."""
        with self._opened(below, _FOLDER) as descriptor, os.scandir(descriptor) as scan:
            return sorted(each.name for each in scan if is_listed(each.name) and each.is_dir(follow_symlinks=False))

    def open_folder(self, path: str = ".") -> AbstractContextManager[int]:
        """Open a directory inside; the descriptor is valid for the block."""
        return self._opened(path, _FOLDER)

    def write_bytes(
        self, path: str, data: bytes | Pieces, *, mode: int = 0o644, modified_ns: int | None = None
    ) -> None:
        """Write a file atomically. An existing file keeps its permissions; a link is replaced, not followed."""
        parent, name = _split_path(path)
        with self._create_folder(parent) as folder, _refusals(path):
            _replace(folder, name, data, mode, modified_ns)

    def remove(self, path: str) -> None:
        """Remove a file; a link is removed, not followed."""
        parent, name = _split_path(path)
        with self._opened(parent or ".", _FOLDER) as folder, _refusals(path):
            os.unlink(name, dir_fd=folder)
            os.fsync(folder)

    @contextmanager
    def _create_folder(self, path: str) -> Generator[int]:
        made = "."
        for piece in (piece for piece in path.split("/") if piece not in ("", ".")):
            with self._opened(made, _FOLDER) as folder, _refusals(path), suppress(FileExistsError):
                os.mkdir(piece, dir_fd=folder)
            made = f"{made}/{piece}"
        with self._opened(path or ".", _FOLDER) as folder:
            yield folder

    def _folder(self) -> _OpenDirectory:
        if self._open is None:
            raise ToolError(f"{self.root} is closed.", code=ErrorCode.STATE_UNAVAILABLE)
        return self._open

    @contextmanager
    def _opened(self, path: str, flags: int) -> Generator[int]:
        root = self._folder()
        with _refusals(path):
            descriptor = open_beneath(root.number, path, flags, follow_links=self._follow_links)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _regular(path: str, descriptor: int) -> Entry:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise PathNotAllowed(f"`{_short(path)}` is not a regular file.")
    return entry_of(path, found)


def _split_path(path: str) -> tuple[str, str]:
    """Directory and name of a path to write or remove; refused before anything is created."""
    parent, _, name = path.rpartition("/")
    if name in ("", ".", "..") or path.startswith("/") or "\0" in path or ".." in parent.split("/"):
        raise PathNotAllowed(f"`{_short(path)}` does not name a file inside the directory.")
    if path.encode("utf-8", "replace").decode("utf-8") != path:
        raise PathNotAllowed(f"`{_short(path)}` is not valid UTF-8.")
    if path.count("/") > MAX_LEVELS or any(len(piece.encode()) > MAX_NAME for piece in path.split("/")):
        raise PathNotAllowed(
            f"`{_short(path)}` is too long: at most {MAX_LEVELS} directories and {MAX_NAME} bytes per name."
        )
    return parent, name


def _replace(folder: int, name: str, data: bytes | Pieces, mode: int, modified_ns: int | None) -> None:
    # Part of the name, to identify what a killed process left.
    temporary = f".{name[:_TEMPORARY_NAME]}.{secrets.token_hex(8)}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _copy_permissions(file.fileno(), folder, name)
            for piece in (data,) if isinstance(data, bytes) else data:
                file.write(piece)
            file.flush()
            if modified_ns is not None:
                os.utime(file.fileno(), ns=(modified_ns, modified_ns))
            os.fsync(file.fileno())
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)


def _copy_permissions(descriptor: int, folder: int, name: str) -> None:
    try:
        existing = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISREG(existing.st_mode):
        os.fchmod(descriptor, stat.S_IMODE(existing.st_mode) & 0o777)


@contextmanager
def _refusals(path: str) -> Generator[None]:
    """Errors of the system during the block, as errors about a path."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise _refusal(path, error) from None


def _refusal(path: str, error: Exception) -> ToolError:
    code = error.errno if isinstance(error, OSError) else None
    if code in (errno.ENOENT, errno.ENOTDIR):
        return NotFound(f"File not found: `{_short(path)}`.", code=ErrorCode.RESOURCE_NOT_FOUND)
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE):
        return ToolError(f"`{_short(path)}` cannot be used: {os.strerror(code)}.", code=ErrorCode.STATE_UNAVAILABLE)
    return PathNotAllowed(
        f"`{_short(path)}` leads outside the directory, or cannot be opened.",
        instruction="Use a path relative to the directory, without `..` and without links that leave it.",
    )


def _short(path: str) -> str:
    clean = path.encode("utf-8", "replace").decode("utf-8")
    return clean if len(clean) <= 80 else clean[:79] + "…"
