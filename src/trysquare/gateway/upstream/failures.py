"""Failures of a call to a server behind the gateway: what went wrong, and whether the call may have had an effect."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from trysquare.catalog.schema_parts import as_list, as_object
from trysquare.core.errors import DeadlineExceeded, ErrorCode, NotFound, ToolError
from trysquare.core.untrusted import cleaned, cleaned_value
from trysquare.gateway.answers.origin import Origin
from trysquare.gateway.upstream.channel import Loss
from trysquare.gateway.upstream.frames import ErrorBody

URL_REQUIRED: Final = -32042
"""A server refuses a call with it until the user has opened a page."""
_MOST_PAGES = 8

Outcome: TypeAlias = Literal["not_sent", "sent_unknown", "done"]
"""What is known of a call: it never left, it left and nobody knows, or the server has answered it."""
_LONGEST = 4_000
"""Characters of an error text that are passed on."""


def not_sent(server: str, loss: Loss, *, last_words: str = "") -> ToolError:
    """The server cannot be started or reached, so nothing has happened."""
    told, removed = _foreign(f"{loss.reason}{_quoted(last_words)}")
    return ToolError(
        f"`{server}` is not available, and nothing was sent. {told}",
        meta=Origin(server, "", "not_sent").label(cleaned=removed),
        code=ErrorCode.UPSTREAM_UNAVAILABLE,
        instruction=loss.instruction or _come_again(loss) or "Try again later; other servers are not affected.",
        fields=_fields(server, "not_sent", status=loss.status, retry_after_seconds=loss.retry_after),
    )


def resting(server: str, reason: str, *, failures: int, seconds: float) -> ToolError:
    """The server failed so often that it is left alone for a while."""
    return ToolError(
        f"`{server}` failed to start {failures} times in a row and is left alone for now; nothing was sent. {reason}",
        code=ErrorCode.UPSTREAM_UNAVAILABLE,
        instruction=f"It is tried again by the first call after {seconds:.0f} seconds. Other servers are not affected.",
        fields=_fields(server, "not_sent", retry_after_seconds=round(seconds, 1)),
    )


def crowded(server: str, limit: int) -> ToolError:
    """So many calls are under way that this one did not get its turn in time."""
    return ToolError(
        f"`{server}` has {limit} calls under way, and none ended in time for this one; nothing was sent.",
        code=ErrorCode.UPSTREAM_UNAVAILABLE,
        instruction="Call again when fewer calls are under way.",
        fields=_fields(server, "not_sent"),
    )


def lost(server: str, loss: Loss, *, last_words: str = "") -> ToolError:
    """The server went away during the call."""
    if not loss.was_sent:
        return not_sent(server, loss, last_words=last_words)
    told, removed = _foreign(f"{loss.reason}{_quoted(last_words)}")
    return ToolError(
        f"`{server}` went away during the call, which may or may not have taken effect. {told}",
        meta=Origin(server, "", "sent_unknown").label(cleaned=removed),
        code=ErrorCode.UPSTREAM_LOST,
        instruction=loss.instruction
        or "Find out whether it took effect before you call again; a new call starts the server anew.",
        fields=_fields(server, "sent_unknown", status=loss.status, retry_after_seconds=loss.retry_after),
    )


def timed_out(server: str, tool: str, seconds: float) -> ToolError:
    """The server did not answer in time."""
    return DeadlineExceeded(
        f"`{tool}` of `{server}` did not answer within {seconds:g} seconds and was cancelled. "
        "It may or may not have taken effect.",
        instruction="Find out whether it took effect before you call again.",
        fields=_fields(server, "sent_unknown"),
    )


def refused(server: str, tool: str, error: ErrorBody) -> ToolError:
    """The server answered with an error of the protocol instead of a result."""
    told, removed = _foreign(error.message or "no reason given")
    return ToolError(
        f"`{server}` refused `{tool}`: {told}",
        meta=Origin(server, tool).label(cleaned=removed),
        code=ErrorCode.UPSTREAM_REFUSED,
        fields=_fields(server, "done", upstream_code=error.code, pages=_pages(error)),
    )


def _pages(error: ErrorBody) -> list[Any] | None:
    """The pages that a user has to open before the call can be made, where that is why it was refused."""
    found = as_list(as_object(error.data).get("elicitations")) if error.code == URL_REQUIRED else []
    return cleaned_value(found[:_MOST_PAGES]) or None


def unreadable(server: str, tool: str, why: str) -> ToolError:
    """The server answered with something that is no result."""
    told, removed = _foreign(why)
    return ToolError(
        f"`{server}` answered `{tool}` with something that is no result: {told}",
        meta=Origin(server, tool).label(cleaned=removed),
        code=ErrorCode.UPSTREAM_REFUSED,
        fields=_fields(server, "done"),
    )


def malformed(server: str, tool: str, why: str) -> ToolError:
    """The server answered the call, and its answer cannot be passed on."""
    told, removed = _foreign(why)
    return ToolError(
        f"`{server}` answered `{tool}` with something that cannot be passed on: {told}. "
        "The call may have taken effect.",
        meta=Origin(server, tool).label(cleaned=removed),
        code=ErrorCode.UPSTREAM_MALFORMED,
        instruction="Find out whether it took effect before you call again; the answer may be the same then.",
        fields=_fields(server, "done"),
    )


def unknown_server(server: str, known: list[str]) -> ToolError:
    """There is no server of this name, or no longer."""
    names = ", ".join(f"`{name}`" for name in sorted(known)) or "none"
    return NotFound(
        f"There is no server `{server}` behind the gateway; there are: {names}.",
        fields={"outcome": "not_sent"},
    )


def _foreign(text: str) -> tuple[str, int]:
    """What a server said of a failure, for a model: bounded, without what cannot be seen, and how much that was."""
    told, removed = cleaned(text[:_LONGEST])
    return (told if len(text) <= _LONGEST else f"{told}… ({len(text)} characters)"), removed


def _fields(server: str, outcome: Outcome, **more: Any) -> dict[str, Any]:
    return {"outcome": outcome, "server": server} | {key: value for key, value in more.items() if value is not None}


def _come_again(loss: Loss) -> str | None:
    if loss.retry_after is None:
        return None
    return f"The server wants to be asked again after {loss.retry_after:.0f} seconds. Other servers are not affected."


def _quoted(last_words: str) -> str:
    return f" Its last words: {last_words}" if last_words else ""
