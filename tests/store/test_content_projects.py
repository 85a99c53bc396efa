"""The register of projects: by name, in any case, with their folders."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import raises_code
from trysquare import ErrorCode
from trysquare.store import LazyDatabase
from trysquare.store.content import RegisteredProject, StoredProjects

WEB = RegisteredProject(name="web", root=Path("/srv/web"), folders=(Path("/srv/web/docs"), Path("/srv/web/rules é")))


@pytest.fixture
def database(tmp_path: Path) -> Generator[LazyDatabase]:
    opened = LazyDatabase(tmp_path / "state" / "state.db")
    yield opened
    opened.close()


@pytest.fixture
def projects(database: LazyDatabase) -> StoredProjects:
    return StoredProjects(database)


def test_projects_come_back_whole_and_in_order_of_name(projects: StoredProjects) -> None:
    api = replace(WEB, name="api", folders=())
    projects.put(WEB)
    projects.put(api)
    assert projects.all() == [api, WEB]


def test_reading_an_empty_register_leaves_no_file(projects: StoredProjects, database: LazyDatabase) -> None:
    assert projects.all() == []
    assert not database.path.exists()


def test_a_name_is_registered_once_in_any_case(projects: StoredProjects) -> None:
    moved = replace(WEB, name="WEB", root=Path("/srv/other"))
    projects.put(WEB)
    projects.put(moved)
    assert projects.all() == [moved]


def test_a_project_is_removed_by_name_and_a_missing_one_is_told(projects: StoredProjects) -> None:
    projects.put(WEB)
    projects.remove("Web")
    assert projects.all() == []
    with raises_code(ErrorCode.RESOURCE_NOT_FOUND, match="`Web`"):
        projects.remove("Web")


def test_another_process_sees_the_register_at_once(projects: StoredProjects, database: LazyDatabase) -> None:
    other = LazyDatabase(database.path)
    try:
        assert StoredProjects(other).all() == []
        projects.put(WEB)
        assert StoredProjects(other).all() == [WEB]
    finally:
        other.close()
