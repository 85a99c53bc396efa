"""Paths that want out of a folder, of the kinds that advisories on content servers tell of."""

from __future__ import annotations

import os
import socket
from pathlib import Path

SECRET = "the secret outside"

TRAVERSALS: list[str] = [
    # Going up, plainly and in disguise.
    "..", "../", "../secret.md", "../../secret.md", "a/../../secret.md", "a/b/../../../secret.md", "./../secret.md",
    "a/./../../secret.md", ".//..//secret.md", "a//..//..//secret.md", "../" * 40 + "etc/passwd", "a/..", "a/../b.md",
    "../outside/secret.md", "..//secret.md", "../inside-sibling/secret.md", "a/../../inside/../secret.md",
    # Absolute paths and other roots.
    "/", "/etc/passwd", "//etc/passwd", "///etc/passwd", "/proc/self/environ", "/dev/zero",
    "/proc/self/root/etc/passwd",
    "~/secret.md", "~root/secret.md", "file:///etc/passwd", "$HOME/secret.md", "C:\\Windows\\win.ini", "C:/secret.md",
    "\\\\server\\share\\secret.md", "\\\\?\\C:\\secret.md",
    # Other separators.
    "..\\secret.md", "..\\..\\secret.md", "a\\..\\..\\secret.md", "../\\secret.md", "..\\/secret.md", "....//secret.md",
    "....\\\\secret.md", "..;/secret.md", "..|secret.md",
    # Encoded once, twice, overlong and wrongly.
    "%2e%2e/secret.md", "%2e%2e%2fsecret.md", "..%2fsecret.md", "..%5csecret.md", "%252e%252e%252fsecret.md",
    "%c0%ae%c0%ae/secret.md", "..%c0%afsecret.md", "%uff0e%uff0e/secret.md", "&#46;&#46;/secret.md", "..%00/secret.md",
    "..%ef%bc%8fsecret.md", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "\\u002e\\u002e/secret.md",
    # Letters that look like dots and slashes, or become them in some normal form.
    "\uff0e\uff0e/secret.md", "\uff0e\uff0e\uff0fsecret.md", "..\uff0fsecret.md", "..\u2215secret.md",
    "..\u2044secret.md",
    "\u2024\u2024/secret.md", "\u2025/secret.md", "..\u29f8secret.md", "\u3002\u3002/secret.md", "..\ufe68secret.md",
    # Letters that are not seen, or end a text elsewhere.
    "../secret.md\0", "\0../secret.md", "a\0/../../secret.md", "b.md\0.png", "..\u200b/secret.md", "\u200b../secret.md",
    ".\u200d./secret.md", "\ufeff../secret.md", "\u202e../secret.md", "..\u00ad/secret.md", "..\r\n/secret.md",
    "..\t/secret.md", " ../secret.md", ".. /secret.md", "../secret.md ", "../secret.md.", ".../secret.md",
    "..../secret.md",
    "..\udcff/secret.md", "\ud800/secret.md",
    # What systems give a meaning of its own.
    "proc/self/root", "dev/fd/0", "secret.md::$DATA", "b.md:stream", "CON", "aux.md", "b.md/.", "b.md/..",
    "b.md/../secret.md",
    "B.MD/../../secret.md", "a" * 300, "a/" * 3_000 + "b.md", "../" * 3_000, "",
]  # fmt: skip

LINKS: list[str] = [
    "to_file.md", "to_file_relative.md", "to_folder/secret.md", "to_folder_relative/secret.md", "to_parent/secret.md",
    "to_root/etc/passwd", "to_proc/environ", "to_proc_root/etc/passwd", "chain.md", "a/deep_link.md", "a/up/secret.md",
    "dangling.md", "loop.md", "loop_one.md", "loop_folder/x.md", "to_folder/../secret.md", "to_self/../secret.md",
    "to_fd.md", "to_cwd/secret.md",
]  # fmt: skip
SPECIALS: list[str] = ["fifo.md", "socket.md", "folder.md"]


def make_stage(base: Path) -> Path:
    """A folder full of traps beside what it must not give away. Returns the folder."""
    inside = base / "inside"
    for folder in (inside / "a" / "b", inside / "folder.md", base / "outside", base / "inside-sibling"):
        folder.mkdir(parents=True)
    for secret in (base / "secret.md", base / "outside" / "secret.md", base / "inside-sibling" / "secret.md"):
        secret.write_text(SECRET)
    (inside / "b.md").write_text("inside")
    (inside / "a" / "c.md").write_text("inside too")
    _make_links(base, inside)
    os.mkfifo(inside / "fifo.md")
    # A socket's path may have about a hundred characters, which a test's own folder can exceed.
    descriptor = os.open(inside, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{descriptor}/socket.md")
    finally:
        os.close(descriptor)
    return inside


def _make_links(base: Path, inside: Path) -> None:
    targets = {
        "to_file.md": base / "secret.md", "to_file_relative.md": Path("../secret.md"), "to_folder": base / "outside",
        "to_folder_relative": Path("../outside"), "to_parent": Path(".."), "to_root": Path("/"),
        "to_proc": Path("/proc/self"), "to_proc_root": Path("/proc/self/root"), "chain.md": Path("to_file.md"),
        "a/deep_link.md": Path("../../secret.md"), "a/up": Path("../.."), "dangling.md": base / "nowhere.md",
        "loop.md": Path("loop.md"), "loop_one.md": Path("loop_two.md"), "loop_two.md": Path("loop_one.md"),
        "loop_folder": Path("."), "to_self": Path("a"), "to_fd.md": Path("/proc/self/fd/0"),
        "to_cwd": Path("/proc/self/cwd"), "within.md": Path("b.md"),
    }  # fmt: skip
    for name, target in targets.items():
        (inside / name).symlink_to(target)
