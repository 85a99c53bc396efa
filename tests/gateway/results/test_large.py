"""Large results: kept for one principal, for a while, within bounds, and gone with the process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trysquare import ErrorCode, ToolError
from trysquare.core.errors import NotFound
from trysquare.gateway.results.store import ResultStore


def keep(results: ResultStore, data: bytes = b"data", principal: str = "me") -> str:
    return results.put(data, principal=principal, server="files", tool="read").handle


def is_kept(results: ResultStore, handle: str) -> bool:
    try:
        results.find(handle, principal="me")
    except NotFound:
        return False
    return True


def open_files(folder: Path) -> list[str]:
    """The files of a folder that this process holds open, those without a name among them."""
    descriptors = Path("/proc/self/fd")
    links = [os.readlink(descriptors / name) for name in os.listdir(descriptors) if (descriptors / name).is_symlink()]
    return [link for link in links if link.startswith(str(folder))]


def test_what_is_kept_is_read_in_pieces(tmp_path: Path) -> None:
    results = ResultStore(tmp_path)
    data = bytes(range(256)) * 1000
    body = results.find(keep(results, data), principal="me").body
    assert body.read() == data
    assert body.read(10, 20) == data[10:20]
    assert body.read(len(data) - 5, len(data) + 5) == data[-5:]
    assert body.read(len(data) + 1) == b""


def test_a_handle_of_somebody_else_is_answered_like_one_that_never_was(tmp_path: Path) -> None:
    results = ResultStore(tmp_path)
    handle = keep(results)
    with pytest.raises(NotFound) as foreign:
        results.find(handle, principal="you")
    with pytest.raises(NotFound) as unknown:
        results.find("x" * len(handle), principal="you")
    assert str(foreign.value).replace(handle, "") == str(unknown.value).replace("x" * len(handle), "")
    assert foreign.value.code == ErrorCode.HANDLE_NOT_FOUND


def test_no_file_has_a_name_and_none_is_left(tmp_path: Path) -> None:
    results = ResultStore(tmp_path / "results")
    keep(results)
    assert list((tmp_path / "results").iterdir()) == []
    assert len(open_files(tmp_path)) == 1
    results.close()
    assert open_files(tmp_path) == []


def test_a_result_has_an_end(tmp_path: Path) -> None:
    now = 0.0
    results = ResultStore(tmp_path, lifetime=10.0, clock=lambda: now)
    handle = keep(results)
    now = 9.9
    assert is_kept(results, handle)
    now = 10.0
    assert not is_kept(results, handle)


def test_the_least_used_goes_first_where_there_are_too_many_or_too_much(tmp_path: Path) -> None:
    results = ResultStore(tmp_path, max_results=2)
    first, second = keep(results), keep(results)
    results.find(first, principal="me")
    third = keep(results)
    assert [is_kept(results, handle) for handle in (first, second, third)] == [True, False, True]
    results = ResultStore(tmp_path, max_bytes=10)
    first, second = keep(results, b"x" * 6), keep(results, b"x" * 6)
    assert [is_kept(results, handle) for handle in (first, second)] == [False, True]


def test_whoever_keeps_most_gives_way(tmp_path: Path) -> None:
    results = ResultStore(tmp_path, max_results=3)
    mine = keep(results, b"x")
    for _ in range(10):
        keep(results, b"x" * 100, principal="you")
    assert is_kept(results, mine)


def test_whoever_reads_a_result_that_goes_reads_on(tmp_path: Path) -> None:
    results = ResultStore(tmp_path, max_results=1)
    body = results.find(keep(results, b"mine"), principal="me").body
    keep(results, b"other")
    assert body.read() == b"mine"


def test_a_disk_that_takes_nothing_says_that_the_call_was_done(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    results = ResultStore(tmp_path / "file" / "results")
    with pytest.raises(ToolError) as refused:
        keep(results)
    assert refused.value.fields == {"outcome": "done"}
    assert refused.value.code == ErrorCode.STATE_UNAVAILABLE
