"""Stored documents: kept by category and name, changed in one step, and counted."""

from __future__ import annotations

import threading
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import raises_code
from trysquare import ErrorCode, ToolError
from trysquare.store import LazyDatabase
from trysquare.store.content import DocumentChange, StoredDocument, StoredDocuments

GO = StoredDocument(category="lang", name="go", text="# Go\n", metadata={"tags": ["draft"]})


@pytest.fixture
def database(tmp_path: Path) -> Generator[LazyDatabase]:
    opened = LazyDatabase(tmp_path / ".trysquare" / "state.db")
    yield opened
    opened.close()


@pytest.fixture
def documents(database: LazyDatabase) -> StoredDocuments:
    return StoredDocuments(database, "team")


def to(document: StoredDocument) -> DocumentChange:
    return lambda before: document


def test_what_is_put_comes_back_in_order_of_category_and_name(documents: StoredDocuments) -> None:
    notes = StoredDocument(category="docs", name="notes", text="é\n", metadata={"priority": 3, "title": "Notes"})
    documents.put(GO, by="ada")
    documents.put(notes, by="ada")
    assert documents.all() == [notes, GO]


def test_reading_where_nothing_is_stored_leaves_no_file(documents: StoredDocuments, database: LazyDatabase) -> None:
    assert (documents.all(), documents.changes()) == ([], 0)
    assert not database.path.exists()


def test_projects_do_not_see_one_another(documents: StoredDocuments, database: LazyDatabase) -> None:
    documents.put(GO, by="ada")
    other = StoredDocuments(database, "other")
    assert (other.all(), other.changes()) == ([], 0)
    with raises_code(ErrorCode.RESOURCE_NOT_FOUND):
        other.remove("lang", "go")
    assert documents.all() == [GO]


def test_names_are_the_same_in_any_case(documents: StoredDocuments) -> None:
    documents.put(GO, by="ada")
    documents.put(replace(GO, name="GO", text="# Newer\n"), by="ada")
    assert [each.text for each in documents.all()] == ["# Newer\n"]


def test_a_change_sees_the_document_as_it_is_now(documents: StoredDocuments) -> None:
    seen: list[StoredDocument | None] = []

    def add_a_line(before: StoredDocument | None) -> StoredDocument:
        seen.append(before)
        return replace(before or GO, text=(before.text if before else "") + "line\n")

    assert documents.change("lang", "go", add_a_line, by="ada").text == "line\n"
    assert documents.change("lang", "go", add_a_line, by="ada").text == "line\nline\n"
    assert [each and each.text for each in seen] == [None, "line\n"]


def test_a_change_may_rename(documents: StoredDocuments) -> None:
    documents.put(GO, by="ada")
    moved = replace(GO, category="languages", name="golang")
    documents.change("lang", "go", to(moved), by="ada")
    assert documents.all() == [moved]
    documents.change("languages", "golang", to(replace(moved, name="GoLang")), by="ada")
    assert [each.name for each in documents.all()] == ["GoLang"]


def test_a_change_never_takes_the_place_of_another_document(documents: StoredDocuments) -> None:
    rust = replace(GO, name="rust", text="# Rust\n")
    documents.put(GO, by="ada")
    documents.put(rust, by="ada")
    with pytest.raises(ToolError, match="`lang/rust`") as caught:
        documents.change("lang", "go", to(replace(GO, name="rust")), by="ada")
    assert caught.value.code == ErrorCode.STATE_CONFLICT
    assert documents.all() == [GO, rust]


def test_a_change_that_fails_leaves_everything_as_it_was(documents: StoredDocuments) -> None:
    documents.put(GO, by="ada")
    before = documents.changes()

    def refuse(document: StoredDocument | None) -> StoredDocument:
        raise ToolError("no")

    with pytest.raises(ToolError, match="no"):
        documents.change("lang", "go", refuse, by="ada")
    assert (documents.all(), documents.changes()) == ([GO], before)


def test_every_change_is_counted_and_reading_is_not(documents: StoredDocuments) -> None:
    counts = [documents.changes()]
    for change in (
        lambda: documents.put(GO, by="ada"),
        lambda: documents.change("lang", "go", to(GO), by="ada"),
        lambda: documents.remove("lang", "go"),
    ):
        change()
        documents.all()
        counts.append(documents.changes())
    assert counts == [0, 1, 2, 3]


def test_removing_what_is_not_there_says_so_and_counts_nothing(documents: StoredDocuments) -> None:
    documents.put(GO, by="ada")
    with raises_code(ErrorCode.RESOURCE_NOT_FOUND, match="`lang/rust`"):
        documents.remove("lang", "rust")
    assert documents.changes() == 1


def test_threads_that_change_one_document_at_once_lose_no_change(documents: StoredDocuments) -> None:
    def work(name: str) -> None:
        for number in range(10):

            def add(before: StoredDocument | None, key: str = f"{name}-{number}") -> StoredDocument:
                known = before or GO
                return replace(known, metadata={**known.metadata, key: True})

            documents.change("lang", "go", add, by=name)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [kept] = documents.all()
    assert len(kept.metadata.keys() - {"tags"}) == 40
