"""Request keys with a clock of the test's own, each step in a transaction of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trysquare.store import Database, idempotency
from trysquare.store.idempotency import Claim, RecordedAnswer


@dataclass
class Keys:
    database: Database
    now: float = 0.0

    def use(
        self, key: str = "k", *, tool: str = "close", principal: str = "ada", digest: str = "d"
    ) -> Claim | RecordedAnswer:
        with self.database.write() as connection:
            return idempotency.claim(connection, key, tool=tool, principal=principal, digest=digest, now=self.now)

    def claimed(self, key: str = "k") -> Claim:
        got = self.use(key)
        assert isinstance(got, Claim)
        return got

    def finish(self, claimed: Claim, result: dict[str, Any]) -> None:
        with self.database.write() as connection:
            idempotency.finish(connection, claimed, result, now=self.now)

    def release(self, claimed: Claim) -> None:
        with self.database.write() as connection:
            idempotency.release(connection, claimed)
