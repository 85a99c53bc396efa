"""Which calls are sent again, and after how long."""

from __future__ import annotations

import pytest

from trysquare import CallContext
from trysquare.gateway.models import ToolDefinition
from trysquare.gateway.sender import LONGEST_PAUSE, PAUSES, pause_before_retry, pause_of_unsent
from trysquare.gateway.upstream.errors import circuit_open, connection_lost
from trysquare.gateway.upstream.transport import DisconnectReason

SAFE = ToolDefinition(name="look", annotations={"readOnlyHint": True})
UNSAFE = ToolDefinition(name="pay")


@pytest.mark.parametrize("wanted", [0.0, 3.0, LONGEST_PAUSE])
def test_a_busy_server_gets_the_time_it_asks_for(wanted: float) -> None:
    refused = connection_lost("far", DisconnectReason(reason="Busy.", was_sent=False, status=429, retry_after=wanted))
    broken = connection_lost("far", DisconnectReason(reason="Busy.", status=503, retry_after=wanted))
    assert pause_of_unsent(refused, 1, CallContext()) == wanted
    assert pause_of_unsent(broken, 1, CallContext()) is None
    assert pause_before_retry(SAFE, broken, 1, CallContext()) == wanted
    assert pause_before_retry(UNSAFE, broken, 1, CallContext()) is None


def test_nobody_waits_longer_than_there_is_time() -> None:
    refused = connection_lost(
        "far", DisconnectReason(reason="Busy.", was_sent=False, status=429, retry_after=LONGEST_PAUSE + 1)
    )
    broken = connection_lost("far", DisconnectReason(reason="Busy.", status=503, retry_after=LONGEST_PAUSE + 1))
    assert pause_of_unsent(refused, 1, CallContext()) is None
    assert pause_before_retry(SAFE, broken, 1, CallContext()) is None
    soon = connection_lost("far", DisconnectReason(reason="Busy.", was_sent=False, status=429, retry_after=5))
    assert pause_of_unsent(soon, len(PAUSES) + 1, CallContext()) is None


def test_a_server_that_rests_is_not_waited_for() -> None:
    assert pause_of_unsent(circuit_open("far", "It fails.", failures=3, seconds=2.0), 1, CallContext()) is None
