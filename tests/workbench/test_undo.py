"""What is kept of changes: enough to take them back, and no more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trysquare import ErrorCode, ToolError
from trysquare.workbench import undo as undo_journal
from trysquare.workbench.undo import UndoLog


def test_a_change_that_was_recorded_and_never_made_is_passed_over(tmp_path: Path) -> None:
    journal = UndoLog(tmp_path)
    journal.record("a.txt", b"one", b"two")
    journal.record("a.txt", b"two", b"three")  # and then the process ended
    assert journal.last_change("a.txt", b"two").data == b"one"


def test_files_are_kept_apart_and_only_their_own_changes_count(tmp_path: Path) -> None:
    journal = UndoLog(tmp_path)
    journal.record("a.txt", b"one", b"two")
    journal.record("b.txt", None, b"two")
    assert journal.last_change("a.txt", b"two").data == b"one"
    assert journal.last_change("b.txt", b"two").before is None
    with pytest.raises(ToolError) as refused:
        journal.last_change("a.txt", b"else")
    assert refused.value.code == ErrorCode.FILE_CONFLICT


def test_old_changes_are_forgotten_by_number_and_by_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo_journal, "MAX_CHANGES", 3)
    journal = UndoLog(tmp_path)
    for number in range(6):
        journal.record("a.txt", b"%d" % number, b"%d" % (number + 1))
    assert len(os.listdir(tmp_path / ".trysquare" / "undo")) == 3
    monkeypatch.setattr(undo_journal, "MAX_BYTES", 1_000)
    journal.record("b.txt", b"x" * 900, b"y")
    assert len(os.listdir(tmp_path / ".trysquare" / "undo")) == 1
    assert journal.last_change("b.txt", b"y").data == b"x" * 900


def test_what_is_kept_is_for_its_owner_only_and_ignored_by_git(tmp_path: Path) -> None:
    UndoLog(tmp_path).record("a.txt", b"secret", b"")
    [entry] = (tmp_path / ".trysquare" / "undo").iterdir()
    assert entry.stat().st_mode & 0o077 == 0
    assert (tmp_path / ".trysquare").stat().st_mode & 0o077 == 0
    assert (tmp_path / ".trysquare" / ".gitignore").read_text() == "*\n"
