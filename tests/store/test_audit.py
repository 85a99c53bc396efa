"""The audit: whatever is changed, removed or cut off afterwards is found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trysquare.store import Database
from trysquare.store.audit import Audit
from trysquare.store.database import open_database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path / "s" / "state.db")) as opened:
        yield opened


@pytest.fixture
def audit(database: Database) -> Audit:
    audit = Audit(database)
    for number in range(5):
        audit.append(kind="work", principal="ada", body={"number": number, "text": "é\u2028"})
    return audit


def tamper(database: Database, statement: str, *values: Any) -> None:
    with database.write() as connection:
        connection.execute(statement, values)


def test_an_untouched_chain_is_sound(audit: Audit) -> None:
    report = audit.verify()
    assert (report.sound, report.rows, report.problem) == (True, 5, None)


def test_an_empty_chain_is_sound(database: Database) -> None:
    assert Audit(database).verify().sound


def test_rows_come_in_order_and_in_portions(audit: Audit) -> None:
    assert [row.seq for row in audit.rows(limit=2)] == [1, 2]
    assert [row.body["number"] for row in audit.rows(after=3)] == [3, 4]


@pytest.mark.parametrize("column", ["at", "kind", "principal", "body", "previous", "hash"])
def test_a_changed_column_is_found_at_its_row(audit: Audit, database: Database, column: str) -> None:
    tamper(database, f"UPDATE audit SET {column} = 'x' WHERE seq = 3")
    report = audit.verify()
    assert (report.broken, report.sound) == (3, False)
    assert "row 3" in (report.problem or "")


def test_a_value_of_another_kind_is_found_too(audit: Audit, database: Database) -> None:
    tamper(database, "UPDATE audit SET body = ? WHERE seq = 2", b"\xff\x00")
    assert audit.verify().broken == 2


@pytest.mark.parametrize("seq", [1, 3])
def test_a_removed_row_is_found(audit: Audit, database: Database, seq: int) -> None:
    tamper(database, "DELETE FROM audit WHERE seq = ?", seq)
    report = audit.verify()
    assert report.broken == seq
    assert f"row {seq} " in str(report.problem)


def test_rows_cut_from_the_end_are_missed(audit: Audit, database: Database) -> None:
    tamper(database, "DELETE FROM audit WHERE seq > 3")
    report = audit.verify()
    assert not report.sound
    assert "row 3" in str(report.problem)


def test_a_whole_chain_that_is_gone_is_missed(audit: Audit, database: Database) -> None:
    tamper(database, "DELETE FROM audit")
    assert audit.verify().broken == 1


def test_rows_in_another_order_are_found(audit: Audit, database: Database) -> None:
    tamper(database, "UPDATE audit SET seq = 9 WHERE seq = 2")
    tamper(database, "UPDATE audit SET seq = 2 WHERE seq = 3")
    tamper(database, "UPDATE audit SET seq = 3 WHERE seq = 9")
    assert audit.verify().broken == 2


@given(seq=st.integers(1, 5), column=st.sampled_from(["at", "kind", "principal", "body"]), text=st.text(max_size=20))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_other_text_anywhere_is_found(audit: Audit, database: Database, seq: int, column: str, text: str) -> None:
    with database.read() as connection:
        kept = connection.execute(f"SELECT {column} FROM audit WHERE seq = ?", (seq,)).fetchone()[0]
    if text == kept:
        return
    tamper(database, f"UPDATE audit SET {column} = ? WHERE seq = ?", text, seq)
    assert audit.verify().broken == seq
    tamper(database, f"UPDATE audit SET {column} = ? WHERE seq = ?", kept, seq)
    assert audit.verify().sound
