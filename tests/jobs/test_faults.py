"""What goes wrong around the jobs: damaged and foreign files, a full disk, a database that is not there."""

from __future__ import annotations

import base64
import os
import pickle
import sqlite3
import stat
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.jobs.nest import STEPS, Hatchery, open_hatchery
from tests.jobs.worker import step_name
from trysquare import ConfigurationError
from trysquare.core.errors import NotFound
from trysquare.core.json import JsonObject
from trysquare.jobs import JobRun, jobs_file, open_engine, open_reader
from trysquare.jobs import factory as opening


@pytest.fixture(scope="module")
def hatchery() -> Generator[Hatchery]:
    with open_hatchery() as opened:
        yield opened


async def nothing(argument: JsonObject, run: JobRun) -> JsonObject:
    return {}


async def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    file.write_text("these are no jobs, " * 100, encoding="utf-8")
    before = file.read_bytes()
    for opened in (open_engine(jobs_file(tmp_path), {}), open_reader(jobs_file(tmp_path))):
        with pytest.raises(ConfigurationError, match=f"{file}: .*file is not a database"):
            async with opened:
                pass
    assert file.read_bytes() == before


async def test_a_damaged_file_is_refused_with_the_way_out(tmp_path: Path) -> None:
    async with open_engine(jobs_file(tmp_path), {"x": nothing}) as engine:
        await engine.wait(await engine.start("x", {}, title=""))
    file = tmp_path / "jobs.db"
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    held = bytearray(file.read_bytes())
    held[4096 * 3 : 4096 * 8] = os.urandom(4096 * 5)
    file.write_bytes(held)
    with pytest.raises(ConfigurationError, match="damaged"):
        async with open_reader(jobs_file(tmp_path)):
            pass


async def test_looking_for_jobs_where_none_were_started_makes_no_file(tmp_path: Path) -> None:
    async with open_reader(jobs_file(tmp_path)) as reader:
        assert list(await reader.list()) == []
        with pytest.raises(NotFound, match="no job"):
            await reader.status("abc")
    assert os.listdir(tmp_path) == []


async def test_an_empty_file_has_no_jobs(tmp_path: Path) -> None:
    (tmp_path / "jobs.db").touch()
    async with open_reader(jobs_file(tmp_path)) as reader:
        assert list(await reader.list()) == []
        with pytest.raises(NotFound, match="`abc`"):
            await reader.status("abc")


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file or directory"):
        async with open_engine(jobs_file(tmp_path / "gone"), {}):
            pass


async def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    async with open_engine(jobs_file(tmp_path), {}):
        assert stat.S_IMODE((tmp_path / "jobs.db").stat().st_mode) == 0o600


async def test_a_full_disk_stops_the_job_with_a_clear_error_and_it_continues_when_there_is_space(
    hatchery: Hatchery, tmp_path: Path
) -> None:
    nest = hatchery.nest(tmp_path)
    assert nest.live("job", bulk=200_000, kill=[step_name(2), "before"]) == -9
    room = (tmp_path / "jobs.db-wal").stat().st_size + 300_000
    assert nest.live("job", resume=True, room=room) in (0, 1)
    told = (tmp_path / "error").read_text(encoding="utf-8")
    assert told.startswith("STATE_UNAVAILABLE Job `job` ")
    assert told.endswith("trysquare jobs resume job")
    ran = len(nest.effects())
    assert nest.live("job", resume=True, answers=_all_skipped()) == 0
    async with open_reader(nest.url) as reader:
        assert (await reader.status("job")).state == "done"
    assert len(nest.effects()) > ran


def _all_skipped() -> dict[str, str]:
    return {step_name(number): "skip" for number in range(STEPS) if step_name(number).endswith("unknown")}


class Running:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (os.environ["PICKLED"],)


async def test_a_value_that_calls_itself_a_pickle_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_engine(jobs_file(tmp_path), {"x": nothing}) as engine:
        await engine.wait(await engine.start("x", {}, title="", job="evil"))
    trap = tmp_path / "it ran"
    monkeypatch.setenv("PICKLED", str(trap))
    value = base64.b64encode(pickle.dumps(Running())).decode()
    with sqlite3.connect(tmp_path / "jobs.db") as connection:
        connection.execute(
            "UPDATE workflow_status SET inputs = ?, output = ?, serialization = 'py_pickle'", (value, value)
        )
    async with open_reader(jobs_file(tmp_path)) as reader:
        found = await reader.status("evil")
    assert not trap.exists()
    assert found.argument == {}


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://user:hidden@host/db", "mysql"),
        ("postgresql://user:hidden@127.0.0.1:1/db", "127.0.0.1"),
        ("postgresql://user:hidden@host:port/db", "URL"),
    ],
)
async def test_an_address_that_leads_nowhere_is_named_without_its_password(url: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        async with open_engine(url, {}):
            pass
    assert "hidden" not in str(caught.value)


async def test_an_untested_version_of_dbos_opens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trysquare.jobs.dbos.version", lambda name: "4.0.0")
    with pytest.raises(ConfigurationError, match=r"4\.0\.0"):
        async with open_engine(jobs_file(tmp_path), {}):
            pass
    assert not (tmp_path / "jobs.db").exists()


async def test_a_missing_package_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "available", lambda: False)
    with pytest.raises(ConfigurationError, match=r"pip install 'trysquare\[jobs\]'"):
        async with open_engine(jobs_file(tmp_path), {}):
            pass
