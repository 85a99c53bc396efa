"""SealedFolder: a folder that files are read from and written to, and never anything outside it."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.files.beneath import open_beneath
from trysquare.files.entries import Entry, FolderStates, entries_below, entry_of, folder_state, is_listed

MAX_FILE = 4 * 1024 * 1024
MAX_LEVELS = 32
MAX_NAME = 255
_SHOWN_OF_NAME = 40
_ATTRIBUTES_ONLY = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
"""Looking at a file does not need to open it for reading, where the system can part the two."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY

Pieces: TypeAlias = Sequence[bytes | bytearray]
"""Bytes that follow one another."""


class PathRefused(ToolError):
    """A path that may not be used: it leads outside, or to something that is no plain file."""

    default_code = ErrorCode.VALIDATION_INVALID_PARAM


class _Held:
    """An open folder. It is closed when the last one who uses it is done, so that no number is used after its time."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


class SealedFolder:
    """A folder held open, so that it stays the same one even if its path is replaced.

    Links that stay inside are followed. A folder that follows none takes every path for what it says, so that a name
    which is not to be touched cannot be reached by another one.
    """

    def __init__(self, root: Path, *, follow_links: bool = True) -> None:
        self.root = root
        self._follow_links = follow_links
        self._held: _Held | None = _Held(os.open(root, _FOLDER | os.O_CLOEXEC))

    def close(self) -> None:
        """Let the folder go. What is being read from it meanwhile is still read."""
        self._held = None

    def __enter__(self) -> SealedFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def is_at_its_path(self) -> bool:
        """Whether the path still leads to this folder, and not to none or to another one."""
        try:
            there = os.stat(self.root)
        except OSError:
            return False
        here = os.fstat(self._folder().number)
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def read_bytes(self, path: str, *, limit: int = MAX_FILE) -> bytes:
        """The contents of a plain file, refused above a size."""
        # Non-blocking, so that a FIFO in the folder cannot make the reader wait for a writer.
        with self._opened(path, os.O_RDONLY | os.O_NONBLOCK) as descriptor:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise PathRefused(f"`{_short(path)}` is not a plain file.")
            if found.st_size > limit:
                raise PathRefused(f"`{_short(path)}` has {found.st_size:,} bytes; at most {limit:,} are read.")
            try:
                with os.fdopen(descriptor, "rb", closefd=False) as file:
                    # One byte more than allowed tells a file that grew meanwhile.
                    data = file.read(limit + 1)
            except OSError as error:
                raise _refusal(path, error) from None
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
        """Size and times of a plain file."""
        with self._opened(path, _ATTRIBUTES_ONLY) as descriptor:
            found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise PathRefused(f"`{_short(path)}` is not a plain file.")
        return entry_of(path, found)

    def folder_state(self, path: str = ".") -> tuple[int, ...]:
        """Numbers that differ once a file or folder directly below a folder came, went or changed its name."""
        with self._opened(path, _ATTRIBUTES_ONLY | os.O_DIRECTORY) as descriptor:
            return folder_state(os.fstat(descriptor))

    def walk(self, below: str = ".", *, max_depth: int = 8, visited: FolderStates | None = None) -> Iterator[Entry]:
        """Every plain file below a folder, in order of name; hidden and `_` names are left out, links not followed.

        `visited` receives the state of every folder that was looked into, as it was before the look.
        """
        pieces = [piece for piece in below.split("/") if piece not in ("", ".")]
        with self._opened(below, _FOLDER) as descriptor:
            yield from entries_below(
                descriptor, "/".join(pieces), max_depth=max_depth, visited={} if visited is None else visited
            )

    def folders(self, below: str = ".") -> list[str]:
        """The names of the folders directly below one, in order; hidden and `_` names are left out."""
        with self._opened(below, _FOLDER) as descriptor, os.scandir(descriptor) as scan:
            return sorted(each.name for each in scan if is_listed(each.name) and each.is_dir(follow_symlinks=False))

    @contextmanager
    def open_folder(self, path: str = ".") -> Generator[int]:
        """A folder inside, as an open descriptor that is good for the block."""
        with self._opened(path, _FOLDER) as descriptor:
            yield descriptor

    def write_bytes(
        self, path: str, data: bytes | Pieces, *, mode: int = 0o644, modified_ns: int | None = None
    ) -> None:
        """Write a file whole: it has the old contents or the new ones, never something between.

        A file that is there keeps its permissions; a link in its place is replaced, and what it led to stays as it was.
        Long contents may come in pieces. `modified_ns` is the time of change that the file is to show, where it is not
        the present one.
        """
        parent, name = _parted(path)
        with self._made_folder(parent) as folder:
            try:
                _replace(folder, name, data, mode, modified_ns)
            except OSError as error:
                raise _refusal(path, error) from None

    def remove(self, path: str) -> None:
        """Remove a file; a link is removed, never what it leads to."""
        parent, name = _parted(path)
        with self._opened(parent or ".", _FOLDER) as folder:
            try:
                os.unlink(name, dir_fd=folder)
                os.fsync(folder)
            except OSError as error:
                raise _refusal(path, error) from None

    @contextmanager
    def _made_folder(self, path: str) -> Generator[int]:
        made = "."
        for piece in (piece for piece in path.split("/") if piece not in ("", ".")):
            with self._opened(made, _FOLDER) as folder:
                try:
                    os.mkdir(piece, dir_fd=folder)
                except FileExistsError:
                    pass
                except OSError as error:
                    raise _refusal(path, error) from None
            made = f"{made}/{piece}"
        with self._opened(path or ".", _FOLDER) as folder:
            yield folder

    def _folder(self) -> _Held:
        if self._held is None:
            raise ToolError(f"{self.root} is closed.", code=ErrorCode.STATE_UNAVAILABLE)
        return self._held

    @contextmanager
    def _opened(self, path: str, flags: int) -> Generator[int]:
        held = self._folder()
        try:
            descriptor = open_beneath(held.number, path, flags, follow_links=self._follow_links)
        except (OSError, ValueError) as error:
            raise _refusal(path, error) from None
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _parted(path: str) -> tuple[str, str]:
    """The folder and the name of a path that is to be written or removed. Refused before anything is made."""
    parent, _, name = path.rpartition("/")
    if name in ("", ".", "..") or path.startswith("/") or "\0" in path or ".." in parent.split("/"):
        raise PathRefused(f"`{_short(path)}` does not name a file inside the folder.")
    if not _is_utf8(path):
        raise PathRefused(f"`{_short(path)}` is not a name in UTF-8.")
    if path.count("/") > MAX_LEVELS or any(len(piece.encode()) > MAX_NAME for piece in path.split("/")):
        raise PathRefused(
            f"`{_short(path)}` is too long: {MAX_LEVELS} folders and {MAX_NAME} bytes a name are allowed."
        )
    return parent, name


def _replace(folder: int, name: str, data: bytes | Pieces, mode: int, modified_ns: int | None) -> None:
    # Part of the name, so that whoever finds what a killed process left knows whose it is.
    temporary = f".{name[:_SHOWN_OF_NAME]}.{secrets.token_hex(8)}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _keep_permissions(file.fileno(), folder, name)
            for piece in (data,) if isinstance(data, bytes) else data:
                file.write(piece)
            file.flush()
            if modified_ns is not None:
                os.utime(file.fileno(), ns=(modified_ns, modified_ns))
            os.fsync(file.fileno())
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        _remove_if_there(temporary, folder)
        raise
    os.fsync(folder)


def _keep_permissions(descriptor: int, folder: int, name: str) -> None:
    try:
        existing = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISREG(existing.st_mode):
        os.fchmod(descriptor, stat.S_IMODE(existing.st_mode) & 0o777)


def _remove_if_there(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return


def _refusal(path: str, error: Exception) -> ToolError:
    code = error.errno if isinstance(error, OSError) else None
    if code in (errno.ENOENT, errno.ENOTDIR):
        return NotFound(f"There is no file `{_short(path)}`.", code=ErrorCode.RESOURCE_NOT_FOUND)
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE):
        return ToolError(f"`{_short(path)}` cannot be used: {os.strerror(code)}.", code=ErrorCode.STATE_UNAVAILABLE)
    return PathRefused(
        f"`{_short(path)}` leads outside the folder, or cannot be opened.",
        instruction="Use a path relative to the folder, without `..` and without links that leave it.",
    )


def _is_utf8(text: str) -> bool:
    return text.isascii() or text.encode("utf-8", "replace").decode("utf-8") == text


def _short(path: str) -> str:
    clean = path.encode("utf-8", "replace").decode("utf-8")
    return clean if len(clean) <= 80 else clean[:79] + "…"
