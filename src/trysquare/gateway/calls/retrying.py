"""Retrying: which calls may be sent again by themselves, how often and after how long."""

from __future__ import annotations

from trysquare.core.context import CallContext
from trysquare.core.errors import CallCancelled, DeadlineExceeded, ErrorCode, ToolError
from trysquare.gateway.server import Definition

PAUSES = (0.05, 0.5)
"""Seconds before the second and the third try."""
LONGEST_PAUSE = 30.0
"""Seconds that a call waits for a server which asks to be left alone for so long."""


def pause_before_retry(definition: Definition, error: ToolError, tries: int, context: CallContext) -> float | None:
    """Seconds after which a call is sent again, or None where that is not for the gateway to decide.

    Only a tool whose server says that a second call does no harm is called again, and only where the connection was
    lost in the middle of the call. What was refused, took too long or was taken back stays as it is.
    """
    if not definition.is_repeatable or tries > len(PAUSES) or not is_lost(error):
        return None
    wanted = asked_pause(error)
    if wanted is not None:
        return wanted if _fits(wanted, context) else None
    pause, left = PAUSES[tries - 1], context.remaining()
    return pause if left is None or left > 2 * pause else None


def asked_pause(error: ToolError) -> float | None:
    """Seconds after which a busy server wants to be asked again; None where it said nothing of the kind."""
    seconds = error.fields.get("retry_after_seconds") if "status" in error.fields else None
    return seconds if isinstance(seconds, (int, float)) else None


def pause_of_unsent(error: ToolError, tries: int, context: CallContext) -> float | None:
    """Seconds after which a request is sent again that a busy server refused unread, or None for no second try."""
    wanted = asked_pause(error) if error.fields.get("outcome") == "not_sent" else None
    return wanted if wanted is not None and tries <= len(PAUSES) and _fits(wanted, context) else None


def _fits(pause: float, context: CallContext) -> bool:
    left = context.remaining()
    return pause <= LONGEST_PAUSE and (left is None or pause < left)


def is_lost(error: ToolError) -> bool:
    """Whether the call went out and its answer was lost with the connection."""
    if isinstance(error, (DeadlineExceeded, CallCancelled)) or error.code == ErrorCode.TOOL_TIMEOUT:
        return False
    return error.fields.get("outcome") == "sent_unknown"
