"""`trysquare gateway calls`: the ledger for a person."""

from __future__ import annotations

import json

from tests.cli.conftest import Run
from tests.store.ledger_worker import call
from trysquare.store.ledger import CallLedger
from trysquare.store.ledger_rows import CallEnd, NewCall
from trysquare.store.location import user_state


def keep_calls() -> None:
    ledger = CallLedger(user_state().with_name("ledger.db"), clock=lambda: 1_000_000_000.0)
    done = ledger.begin(call(1))
    ledger.end(done, CallEnd(state="done", ended=1_000_000_000.25, is_error=True, result_digest="r", result_bytes=12))
    ledger.begin(NewCall(principal="me", server="web", tool="get", arguments='{"q":"a\u202eb"}', digest="d"))
    # The server ends while the second call is under way.
    ledger.close()


def test_without_a_call_the_ledger_says_so_and_makes_no_file(run: Run) -> None:
    assert run("gateway", "calls").out == "No call was made.\n"
    assert not user_state().with_name("ledger.db").exists()


def test_calls_are_listed_latest_first_with_what_is_known_of_each(run: Run) -> None:
    keep_calls()
    _, second, first, _, advice = run("gateway", "calls").out.splitlines()
    assert second.split()[2:5] == ["web", "get", "sent_unknown"]
    assert second.endswith("the gateway ended during the call")
    assert first.split() == [
        "2001-09-09", "01:46:40Z", "files", "write", "done", "250", "ms", "error,", "12", "bytes", '{"n":1}'
    ]  # fmt: skip
    assert advice == "1 call may have taken effect, or not: look at what they were to change."


def test_json_holds_everything(run: Run) -> None:
    keep_calls()
    found = run("gateway", "calls", "--json").json
    assert [record["state"] for record in found] == ["sent_unknown", "done"]
    assert found[1]["arguments"] == {"n": 1}
    assert found[1]["result_digest"] == "r"
    assert json.dumps(found)


def test_calls_of_one_server_in_one_state_or_only_some(run: Run) -> None:
    keep_calls()
    assert [record["server"] for record in run("gateway", "calls", "files", "--json").json] == ["files"]
    assert run("gateway", "calls", "files", "--state", "not_sent", "--json").json == []
    assert [record["server"] for record in run("gateway", "calls", "--limit", "1", "--json").json] == ["web"]


def test_a_limit_below_one_is_refused(run: Run) -> None:
    assert "must be 1 or more" in run("gateway", "calls", "--limit", "0").err
