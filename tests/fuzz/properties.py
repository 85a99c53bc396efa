"""What must hold whatever comes in."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

LIMIT = 64 * 1024 * 1024
"""How long a line may be that a test reads, in bytes."""

_GIVEAWAYS = (
    "Traceback (most recent call last)",
    "site-packages",
    "errors.pydantic.dev",
    "ValidationError",
    '.py", line',
)


def require_no_traceback(text: str) -> None:
    """Fail where a text for a client shows what the server is made of."""
    for giveaway in _GIVEAWAYS:
        if giveaway in text:
            raise AssertionError(f"the client sees {giveaway!r} in {text[:2000]!r}")


def parsed_strictly(text: str | bytes) -> Any:
    """JSON as the standard has it: no NaN, no infinity, valid UTF-8."""
    raw = text.encode("utf-8") if isinstance(text, str) else text
    return json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Any:
    raise AssertionError(f"`{name}` is not JSON")


def left_behind(before: set[asyncio.Task[Any]]) -> list[str]:
    """The tasks that run now and did not before.

    The library that writes event streams keeps one watcher for each event loop, for good; it belongs to no request.
    """
    tasks = asyncio.all_tasks() - before
    return [repr(task) for task in tasks if "_shutdown_watcher" not in repr(task)]


_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")


def unexplained_tracebacks(log: str) -> list[str]:
    """The tracebacks of a log that are not part of an incident, each with what stands before it."""
    found: list[str] = []
    for match in re.finditer(r"Traceback \(most recent call last\)", log):
        before = log[: match.start()].rstrip().splitlines()
        line = before[-1] if before else ""
        # The incident's id is a note below the exception, before the next record.
        after = re.split(r"^\d{4}-", log[match.start() :], maxsplit=1, flags=re.MULTILINE)[0]
        if "Incident " not in after and not line.lstrip().startswith(_CHAINED):
            found.append("\n".join(before[-3:]) + log[match.start() : match.start() + 3000])
    return found
