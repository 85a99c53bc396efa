"""Templates, and how values look in them. Everything is text: what others wrote is escaped, and cannot hide."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from trysquare.console.assets import FOLDER, static_address
from trysquare.core.result import jsonable
from trysquare.core.untrusted import block, one_line

LONGEST_TEXT = 200_000
"""Characters of one text on a page."""
_COMPRESSED_FROM = 1_000
PARTS = (
    ("needs", "/", "Needs you"),
    ("tools", "/tools", "Tools"),
    ("servers", "/servers", "Servers"),
    ("calls", "/calls", "Calls"),
    ("bots", "/bots", "Bots"),
    ("jobs", "/jobs", "Jobs"),
    ("failures", "/failures", "Failures"),
)
"""The parts of the console: name, path and title."""


class Renderer:
    """The templates of one console."""

    def __init__(self, *, project: str) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(FOLDER / "templates", encoding="utf-8"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters.update(
            line=shown_line,
            block=shown_block,
            json=shown_json,
            seconds=duration,
            moment=moment,
            stamp=stamp,
            size=byte_size,
            compact=compact_json,
        )
        known: dict[str, Any] = {"parts": PARTS, "project": project, "static": static_address, "now": time.time}
        self._environment.globals.update(known)

    def text(self, template: str, **values: Any) -> str:
        """A rendered template."""
        return self._environment.get_template(template).render(values)

    def respond(
        self, request: Request, template: str, values: Mapping[str, Any], *, status: int = 200
    ) -> Response:  # fmt: skip
        """A rendered template as a response, compressed where that is worth it."""
        body = self.text(template, **values).encode("utf-8", "replace")
        headers = {"vary": "Accept-Encoding"}
        if len(body) >= _COMPRESSED_FROM and "gzip" in request.headers.get("accept-encoding", ""):
            body, headers["content-encoding"] = gzip.compress(body, 4), "gzip"
        return HTMLResponse(body, status_code=status, headers=headers)


def shown_line(value: object, limit: int = 300) -> str:
    """A text of others on one line."""
    return one_line(str(value), limit)


def shown_block(value: object, limit: int = LONGEST_TEXT) -> str:
    """A text of others with its lines."""
    text = str(value)
    return block(text[:limit]) + (f"\n… {len(text) - limit:,} more characters" if len(text) > limit else "")


def shown_json(value: object, limit: int = LONGEST_TEXT) -> str:
    """A value as readable JSON; a text as itself."""
    text = value if isinstance(value, str) else json.dumps(jsonable(value), ensure_ascii=False, indent=2)
    return shown_block(text, limit)


def compact_json(value: object) -> str:
    """A value as JSON for a program, in plain ASCII."""
    return json.dumps(jsonable(value))


def duration(seconds: float) -> str:
    """A span of time in the largest unit that fits."""
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def moment(seconds: float) -> str:
    """A point in time, as the clock of this machine shows it."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def stamp(text: object) -> str:
    """A point in time that was written in ISO 8601, as `moment` shows it; any other text as it is."""
    try:
        return moment(datetime.fromisoformat(str(text)).timestamp())
    except (ValueError, OverflowError, OSError):
        return one_line(str(text), 40)


def byte_size(count: int) -> str:
    """A number of bytes."""
    for unit, length in (("MB", 1_000_000), ("kB", 1_000)):
        if count >= length:
            return f"{count / length:.1f} {unit}"
    return f"{count} B"
