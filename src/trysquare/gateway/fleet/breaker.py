"""Breaker: how long a server that keeps failing is left alone. No clock of its own."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_REST = 1.0
LONGEST_REST = 60.0


@dataclass(slots=True)
class Breaker:
    """Counts failures in a row. One is forgiven at once, each further one doubles the rest before the next try."""

    failures: int = 0
    reason: str = ""
    until: float = 0.0

    def fail(self, now: float, reason: str) -> None:
        """Note a failure."""
        self.failures += 1
        self.reason = reason
        rest = 0.0 if self.failures == 1 else min(FIRST_REST * 2 ** min(self.failures - 2, 16), LONGEST_REST)
        self.until = now + rest

    def succeed(self) -> None:
        """Forget all failures."""
        self.failures, self.reason, self.until = 0, "", 0.0

    def rest(self, now: float) -> float:
        """Seconds until the next try may be made; 0 if it may be made now."""
        return max(0.0, self.until - now)
