"""A program for tests: a server that starts late, once its client has sent so many messages and waits.

python late_process.py COUNT COMMAND…

The messages are not lost: the server reads them when it has started.
"""

from __future__ import annotations

import os
import subprocess
import sys


def main(count: int, command: list[str]) -> int:
    """Collect the messages, then start the server between the client and its own pipes."""
    collected = b""
    while collected.count(b"\n") < count:
        chunk = os.read(0, 65536)
        if not chunk:
            return 0
        collected += chunk
    server = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert server.stdin is not None
    with server.stdin as pipe:
        pipe.write(collected)
        pipe.flush()
        while chunk := os.read(0, 65536):
            pipe.write(chunk)
            pipe.flush()
    return server.wait()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
