"""Approvals and request keys against a plain model of what they promise, in every order Hypothesis can think of."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.store.keys import Keys
from tests.support import raises_code, size
from trysquare import ErrorCode, ToolError
from trysquare.core.approvals import ConsentRequest
from trysquare.store import StoredApprovals
from trysquare.store.approvals import LIFETIME
from trysquare.store.audit import Audit
from trysquare.store.database import open_database
from trysquare.store.idempotency import LEASE, RETENTION, Claim, RecordedAnswer

CALLS = st.tuples(st.sampled_from(["ada", "bob"]), st.sampled_from(["d1", "d2"]))
KEYS = st.sampled_from(["k1", "k2"])
REMEMBERED = st.sampled_from([None, 300.0])


class State(RuleBasedStateMachine):
    """The store, and beside it dictionaries that say what must come out."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.now = 1000.0
        self.open()
        self.waiting: dict[tuple[str, str], dict[str, Any]] = {}
        self.remembered: dict[tuple[str, str], float] = {}
        self.keys: dict[str, dict[str, Any]] = {}
        self.decisions = self.misses = 0

    def open(self) -> None:
        self.database = open_database(self.folder / "state.db")
        self.approvals = StoredApprovals(self.database, clock=lambda: self.now)
        self.idempotency = Keys(self.database, now=self.now)

    def teardown(self) -> None:
        if hasattr(self, "database"):
            self.database.close()
            shutil.rmtree(self.folder)

    @rule(seconds=st.sampled_from([1.0, 299.0, LIFETIME, LEASE, RETENTION]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.idempotency.now = self.now
        self.waiting = {call: kept for call, kept in self.waiting.items() if kept["expires"] > self.now}

    @rule()
    def restart(self) -> None:
        self.database.close()
        self.open()

    @rule(call=CALLS, remember=REMEMBERED)
    def send(self, call: tuple[str, str], remember: float | None) -> None:
        principal, digest = call
        request = ConsentRequest(
            tool="wipe", principal=principal, digest=digest, question="?", arguments={}, remember_for=remember
        )
        decision = self.approvals.decide(request)
        kept = self.waiting.get(call)
        if remember is not None and self.remembered.get(call, 0.0) > self.now:
            assert decision.state == "approved"
        elif kept is not None and kept["state"] == "approved":
            assert decision.state == "approved"
            del self.waiting[call]
            if remember is not None:
                self.remembered[call] = self.now + remember
        elif kept is not None and kept["state"] == "refused":
            assert decision.state == "refused"
        else:
            assert decision.state == "waiting"
            assert kept is None or decision.code == kept["code"]
            fresh = {"code": decision.code, "state": "pending", "expires": self.now + LIFETIME}
            self.waiting.setdefault(call, fresh)

    @precondition(lambda self: any(kept["state"] == "pending" for kept in self.waiting.values()))
    @rule(data=st.data(), approve=st.booleans())
    def decide(self, data: st.DataObject, approve: bool) -> None:
        open_calls = [kept for kept in self.waiting.values() if kept["state"] == "pending"]
        kept = data.draw(st.sampled_from(open_calls))
        settle = self.approvals.approve if approve else self.approvals.refuse
        assert settle(kept["code"], by="person").approved is approve
        kept |= {"state": "approved" if approve else "refused", "expires": self.now + LIFETIME}
        self.decisions += 1

    @precondition(lambda self: self.misses < 5)
    @rule()
    def guess(self) -> None:
        self.misses += 1
        with raises_code(ErrorCode.HANDLE_NOT_FOUND):
            self.approvals.approve("2222-2222", by="eve")

    @rule(key=KEYS, digest=st.sampled_from(["d1", "d2"]))
    def use_key(self, key: str, digest: str) -> None:
        kept = self.keys.get(key)
        if kept is not None and kept["result"] is not None and kept["expires"] <= self.now:
            kept = None
        if kept is not None and (kept["digest"] != digest or kept["result"] is None):
            with pytest.raises(ToolError, match="equest key"):
                self.idempotency.use(key, digest=digest)
            return
        got = self.idempotency.use(key, digest=digest)
        if isinstance(got, RecordedAnswer):
            assert kept is not None
            assert (got.result, digest) == (kept["result"], kept["digest"])
        else:
            assert kept is None, "a call ran twice under one key"
            self.keys[key] = {"digest": digest, "claim": got, "result": None, "expires": 0.0}

    @precondition(lambda self: any(kept["result"] is None for kept in self.keys.values()))
    @rule(data=st.data(), finish=st.booleans())
    def end_call(self, data: st.DataObject, finish: bool) -> None:
        running = [key for key, kept in self.keys.items() if kept["result"] is None]
        key = data.draw(st.sampled_from(running))
        claim: Claim = self.keys[key]["claim"]
        if finish:
            result = {"at": self.now}
            self.idempotency.finish(claim, result)
            self.keys[key] |= {"result": result, "expires": self.now + RETENTION}
        else:
            self.idempotency.release(claim)
            del self.keys[key]

    @invariant()
    def every_decision_has_its_receipt_and_the_chain_is_sound(self) -> None:
        if hasattr(self, "database"):
            assert len(self.approvals.receipts(limit=1000)) == self.decisions
            assert Audit(self.database).verify().sound
            pending = {kept["code"] for kept in self.waiting.values() if kept["state"] == "pending"}
            assert {one.code for one in self.approvals.pending()} == pending


State.TestCase.settings = settings(
    max_examples=size(15, 300),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestStoreAgainstItsModel = pytest.mark.timeout(600)(State.TestCase)
