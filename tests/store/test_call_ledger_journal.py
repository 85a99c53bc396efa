"""A journal: its lines stand at once, and only a process that has ended gives it away."""

from __future__ import annotations

from pathlib import Path

import pytest

from trysquare.store.call_ledger import Journal, orphaned_journals


def lines(folder: Path) -> list[tuple[str, list[bytes]]]:
    with orphaned_journals(folder) as left:
        return list(left.items())


def test_a_journal_in_use_is_left_to_its_owner(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "me")
    journal.append(b"one")
    assert lines(tmp_path) == []
    journal.close()
    assert lines(tmp_path) == [("me", [b"one"])]
    assert list(tmp_path.iterdir()) == []


def test_lines_of_both_files_are_found(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "me")
    journal.append(b"one")
    journal.rotate()
    journal.append(b"two")
    journal.close()
    assert lines(tmp_path) == [("me", [b"one", b"two"])]


def test_what_was_carried_over_is_emptied_and_the_rest_stays(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "me")
    journal.append(b"one")
    journal.rotate()
    journal.append(b"two")
    journal.clear_other()
    journal.rotate()
    journal.append(b"three")
    journal.close()
    assert sorted(lines(tmp_path)[0][1]) == [b"three", b"two"]


def test_a_journal_that_could_not_be_carried_over_is_left_for_the_next_try(tmp_path: Path) -> None:
    Journal(tmp_path, "me").close()

    def carry_over() -> None:
        with orphaned_journals(tmp_path) as left:
            assert list(left) == ["me"]
            raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        carry_over()
    assert lines(tmp_path) == [("me", [])]


def test_a_folder_that_is_not_there_has_no_journals(tmp_path: Path) -> None:
    assert lines(tmp_path / "none") == []


def test_two_who_take_over_at_once_do_not_get_the_same(tmp_path: Path) -> None:
    Journal(tmp_path, "me").close()
    with orphaned_journals(tmp_path) as first, orphaned_journals(tmp_path) as second:
        assert (list(first), second) == (["me"], {})
