"""A process that makes one close under the key `k` and acknowledges it, to be killed or failed at any of its writes."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.bots.faults.desk import desk
from trysquare.core.errors import ToolError


def main(project: str) -> None:
    """Close once; every way to end is written to the output."""
    here = desk(Path(project))
    try:
        moved = here.close(key="k")
    except ToolError as error:
        sys.stdout.write(f"refused {error.code}\n")
    else:
        stale = any(each.startswith("window stale") for each in moved.notices.warnings)
        sys.stdout.write(f"closed {moved.state.version}{' stale' if stale else ''}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
