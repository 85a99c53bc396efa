"""What is PostgreSQL's own: no window that resets, clear errors, and a hint where the driver is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bots.faults.desk import Desk, desk
from trysquare.core.errors import ErrorCode, ToolError


@pytest.fixture
def url(postgres_url: str) -> str:
    return postgres_url


def opened(project: Path, url: str) -> Desk:
    return desk(project, url=url)


def test_a_deleted_file_resets_nothing_and_comes_back(url: str, tmp_path: Path) -> None:
    here = opened(tmp_path, url)
    here.close()
    here.file.unlink()
    assert here.current() == "shape.gather_context"
    assert here.completed() == ["shape.initialize_project"]


def test_an_edited_file_changes_nothing(url: str, tmp_path: Path) -> None:
    here = opened(tmp_path, url)
    here.close()
    here.edit(current_action="story_bot.discovery.validate_rules")
    assert here.current() == "shape.gather_context"
    assert here.document()["current_action"] == "story_bot.shape.gather_context"


def test_a_project_that_comes_from_a_state_file_takes_its_state_along(url: str, tmp_path: Path) -> None:
    before = desk(tmp_path)
    before.close()
    before.close()
    after = opened(tmp_path, url)
    assert after.load().state == before.load().state


def test_projects_with_one_database_do_not_mix(url: str, tmp_path: Path) -> None:
    one, two = opened(tmp_path / "one", url), opened(tmp_path / "two", url)
    one.close(key="k")
    assert two.close(key="k").replayed is False
    two.close()
    assert (one.load().state.version, two.load().state.version) == (1, 2)


def test_a_database_that_is_not_there_is_a_clear_error(url: str, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="cannot be reached") as refused:
        opened(tmp_path, url.replace("host=", "host=/nowhere")).close()
    assert refused.value.code == ErrorCode.STATE_UNAVAILABLE
    assert "state_url" in (refused.value.instruction or "")


def test_a_lost_connection_is_a_clear_error_and_the_next_call_works(url: str, tmp_path: Path) -> None:
    import psycopg

    here = opened(tmp_path, url)
    here.close()
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"
        )
    with pytest.raises(ToolError, match="Nothing was changed") as refused:
        here.close()
    assert refused.value.code == ErrorCode.STATE_UNAVAILABLE
    assert here.close().answer == {"completed_action": "gather_context"}


def test_without_the_driver_the_error_says_what_to_install() -> None:
    program = "import sys; sys.modules['psycopg'] = None; import trysquare.store.workflow_postgres"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'trysquare[postgres]'" in done.stderr
