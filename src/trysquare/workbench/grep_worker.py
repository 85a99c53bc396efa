"""Program that searches files for a pattern, in a process of its own so that a slow pattern can be killed.

Run as `python -I -S grep_worker.py` it reads one line of JSON and writes one line of JSON for each match, then one with
the result. Files are opened component by component below the root, never through a link. Standard library only.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from typing import Any

_CONTEXT = 100


def open_plain(folder: int, path: str) -> int | None:
    """Open a regular file without following links; None for anything else."""
    current = os.dup(folder)
    try:
        *parents, name = path.split("/")
        for piece in parents:
            following = os.open(piece, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=current)
            os.close(current)
            current = following
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=current)
    except OSError:
        return None
    finally:
        os.close(current)
    if stat.S_ISREG(os.fstat(opened).st_mode):
        return opened
    os.close(opened)
    return None


def read_text(folder: int, path: str, largest: int) -> str | None:
    """The text of a file; None if it is binary or too large."""
    opened = open_plain(folder, path)
    if opened is None:
        return None
    with os.fdopen(opened, "rb") as file:
        data = file.read(largest + 1)
    if len(data) > largest or b"\0" in data:
        return None
    return data.decode("utf-8", "replace").removeprefix("\ufeff")


def shorten(line: str, match: re.Match[str], longest: int) -> str:
    """Cut a line around its match."""
    if len(line) <= longest:
        return line
    start = max(0, match.start() - _CONTEXT)
    return ("…" if start else "") + line[start : start + longest] + "…"


def write(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")


def search(request: dict[str, Any]) -> dict[str, Any]:
    """Search the files of a request and write each match."""
    pattern = re.compile(request["pattern"], re.IGNORECASE if request["ignore_case"] else 0)
    folder = os.open(request["root"], os.O_RDONLY | os.O_DIRECTORY)
    left = request["limit"]
    for path in request["paths"]:
        text = read_text(folder, path, request["largest"])
        if text is None:
            continue
        for number, line in enumerate(text.split("\n"), 1):
            plain = line.removesuffix("\r")
            match = pattern.search(plain)
            if match is None:
                continue
            if left == 0:
                return {"more": True}
            left -= 1
            write({"path": path, "line": number, "text": shorten(plain, match, request["longest"])})
    return {"more": False}


if __name__ == "__main__":
    write(search(json.loads(sys.stdin.buffer.readline())))
