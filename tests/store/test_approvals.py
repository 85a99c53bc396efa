"""Approvals from the person's side: what waits, codes, and guessing. The tool's side is tested with `consented`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import raises_code
from trysquare import ErrorCode, ToolError
from trysquare.core.approvals import ANSWER_LIFETIME, ConsentRequest
from trysquare.store import Database, StoredApprovals
from trysquare.store.approvals import ALPHABET, MAX_MISSES, MAX_PENDING, new_code, normalize_code
from trysquare.store.audit import Audit
from trysquare.store.database import open_database


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path / "s" / "state.db")) as opened:
        yield opened


@pytest.fixture
def approvals(database: Database, clock: Clock) -> StoredApprovals:
    return StoredApprovals(database, clock=clock)


def request(digest: str = "d1", principal: str = "ada", tool: str = "wipe") -> ConsentRequest:
    return ConsentRequest(
        tool=tool, principal=principal, digest=digest, question="Delete a?", arguments={"path": "a", "password": "***"}
    )


def opened_code(approvals: StoredApprovals, digest: str = "d1") -> str:
    code = approvals.decide(request(digest)).code
    assert code is not None
    return code


def test_what_waits_is_shown_with_all_that_matters(approvals: StoredApprovals, clock: Clock) -> None:
    code = opened_code(approvals)
    clock.now += 100.0
    [pending] = approvals.pending()
    assert approvals.show(code) == pending
    assert (pending.code, pending.tool, pending.principal, pending.digest) == (code, "wipe", "ada", "d1")
    assert (pending.question, pending.arguments) == ("Delete a?", {"path": "a", "password": "***"})
    assert pending.expires_in == 500.0


def test_a_code_may_be_typed_in_small_letters_and_without_its_dash(approvals: StoredApprovals) -> None:
    code = opened_code(approvals)
    assert approvals.approve(f" {code.lower().replace('-', ' ')} ", by="ada").approved


def test_codes_are_short_and_without_letters_that_look_alike() -> None:
    codes = {new_code() for _ in range(200)}
    assert len(codes) == 200
    for code in codes:
        assert (len(code), code[4]) == (9, "-")
        assert set(code) <= set(ALPHABET) | {"-"}
        assert normalize_code(code) == code
    assert not set(ALPHABET) & set("01ILOU")


@given(st.text(max_size=40))
def test_whatever_is_typed_becomes_some_code(typed: str) -> None:
    assert normalize_code(normalize_code(typed)) == normalize_code(typed)


@pytest.mark.parametrize("decide", ["approve", "refuse"])
def test_a_decision_is_made_once(approvals: StoredApprovals, decide: str) -> None:
    code = opened_code(approvals)
    getattr(approvals, decide)(code, by="ada")
    for again in (approvals.approve, approvals.refuse):
        with raises_code(ErrorCode.HANDLE_NOT_FOUND, match="already decided"):
            again(code, by="ada")


def test_a_code_ends(approvals: StoredApprovals, clock: Clock) -> None:
    code = opened_code(approvals)
    clock.now += 600.0
    assert approvals.pending() == []
    with raises_code(ErrorCode.HANDLE_NOT_FOUND):
        approvals.approve(code, by="ada")
    assert opened_code(approvals) != code


def test_an_approval_that_is_not_used_ends_too(approvals: StoredApprovals, clock: Clock) -> None:
    approvals.approve(opened_code(approvals), by="ada")
    clock.now += 600.0
    assert approvals.decide(request()).state == "waiting"


def test_a_call_gets_its_own_time_after_a_late_approval(approvals: StoredApprovals, clock: Clock) -> None:
    code = opened_code(approvals)
    clock.now += 599.0
    approvals.approve(code, by="ada")
    clock.now += 599.0
    assert approvals.decide(request()).state == "approved"


def test_guessing_ends_after_a_few_wrong_codes(approvals: StoredApprovals, clock: Clock) -> None:
    code = opened_code(approvals)
    for _ in range(MAX_MISSES):
        with raises_code(ErrorCode.HANDLE_NOT_FOUND):
            approvals.show("2222-2222")
    with pytest.raises(ToolError, match="10 within 60 seconds") as raised:
        approvals.approve(code, by="eve")
    assert raised.value.code == ErrorCode.CONSENT_REFUSED
    clock.now += 61.0
    assert approvals.approve(code, by="ada").approved


def test_one_caller_cannot_flood_the_person_with_questions(approvals: StoredApprovals) -> None:
    first, *others = [opened_code(approvals, f"d{number}") for number in range(MAX_PENDING)]
    newest = opened_code(approvals, "one more")
    codes = [waits.code for waits in approvals.pending()]
    assert (len(codes), first in codes) == (MAX_PENDING, False)
    assert {*others, newest} == set(codes)
    assert approvals.decide(request(principal="bob")).code is not None


def test_a_client_that_can_ask_takes_no_place_among_the_calls_that_wait(approvals: StoredApprovals) -> None:
    codes = [opened_code(approvals, f"d{number}") for number in range(MAX_PENDING)]
    assert approvals.decide(request("asked"), open_code=False).state == "waiting"
    assert approvals.answer(request("asked"), ticket=approvals.ticket(), approved=True, by="ada", how="elicitation")
    assert {waits.code for waits in approvals.pending()} == set(codes)


def test_a_ticket_is_taken_once_and_not_when_it_is_old(database: Database) -> None:
    now = [1000.0]
    approvals = StoredApprovals(database, clock=lambda: now[0])

    def taken(ticket: str) -> bool:
        return approvals.answer(request(), ticket=ticket, approved=True, by="ada", how="elicitation")

    ticket, old = approvals.ticket(), approvals.ticket()
    assert [taken(ticket), taken(ticket), taken(approvals.ticket())] == [True, False, True]
    now[0] += ANSWER_LIFETIME + 1
    assert [taken(ticket), taken(old)] == [False, False]


def test_a_continued_call_keeps_the_receipt_that_it_has(approvals: StoredApprovals) -> None:
    more: Any = {"approved": True, "by": "ada", "how": "input_required"}
    assert approvals.answer(request(), ticket=approvals.ticket(), **more)
    assert approvals.answer(request(), ticket=approvals.ticket(continued=True), **more)
    assert len(approvals.receipts()) == 1


def test_an_approval_that_was_written_into_the_table_proves_nothing(
    approvals: StoredApprovals, database: Database
) -> None:
    code = opened_code(approvals)
    with database.write() as connection:
        connection.execute("UPDATE approvals SET state = 'approved'")
    again = approvals.decide(request())
    assert (again.state, again.code not in (None, code)) == ("waiting", True)
    with database.read() as connection:
        kinds = [kind for (kind,) in connection.execute("SELECT kind FROM audit WHERE kind LIKE 'consent.un%'")]
    assert kinds == ["consent.unrecorded"]


def test_an_approval_counts_for_the_question_that_was_shown(approvals: StoredApprovals) -> None:
    approvals.approve(opened_code(approvals), by="ada")
    assert approvals.decide(replace(request(), question="Another one?")).state == "waiting"
    assert approvals.decide(request()).state == "approved"


def test_two_files_do_not_share_approvals(approvals: StoredApprovals, tmp_path: Path) -> None:
    code = opened_code(approvals)
    with closing(open_database(tmp_path / "t" / "state.db")) as other, raises_code(ErrorCode.HANDLE_NOT_FOUND):
        StoredApprovals(other).approve(code, by="ada")


def test_every_decision_and_every_use_stands_in_the_audit(approvals: StoredApprovals, database: Database) -> None:
    approvals.approve(opened_code(approvals), by="ada")
    approvals.decide(request())
    approvals.refuse(opened_code(approvals, "d2"), by="bob")
    rows = Audit(database).rows()
    assert [(row.kind, row.body.get("by"), row.body["digest"]) for row in rows] == [
        ("consent.approved", "ada", "d1"),
        ("consent.used", None, "d1"),
        ("consent.refused", "bob", "d2"),
    ]
    assert Audit(database).verify().sound


def test_receipts_are_kept_after_the_approval_is_gone(approvals: StoredApprovals, clock: Clock) -> None:
    approvals.approve(opened_code(approvals), by="ada")
    clock.now += 10_000.0
    opened_code(approvals, "d2")
    [receipt] = approvals.receipts()
    assert (receipt.tool, receipt.digest, receipt.by, receipt.how, receipt.approved) == (
        "wipe",
        "d1",
        "ada",
        "cli",
        True,
    )
