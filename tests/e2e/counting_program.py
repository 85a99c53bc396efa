"""Runs the `trysquare` command and says which of its source files the work since a mark passed through.

    python counting_program.py SOCKET ARGUMENT…

A byte on the socket sets the mark and is answered by the files since the one before, as one line of JSON. A file counts
when a function of it is called, in any thread; the import of a module does not.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from types import FrameType
from typing import Any

import trysquare
from trysquare.cli.main import main

SOURCE = os.path.dirname(trysquare.__file__) + os.sep
files: set[str] = set()


def watch(frame: FrameType, event: str, argument: Any) -> None:
    """Note the file of a call."""
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(SOURCE) and code.co_name != "<module>":
        files.add(code.co_filename[len(SOURCE) :])


def answer(control: socket.socket) -> None:
    """Answer every mark, until the other end is closed."""
    while control.recv(1):
        seen = sorted(files)
        files.clear()
        control.sendall(json.dumps(seen).encode() + b"\n")


if __name__ == "__main__":
    given = socket.socket(fileno=int(sys.argv[1]))
    # Started before the profile is set, so that it is not watched itself.
    threading.Thread(target=answer, args=(given,), daemon=True).start()
    threading.setprofile(watch)
    sys.setprofile(watch)
    sys.exit(main(sys.argv[2:]))
