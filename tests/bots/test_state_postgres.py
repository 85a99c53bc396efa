"""What is PostgreSQL's own: no window that resets, clear errors, and a hint where the driver is missing."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.bots.faults.desk import Desk, desk
from trysquare import ErrorCode, ToolError
from trysquare.bots.workflow.runs import open_workflows
from trysquare.store.location import find_project_id, get_project_id


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


def test_the_runs_of_a_project_move_with_its_folder(url: str, tmp_path: Path) -> None:
    opened(tmp_path / "here", url).close()
    (tmp_path / "here").rename(tmp_path / "there")
    assert opened(tmp_path / "there", url).current() == "shape.gather_context"


def test_another_project_at_the_same_path_begins_anew(url: str, tmp_path: Path) -> None:
    opened(tmp_path / "here", url).close()
    (tmp_path / "here").rename(tmp_path / "gone")
    assert opened(tmp_path / "here", url).current() == "shape.initialize_project"


def test_checkouts_at_two_places_share_the_runs_of_a_project_that_is_named(url: str, tmp_path: Path) -> None:
    def checkout(folder: str, name: str) -> Desk:
        return desk(tmp_path / folder, store=open_workflows(url, tmp_path / folder, project_id=name))

    checkout("one", "two-checkouts").close(key="k")
    two = checkout("two", "two-checkouts")
    assert two.close(key="k").replayed
    assert two.current() == "shape.gather_context"
    assert two.completed() == ["shape.initialize_project"]
    assert checkout("three", "another-project").current() == "shape.initialize_project"


def test_looking_at_a_project_leaves_nothing_in_its_folder(url: str, tmp_path: Path) -> None:
    assert opened(tmp_path, url).state.runs() == []
    assert list(tmp_path.iterdir()) == []


def test_all_who_make_the_id_of_a_project_get_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        made = set(threads.map(lambda _: get_project_id(tmp_path), range(32)))
    assert made == {find_project_id(tmp_path)}
    assert [each.name for each in (tmp_path / ".trysquare").glob("*project-id*")] == ["project-id"]


def test_an_id_that_cannot_be_kept_is_a_clear_error(url: str, tmp_path: Path) -> None:
    (tmp_path / ".trysquare").write_text("in the way")
    with pytest.raises(ToolError, match="Cannot store the id") as refused:
        opened(tmp_path, url).close()
    assert "`project_id`" in (refused.value.instruction or "")


def test_a_database_that_is_not_there_is_a_clear_error(url: str, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="cannot connect") as refused:
        opened(tmp_path, url.replace("host=", "host=/nowhere")).close()
    assert refused.value.code == ErrorCode.STATE_UNAVAILABLE
    assert "`database`" in (refused.value.instruction or "")


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
    program = "import sys; sys.modules['psycopg'] = None; import trysquare.store.postgres"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'trysquare[postgres]'" in done.stderr


def test_the_audit_tells_what_a_close_recorded(url: str, tmp_path: Path) -> None:
    here = opened(tmp_path, url)
    here.close()
    (told,) = here.state.audited("workflow.close")
    assert (told["bot"], told["run"], told["version"]) == ("story_bot", "main", 1)
    assert here.state.audited("workflow.skip") == []
