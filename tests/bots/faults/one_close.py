"""Processes that make one close under the key `k` and acknowledge it, to be killed or failed at any of their writes.

For each project that is read from the input, a child is forked off and stops, so that it can be traced from its first
call on. Everything is imported before, so the writes of the child are those of the close.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.bots.faults.desk import desk
from trysquare import ToolError


def close_once(project: Path) -> None:
    """Close once; every way to end is written to the output."""
    here = desk(project)
    try:
        moved = here.close(key="k")
    except ToolError as error:
        tell(f"refused {error.code} {error.message}")
    except Exception as error:
        tell(f"crashed {error!r}")
        raise
    else:
        stale = any(each.startswith("The state file is stale") for each in moved.notices.warnings)
        tell(f"closed {moved.state.version}{' stale' if stale else ''}")


def tell(line: str) -> None:
    """One line, in one call to the system."""
    os.write(1, f"{line}\n".encode())


def main() -> None:
    """Serve projects until the input ends."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                os.kill(os.getpid(), signal.SIGSTOP)
                close_once(Path(line.strip()))
            finally:
                os._exit(0)
        os.waitpid(child, os.WUNTRACED)
        tell(f"stopped {child}")
        os.waitpid(child, 0)
        tell("ended")


if __name__ == "__main__":
    main()
