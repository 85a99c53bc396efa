"""The state file: how it is opened, what is refused, and what happens to one that is damaged."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from trysquare import ConfigurationError, ErrorCode, ToolError
from trysquare.store import Database, project_state, user_state
from trysquare.store.audit import Audit
from trysquare.store.database import open_database
from trysquare.store.location import filesystem_of, prepare_folder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return project_state(tmp_path / "project")


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    with closing(open_database(path)) as opened:
        yield opened


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_folder_is_its_owners_alone_and_ignores_itself_in_git(database: Database) -> None:
    folder = database.path.parent
    assert (folder.name, mode(folder)) == (".trysquare", 0o700)
    assert (folder / ".gitignore").read_text(encoding="utf-8") == "*\n"
    Audit(database).append(kind="k", principal="p", body={})
    assert {mode(file) for file in folder.iterdir() if file.name != ".gitignore"} == {0o600}


def test_git_sees_nothing_of_it(database: Database) -> None:
    project = database.path.parent.parent
    subprocess.run(["git", "init", "--quiet", str(project)], check=True)
    status = subprocess.run(
        ["git", "-C", str(project), "status", "--short"], check=True, capture_output=True, text=True
    )
    assert status.stdout == ""


def test_a_folder_that_others_may_enter_is_closed_to_them(path: Path) -> None:
    path.parent.mkdir(parents=True, mode=0o755)
    with closing(open_database(path)):
        assert mode(path.parent) == 0o700


def test_an_existing_gitignore_is_left_as_it_is(path: Path) -> None:
    path.parent.mkdir(parents=True)
    (path.parent / ".gitignore").write_text("state.db\n", encoding="utf-8")
    with closing(open_database(path)):
        assert (path.parent / ".gitignore").read_text(encoding="utf-8") == "state.db\n"


def test_writes_are_logged_ahead_and_flushed(database: Database) -> None:
    with database.read() as connection:
        settings = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
        }
    assert settings == {"journal_mode": "wal", "synchronous": 2}


def test_without_a_project_state_is_kept_with_the_user(tmp_path: Path) -> None:
    assert user_state({"XDG_STATE_HOME": "/s", "HOME": "/h"}) == Path("/s/trysquare/state.db")
    assert user_state({"HOME": "/h"}) == Path("/h/.local/state/trysquare/state.db")
    assert user_state({"XDG_STATE_HOME": "relative", "HOME": "/h"}) == Path("/h/.local/state/trysquare/state.db")


def test_a_transaction_is_whole_or_not_at_all(database: Database) -> None:
    def half() -> None:
        with database.write() as connection:
            connection.execute("INSERT INTO approval_misses (at) VALUES (1)")
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        half()
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM approval_misses").fetchone() == (0,)


def test_a_second_opening_finds_what_the_first_wrote(path: Path) -> None:
    with closing(open_database(path)) as first, closing(open_database(path)) as second:
        Audit(first).append(kind="k", principal="p", body={"a": 1})
        assert [row.body for row in Audit(second).rows()] == [{"a": 1}]


def test_many_threads_write_one_after_the_other(database: Database) -> None:
    def work() -> None:
        for _ in range(10):
            Audit(database).append(kind="k", principal="p", body={})

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Audit(database).verify().rows == 80


def test_a_file_of_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    with closing(open_database(path)) as opened, opened.write() as connection:
        connection.execute("CREATE TABLE later (a)")
        connection.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match=r"\b99\b") as refused:
        open_database(path)
    assert refused.value.where == str(path)
    assert path.read_bytes() == before


def aside(path: Path) -> list[Path]:
    return sorted(path.parent.glob("state.db.corrupt-*Z"))


@pytest.mark.parametrize("garbage", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_set_aside_whole(
    path: Path, garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    prepare_folder(path.parent)
    path.write_bytes(garbage)
    with closing(open_database(path)) as opened:
        Audit(opened).append(kind="k", principal="p", body={})
    [kept] = aside(path)
    assert kept.read_bytes() == garbage
    assert "damaged" in caplog.text
    assert kept.name in caplog.text


def test_a_database_with_broken_pages_is_set_aside(path: Path) -> None:
    with closing(open_database(path)) as opened:
        for _ in range(200):
            Audit(opened).append(kind="k", principal="p", body={"text": "x" * 500})
    whole = bytearray(path.read_bytes())
    whole[4096 * 3 : 4096 * 6] = b"\xa5" * (4096 * 3)
    path.write_bytes(whole)
    with closing(open_database(path)) as opened:
        assert Audit(opened).rows() == []
        assert opened.problems() == []
    assert [kept.read_bytes() for kept in aside(path)] == [bytes(whole)]


def test_an_empty_file_is_simply_begun(path: Path) -> None:
    prepare_folder(path.parent)
    path.touch()
    with closing(open_database(path)) as opened:
        assert opened.problems() == []
    assert aside(path) == []


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / ".trysquare").write_text("a file in its place", encoding="utf-8")
    with pytest.raises(ConfigurationError) as refused:
        open_database(project_state(tmp_path))
    assert refused.value.where == str(tmp_path / ".trysquare")
    assert "--project" in str(refused.value.hint)
    assert (tmp_path / ".trysquare").read_text(encoding="utf-8") == "a file in its place"


def test_a_folder_in_the_files_place_is_a_clear_error(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(ConfigurationError) as refused:
        open_database(path)
    assert refused.value.where == str(path)
    assert isinstance(refused.value.__cause__, sqlite3.Error | OSError)


def test_a_file_that_may_not_be_written_is_a_clear_error_and_stays(path: Path) -> None:
    with closing(open_database(path)):
        pass
    read_only = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
    with closing(open_database(path)) as opened:
        opened._connection.close()
        opened._connection = read_only
        with pytest.raises(ToolError, match="readonly") as refused:
            Audit(opened).append(kind="k", principal="p", body={})
    assert refused.value.code == ErrorCode.STATE_UNAVAILABLE
    assert path.exists()


def test_a_network_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trysquare.store.location.filesystem_of", lambda folder: "nfs4")
    with pytest.raises(ConfigurationError, match="nfs4") as refused:
        open_database(project_state(tmp_path))
    assert refused.value.where == str(project_state(tmp_path).parent)
    assert "--project" in str(refused.value.hint)


def test_the_file_system_is_that_of_the_innermost_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "1 0 8:1 / / rw - ext4 /dev/sda rw\n"
        f"2 1 0:5 / {tmp_path} rw shared:1 - nfs4 server:/home rw\n"
        f"3 1 0:6 / {tmp_path}/other\\040place rw - tmpfs none rw\n",
        encoding="utf-8",
    )
    (tmp_path / "other place").mkdir()
    assert filesystem_of(tmp_path / "other place", mounts) == "tmpfs"
    assert filesystem_of(tmp_path, mounts) == "nfs4"
    assert filesystem_of(Path("/usr"), mounts) == "ext4"
    assert filesystem_of(Path("/usr"), tmp_path / "none") is None


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_opens_its_own_connection(database: Database) -> None:
    Audit(database).append(kind="parent", principal="p", body={})
    process = os.fork()
    if process == 0:
        try:
            Audit(database).append(kind="child", principal="p", body={})
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    Audit(database).append(kind="parent", principal="p", body={})
    assert [row.kind for row in Audit(database).rows()] == ["parent", "child", "parent"]
    assert Audit(database).verify().sound
