"""A database that an earlier version of the tables wrote goes on where it was, on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.bots.faults.desk import Desk, desk
from trysquare.bots.workflow.transaction import entry_record, head_record
from trysquare.store import project_state
from trysquare.store.location import find_project_id, prepare_folder
from trysquare.store.migrations import LATEST, MIGRATIONS, WORKFLOW

WITH_RUNS = MIGRATIONS.index(WORKFLOW) + 1
BEFORE_LATEST = MIGRATIONS.index(LATEST)
TABLES = ("bots", "runs", "entries", "events", "notes", "exports")


def worked_on(here: Desk) -> Desk:
    """Two runs with completions, a rejection of the order, and a reopened action."""
    here.close()
    here.close()
    here.open("shape.initialize_project")
    here.close()
    here.close(run="hotfix")
    return here


def inline(here: Desk, run: str) -> str:
    """The state of a run as earlier versions stored it: with the latest line of each action."""
    state = here.load(run).state
    return json.dumps({**head_record(state), "latest": [entry_record(each) for each in state.latest.values()]})


def rows_of(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        return {table: connection.execute(f"SELECT * FROM workflow_{table}").fetchall() for table in TABLES}


def write_earlier(path: Path, version: int, rows: dict[str, list[tuple[Any, ...]]]) -> None:
    """A database with the tables of a version, and these rows where it has tables for them."""
    prepare_folder(path.parent)
    with closing(sqlite3.connect(path)) as connection:
        for statement in (each for statements in MIGRATIONS[:version] for each in statements):
            connection.execute(statement)
        for table, found in rows.items() if version >= WITH_RUNS else ():
            marks = ", ".join("?" * len(found[0])) if found else ""
            connection.executemany(f"INSERT INTO workflow_{table} VALUES ({marks})", found)
        connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()


def check_goes_on(before: Desk, after: Desk) -> None:
    for run in ("main", "hotfix"):
        assert after.load(run).state == before.load(run).state
        assert after.load(run).notices.warnings == ()
        assert after.state.history(run) == before.state.history(run)
    closed = after.close()
    assert closed.answer == {"completed_action": "gather_context"}
    assert after.state.state_at("main", 2) == before.state.state_at("main", 2)
    assert after.state.rewind("main", 2, principal="ada").state.current == before.state.state_at("main", 2).current
    assert after.close(run="hotfix").answer == {"completed_action": "gather_context"}
    assert after.state.damaged() == {}


@pytest.mark.parametrize("version", range(WITH_RUNS, BEFORE_LATEST + 1))
def test_a_database_of_every_earlier_version_goes_on(tmp_path: Path, version: int) -> None:
    before = worked_on(desk(tmp_path / "before"))
    states = {run: inline(before, run) for run in ("main", "hotfix")}
    rows = rows_of(project_state(before.project))
    rows["runs"] = [(*row[:6], states[row[2]], *row[7:]) for row in rows["runs"]]
    project = tmp_path / "after"
    write_earlier(project_state(project), version, rows)
    (project / before.file.name).write_bytes(before.file.read_bytes())
    check_goes_on(before, desk(project))


@pytest.mark.parametrize("version", range(WITH_RUNS))
def test_a_database_from_before_there_were_runs_takes_the_file_over(tmp_path: Path, version: int) -> None:
    before = worked_on(desk(tmp_path / "before"))
    project = tmp_path / "after"
    write_earlier(project_state(project), version, {})
    (project / before.file.name).write_bytes(before.file.read_bytes())
    after = desk(project)
    assert [after.current(run) for run in ("main", "hotfix")] == ["shape.gather_context", "shape.gather_context"]
    assert after.close().answer == {"completed_action": "gather_context"}


def test_a_postgres_database_of_an_earlier_version_goes_on(tmp_path: Path, postgres_url: str) -> None:
    import psycopg

    before = worked_on(desk(tmp_path / "before"))
    here = worked_on(desk(tmp_path / "project", url=postgres_url))
    states = {run: inline(here, run) for run in ("main", "hotfix")}
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for run, state in states.items():
            where = (state, run, find_project_id(here.project))
            connection.execute("UPDATE workflow_runs SET state = %s WHERE run = %s AND project = %s", where)
        for index in ("runs_by_update", "runs_by_name"):
            connection.execute(f"DROP INDEX workflow_{index}")
        connection.execute("DROP TABLE workflow_latest")
        connection.execute("DROP INDEX idempotency_by_expiry")
    again = desk(here.project, url=postgres_url)
    assert [again.load(run).state.current for run in states] == [before.load(run).state.current for run in states]
    assert again.close().answer == {"completed_action": "gather_context"}
    assert again.close(run="hotfix").state.version == 2
    assert again.state.damaged() == {}
