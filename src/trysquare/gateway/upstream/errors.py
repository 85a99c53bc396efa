"""Errors of a call to an upstream server, each with its outcome: may the call have taken effect?"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from trysquare.core.errors import DeadlineExceeded, ErrorCode, NotFound, ToolError
from trysquare.core.json import as_list, as_object
from trysquare.core.untrusted import cleaned, cleaned_value
from trysquare.gateway.models import ResultOrigin
from trysquare.gateway.upstream.transport import DisconnectReason
from trysquare.protocol.messages import URL_REQUIRED, RpcError

_MAX_PAGES = 8
_MAX_CHARACTERS = 4_000
_CHECK_FIRST = "Check whether it took effect before you call again."

Outcome: TypeAlias = Literal["not_sent", "sent_unknown", "done"]
"""The call was not sent, was sent with an unknown effect, or was answered by the server."""


def not_sent(server: str, disconnect: DisconnectReason, *, stderr_tail: str = "") -> ToolError:
    """The server cannot be started or reached."""
    reason, removed = _untrusted(f"{disconnect.reason}{quote_stderr(stderr_tail)}")
    instruction = "Retry later; other servers are not affected."
    if disconnect.retry_after is not None:
        instruction = f"Retry after {disconnect.retry_after:.0f} seconds. Other servers are not affected."
    return ToolError(
        f"Server `{server}` is not available; the call was not sent. {reason}",
        meta=ResultOrigin(server, "", "not_sent").label(cleaned=removed),
        code=ErrorCode.UPSTREAM_UNAVAILABLE,
        instruction=disconnect.instruction or instruction,
        fields=_fields(server, "not_sent", status=disconnect.status, retry_after_seconds=disconnect.retry_after),
    )


def circuit_open(server: str, reason: str, *, failures: int, seconds: float) -> ToolError:
    """The server failed repeatedly and is not started for a while."""
    return ToolError(
        f"Server `{server}` failed to start {failures} times in a row; the call was not sent. {reason}",
        code=ErrorCode.UPSTREAM_UNAVAILABLE,
        instruction=f"The first call after {seconds:.0f} seconds starts it again. Other servers are not affected.",
        fields=_fields(server, "not_sent", retry_after_seconds=round(seconds, 1)),
    )


def too_many_calls(server: str, limit: int) -> ToolError:
    """The call got no slot within its time limit."""
    return ToolError(
        f"Server `{server}` has {limit} pending calls, and none ended in time; the call was not sent.",
        code=ErrorCode.UPSTREAM_UNAVAILABLE,
        instruction="Call again when fewer calls are pending.",
        fields=_fields(server, "not_sent"),
    )


def connection_lost(server: str, disconnect: DisconnectReason, *, stderr_tail: str = "") -> ToolError:
    """The connection ended during the call."""
    if not disconnect.was_sent:
        return not_sent(server, disconnect, stderr_tail=stderr_tail)
    reason, removed = _untrusted(f"{disconnect.reason}{quote_stderr(stderr_tail)}")
    return ToolError(
        f"Server `{server}` disconnected during the call, which may or may not have taken effect. {reason}",
        meta=ResultOrigin(server, "", "sent_unknown").label(cleaned=removed),
        code=ErrorCode.UPSTREAM_LOST,
        instruction=disconnect.instruction or f"{_CHECK_FIRST} A new call restarts the server.",
        fields=_fields(server, "sent_unknown", status=disconnect.status, retry_after_seconds=disconnect.retry_after),
    )


def timed_out(server: str, tool: str, seconds: float) -> ToolError:
    """The server did not respond in time."""
    return DeadlineExceeded(
        f"Timeout: `{tool}` of `{server}` did not respond within {seconds:g} seconds and was cancelled. "
        "It may or may not have taken effect.",
        instruction=_CHECK_FIRST,
        fields=_fields(server, "sent_unknown"),
    )


def refused(server: str, tool: str, error: RpcError) -> ToolError:
    """The server responded with a protocol error."""
    reason, removed = _untrusted(error.message or "no reason given")
    pages = as_list(as_object(error.data).get("elicitations")) if error.code == URL_REQUIRED else []
    return ToolError(
        f"`{server}` refused `{tool}`: {reason}",
        meta=ResultOrigin(server, tool).label(cleaned=removed),
        code=ErrorCode.UPSTREAM_REFUSED,
        fields=_fields(server, "done", upstream_code=error.code, pages=cleaned_value(pages[:_MAX_PAGES]) or None),
    )


def task_lost(server: str, tool: str, why: str) -> ToolError:
    """A task of the server ended without a result, or is not known to it any more."""
    reason, removed = _untrusted(why or "no reason given")
    return ToolError(
        f"`{server}` ended the task of `{tool}` without a result: {reason}",
        meta=ResultOrigin(server, tool, "sent_unknown").label(cleaned=removed),
        code=ErrorCode.UPSTREAM_LOST,
        instruction=_CHECK_FIRST,
        fields=_fields(server, "sent_unknown"),
    )


def unreadable(server: str, tool: str, why: str) -> ToolError:
    """The server responded with something that is not a result."""
    reason, removed = _untrusted(why)
    return ToolError(
        f"The response of `{server}` to `{tool}` is not a result: {reason}",
        meta=ResultOrigin(server, tool).label(cleaned=removed),
        code=ErrorCode.UPSTREAM_REFUSED,
        fields=_fields(server, "done"),
    )


def malformed(server: str, tool: str, why: str) -> ToolError:
    """The server ran the call, and its result cannot be relayed."""
    reason, removed = _untrusted(why)
    return ToolError(
        f"The result of `{tool}` of `{server}` is invalid: {reason}. The call may have taken effect.",
        meta=ResultOrigin(server, tool).label(cleaned=removed),
        code=ErrorCode.UPSTREAM_MALFORMED,
        instruction=f"{_CHECK_FIRST} The result may be invalid again.",
        fields=_fields(server, "done"),
    )


def unknown_server(server: str, known: list[str]) -> ToolError:
    """The configuration has no server of this name, or no longer."""
    names = ", ".join(f"`{name}`" for name in sorted(known)) or "none"
    return NotFound(f"Unknown server `{server}`. Configured servers: {names}.", fields={"outcome": "not_sent"})


def quote_stderr(tail: str) -> str:
    """The end of a server's stderr, to append to a reason."""
    return f" Last output on stderr: {tail}" if tail else ""


def _untrusted(text: str) -> tuple[str, int]:
    """Text of a server, bounded and without hidden characters, and the number of those."""
    clean, removed = cleaned(text[:_MAX_CHARACTERS])
    return (clean if len(text) <= _MAX_CHARACTERS else f"{clean}… ({len(text)} characters)"), removed


def _fields(server: str, outcome: Outcome, **more: Any) -> dict[str, Any]:
    return {"outcome": outcome, "server": server} | {key: value for key, value in more.items() if value is not None}
