"""Grep: a program that searches files for a pattern, run by itself so that a pattern that takes forever can be ended.

Run as `python -I -S grep_program.py` it takes one line of JSON on its input and writes lines of JSON: one for each line
that matches, then one that says how it went. It imports the standard library only, so that it starts at once. Files
are opened piece by piece below the folder, and never through a link.
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
    """A plain file below an open folder, or None for anything else."""
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
    """The text of a file; None for what is no text, or too large."""
    opened = open_plain(folder, path)
    if opened is None:
        return None
    with os.fdopen(opened, "rb") as file:
        data = file.read(largest + 1)
    if len(data) > largest or b"\0" in data:
        return None
    return data.decode("utf-8", "replace").removeprefix("\ufeff")


def shorten(line: str, match: re.Match[str], longest: int) -> str:
    """The part of a line around a match."""
    if len(line) <= longest:
        return line
    start = max(0, match.start() - _CONTEXT)
    return ("…" if start else "") + line[start : start + longest] + "…"


def write(told: dict[str, Any]) -> None:
    """Write one line of JSON."""
    sys.stdout.write(json.dumps(told) + "\n")


def search(request: dict[str, Any]) -> dict[str, Any]:
    """Search the files of a request, and write what is found."""
    pattern = re.compile(request["pattern"], re.IGNORECASE if request["ignore_case"] else 0)
    folder = os.open(request["root"], os.O_RDONLY | os.O_DIRECTORY)
    left, skipped = request["limit"], 0
    for path in request["paths"]:
        text = read_text(folder, path, request["largest"])
        if text is None:
            skipped += 1
            continue
        for number, line in enumerate(text.split("\n"), 1):
            plain = line.removesuffix("\r")
            match = pattern.search(plain)
            if match is None:
                continue
            if left == 0:
                return {"more": True, "skipped": skipped}
            left -= 1
            write({"path": path, "line": number, "text": shorten(plain, match, request["longest"])})
    return {"more": False, "skipped": skipped}


if __name__ == "__main__":
    write(search(json.loads(sys.stdin.buffer.readline())))
