"""Opening a path that cannot lead out of its folder, whatever anybody does to the folder meanwhile.

Checking a path first and opening it afterwards can be raced with a symbolic link. Linux resolves and checks in one
step (`openat2` with RESOLVE_BENEATH). Elsewhere each component is opened by itself without following links, which is
as safe, and only refuses links that stay inside.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from functools import cache
from typing import Any

_SYS_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08


class _OpenHow(ctypes.Structure):
    """The kernel's `struct open_how`."""

    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


def open_beneath(folder: int, path: str, flags: int, *, follow_links: bool = True) -> int:
    """Open a relative path below an open folder and return its descriptor, or raise `OSError`.

    Links that stay inside are followed, unless they are not to be: then a path is what it says, and nothing else.
    """
    # A path that goes up and comes down again would stay inside, but nobody who means well writes one.
    if not path or path.startswith("/") or "\0" in path or ".." in path.split("/"):
        raise OSError(errno.EXDEV, "not a path inside the folder")
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
        # An old kernel, or a container whose rules do not know the call. The other way is as safe.
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
        # EAGAIN: the kernel saw a rename while it resolved, and asks to be called again.
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
