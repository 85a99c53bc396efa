"""Library: what lies in a folder, read once and true at every call."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.support import size
from trysquare import ConfigurationError
from trysquare.files import watch as entries
from trysquare.guide import documents as reading
from trysquare.guide import library as library_module
from trysquare.guide import library as shelf
from trysquare.guide.config import Limits
from trysquare.guide.library import Library


def write(folder: Path, path: str, text: str = "text") -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def settle(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make everything old: times are set back, and what counts as changed just now is not asked for."""
    for module in (entries, shelf, library_module):
        monkeypatch.setattr(module, "is_recent", lambda changed_ns: False)
    for path in (folder, *folder.rglob("*")):
        os.utime(path, ns=(10**18, 10**18))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "guide"
    for path in ("lang/python.md", "lang/deep/go.md", "docs/api.md"):
        write(made, path, path)
    return made


@pytest.fixture
def library(folder: Path) -> Iterator[Library]:
    made = Library(folder)
    yield made
    made.close()


def names(library: Library, category: str) -> list[str]:
    """What a new call finds in a category."""
    library.revalidate()
    return [each.id.name for each in library.documents(category)]


def test_every_folder_is_a_category_and_every_markdown_file_a_document(library: Library):
    assert [each.name for each in library.categories()] == ["docs", "lang"]
    assert names(library, "lang") == ["deep/go", "python"]
    assert library.documents("lang")[1].text == "lang/python.md"
    assert library.documents("nosuch") == ()


def test_hidden_files_other_endings_and_links_are_left_out(folder: Path, library: Library):
    for path in ("lang/_draft.md", "lang/.hidden.md", "lang/x.txt", "_drafts/x.md", ".git/x.md", "lang/_deep/x.md"):
        write(folder, path)
    (folder / "lang" / "link.md").symlink_to("python.md")
    (folder / "linked").symlink_to("lang")
    library.changed()
    assert [each.name for each in library.categories()] == ["docs", "lang"]
    assert names(library, "lang") == ["deep/go", "python"]


Change = Callable[[Path], object]
CHANGES: dict[str, tuple[Change, str, list[str]]] = {
    "a new file": (lambda folder: write(folder, "lang/rust.md"), "lang", ["deep/go", "python", "rust"]),
    "a new file below": (lambda folder: write(folder, "lang/deep/c.md"), "lang", ["deep/c", "deep/go", "python"]),
    "a new folder below": (lambda folder: write(folder, "lang/new/x.md"), "lang", ["deep/go", "new/x", "python"]),
    "a removed file": (lambda folder: (folder / "lang/python.md").unlink(), "lang", ["deep/go"]),
    "a renamed file": (
        lambda folder: (folder / "lang/python.md").rename(folder / "lang/py.md"), "lang", ["deep/go", "py"]),
    "a renamed folder below": (
        lambda folder: (folder / "lang/deep").rename(folder / "lang/flat"), "lang", ["flat/go", "python"]),
    "a renamed category": (lambda folder: (folder / "lang").rename(folder / "tongue"), "tongue", ["deep/go", "python"]),
    "a removed category": (lambda folder: shutil.rmtree(folder / "lang"), "lang", []),
    "a new category": (lambda folder: write(folder, "new/x.md"), "new", ["x"]),
    "a category replaced": (
        lambda folder: ((folder / "lang").rename(folder / "old"), write(folder, "lang/x.md")), "lang", ["x"]),
    "a guide.json": (
        lambda folder: write(folder, "guide.json", '{"categories": {"lang": {"patterns": ["p*"]}}}'),
        "lang", ["python"]),
    "the whole folder made anew": (
        lambda folder: (shutil.rmtree(folder), write(folder, "lang/only.md")), "lang", ["only"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("age", ["settled", "young"])
def test_a_change_shows_at_the_next_call_before_any_watcher_tells(
    folder: Path, kind: str, age: str, monkeypatch: pytest.MonkeyPatch
):
    if age == "settled":
        settle(folder, monkeypatch)
    library = Library(folder)
    for category in ("lang", "docs"):
        names(library, category)
    before = library.version
    change, category, expected = CHANGES[kind]
    change(folder)
    assert names(library, category) == expected
    assert library.version > before


def test_what_did_not_change_is_not_even_looked_through(folder: Path, monkeypatch: pytest.MonkeyPatch):
    settle(folder, monkeypatch)
    library = Library(folder)
    first = library.documents("lang")
    before = library.version
    library.revalidate()
    assert library.documents("lang") is first
    assert library.is_current(first)
    assert library.version == before


def test_an_edit_is_noticed_for_the_documents_that_are_about_to_be_sent(folder: Path, library: Library):
    names(library, "lang")
    for text in ("other text", "OTHER TEXT"):
        write(folder, "lang/python.md", text)
        library.revalidate()
        library.is_current(library.documents("lang"))
        assert library.documents("lang")[1].text == text


def test_an_edit_that_keeps_size_and_time_is_noticed(folder: Path, library: Library):
    file = write(folder, "lang/python.md", "one")
    os.utime(file, ns=(10**18, 10**18))
    names(library, "lang")
    write(folder, "lang/other", "two")
    (folder / "lang/other").rename(file)
    os.utime(file, ns=(10**18, 10**18))
    assert not library.is_current(library.documents("lang"))
    assert library.documents("lang")[1].text == "two"


def test_a_removed_document_is_not_current(folder: Path, library: Library):
    found = library.documents("lang")
    (folder / "lang/python.md").unlink()
    assert not library.is_current(found)
    assert names(library, "lang") == ["deep/go"]


def test_only_what_changed_is_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch):
    read: list[str] = []

    def reading_of(identity: object, text: str, **more: object):
        read.append(str(identity))
        return reading.read_document(identity, text, **more)  # pyright: ignore[reportArgumentType]

    settle(folder, monkeypatch)
    monkeypatch.setattr(shelf, "read_document", reading_of)
    library = Library(folder)
    names(library, "lang")
    assert sorted(read) == ["lang/deep/go", "lang/python"]
    read.clear()
    write(folder, "lang/rust.md")
    library.changed("lang/rust.md")
    assert names(library, "lang") == ["deep/go", "python", "rust"]
    assert read == ["lang/rust"]


def test_a_change_seen_by_the_watcher_reaches_only_its_category(folder: Path, library: Library):
    names(library, "docs")
    names(library, "lang")
    before = library.version
    library.changed(".git/index")
    library.changed("_commands/x.md")
    assert library.version == before
    library.changed("lang/python.md")
    assert library.version == before + 1
    library.changed(".")
    assert library.version > before + 1


# guide.json


def test_guide_json_names_categories_collections_and_limits(folder: Path):
    write(folder, "guide.json", """{
      "categories": {
        "tidy": {"dir": "./lang//deep/", "description": "d"}, "all": {"dir": "."},
        "py": {"dir": "lang", "patterns": ["py*"]}
      },
      "collections": {"both": {"expressions": ["tidy", "docs"]}}
    }""")  # fmt: skip
    library = Library(folder)
    assert names(library, "tidy") == ["go"]
    assert names(library, "py") == ["python"]
    assert names(library, "all") == ["docs/api", "lang/deep/go", "lang/python"]
    assert library.collection("both") is not None
    assert [each.name for each in library.collections()] == ["both"]


@pytest.mark.parametrize(
    "outside",
    ["..", "../outside", "/etc", "lang/../..", ".git", "_commands", "lang/_x", "nosuch", "to_outside", "lang/python.md",
     "~", "a\\u0000b", "//lang", "..\\\\outside", "\\uff0e\\uff0e"],
)  # fmt: skip
def test_a_category_elsewhere_is_a_problem_and_has_no_documents(folder: Path, outside: str):
    for path in ("../outside/x.md", ".git/x.md", "_commands/x.md", "lang/_x/x.md"):
        write(folder, path)
    (folder / "to_outside").symlink_to("../outside")
    write(folder, "guide.json", f'{{"categories": {{"odd": {{"dir": "{outside}"}}}}}}')
    library = Library(folder)
    assert names(library, "odd") == []
    assert len(library.problems()) == 1
    assert names(library, "lang") == ["deep/go", "python"]


BROKEN = ["{", "[]", '{"categories": 1}', '{"nosuch": {}}', '{"categories": {"../x": {}}}', "[" * 100_000, "\xff", ""]


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_guide_json_is_reported_at_the_start_and_while_running_until_repaired(folder: Path, text: str):
    library = Library(folder)
    assert names(library, "lang") == ["deep/go", "python"]
    (folder / "guide.json").write_text(text, encoding="latin-1")
    for _ in range(2):
        library.revalidate()
        with pytest.raises(ConfigurationError, match=r"guide\.json"):
            library.categories()
    with pytest.raises(ConfigurationError, match=r"guide\.json"):
        Library(folder).categories()
    (folder / "guide.json").write_text('{"collections": {"c": {"expressions": ["lang"]}}}')
    assert names(library, "lang") == ["deep/go", "python"]
    assert library.collection("c") is not None


def test_a_guide_json_that_is_not_a_file_is_reported(folder: Path):
    (folder / "guide.json").mkdir()
    with pytest.raises(ConfigurationError, match="not a regular file"):
        Library(folder).categories()


def test_a_guide_json_that_leads_outside_is_reported(folder: Path):
    write(folder, "../outside.json", "{}")
    (folder / "guide.json").symlink_to("../outside.json")
    with pytest.raises(ConfigurationError, match="leads outside"):
        Library(folder).categories()


def test_a_missing_folder_is_reported(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="directory not found"):
        Library(tmp_path / "nosuch")


# Limits and problems


def test_more_documents_than_allowed_are_reported_and_not_read(folder: Path):
    for number in range(5):
        write(folder, f"lang/{number}.md")
    library = Library(folder, limits=Limits(documents=3))
    assert len(names(library, "lang")) == 3
    assert library.problems()[0].reason.startswith("7 documents")


def test_more_files_than_are_looked_at_are_reported(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shelf, "MAX_FILES_SEEN", 1)
    library = Library(folder)
    assert len(names(library, "lang")) == 1
    assert "more than 1 files" in library.problems()[0].reason


def test_large_broken_and_unreadable_documents_are_reported_and_the_others_read(folder: Path):
    write(folder, "lang/large.md", "x" * 200)
    write(folder, "lang/broken.md", "---\na: [1\n---\n")
    (folder / "lang/binary.md").write_bytes(b"\xff\xfe")
    write(folder, "lang/a/b/c/d.md")
    os.mkfifo(folder / "lang/fifo.md")
    (folder / "lang/link.md").symlink_to("/etc/hostname")
    library = Library(folder, limits=Limits(document_bytes=100, depth=3))
    assert names(library, "lang") == ["deep/go", "python"]
    reasons = {each.path: each.reason for each in library.problems()}
    expected = {
        "lang/large.md": "200 bytes", "lang/broken.md": "(line 3)", "lang/binary.md": "(byte 0)",
        "lang/a/b/c": "so deep", "lang/fifo.md": "regular file", "lang/link.md": "link",
    }  # fmt: skip
    assert reasons.keys() == expected.keys()
    assert [path for path, token in expected.items() if token not in reasons[path]] == []


def test_a_repaired_document_is_no_problem_any_more(folder: Path, library: Library):
    write(folder, "lang/python.md", "---\na: [1\n---\n")
    assert names(library, "lang") == ["deep/go"]
    write(folder, "lang/python.md", "repaired")
    library.changed("lang/python.md")
    assert names(library, "lang") == ["deep/go", "python"]
    assert library.problems() == []


def test_commands_are_read_as_they_are_now_and_a_bad_one_does_not_hide_the_others(folder: Path, library: Library):
    assert library.texts_below("_commands") == []
    write(folder, "_commands/git/review.md", "review")
    (folder / "_commands/bad.md").write_bytes(b"\xff")
    assert library.texts_below("_commands") == [("_commands/git/review.md", "review")]
    assert [each.path for each in library.problems()] == ["_commands/bad.md"]


def test_tags_follow_the_files(folder: Path, library: Library):
    write(folder, "lang/python.md", "---\ntags: [web]\n---\n")
    write(folder, "docs/api.md", "---\ntags: [web, http]\n---\n")
    assert [str(each.id) for each in library.tagged("web")] == ["docs/api", "lang/python"]
    (folder / "docs/api.md").unlink()
    library.revalidate()
    assert [str(each.id) for each in library.tagged("web")] == ["lang/python"]
    assert library.tagged("http") == ()


# Threads


def test_threads_read_while_others_change_and_never_see_half_a_document(folder: Path, library: Library):
    versions = ["a" * 5_000, "b" * 5_000]
    done = threading.Event()
    for number in range(20):
        write(folder, f"lang/{number}.md", versions[0])

    def change() -> int:
        rounds = 0
        while not done.is_set() or rounds == 0:
            library.folder.write_bytes(f"lang/{rounds % 20}.md", versions[rounds % 2].encode())
            library.changed(f"lang/{rounds % 20}.md" if rounds % 3 else None)
            rounds += 1
        return rounds

    def read() -> set[str]:
        seen: set[str] = set()
        for _ in range(size(30, 500)):
            library.revalidate()
            found = [each for each in library.documents("lang") if each.id.name.isdigit()]
            library.is_current(found)
            library.tagged("x")
            assert len(found) == 20
            seen.update(each.text for each in found)
        return seen

    with ThreadPoolExecutor(5) as pool:
        changing = pool.submit(change)
        reading_threads = [pool.submit(read) for _ in range(4)]
        try:
            seen = set[str]().union(*(each.result() for each in reading_threads))
        finally:
            done.set()
        assert changing.result() > 0
    assert seen <= set(versions)


# Everything at once


class FolderAndLibrary(RuleBasedStateMachine):
    """Any order of changes on disk: each call shows what lies there at that moment."""

    base: Path

    @initialize()
    def begin(self) -> None:
        self.folder = self.base / os.urandom(8).hex()
        self.folder.mkdir()
        self.library = Library(self.folder)

    def teardown(self) -> None:
        self.library.close()

    paths = st.sampled_from(["a/x.md", "a/y.md", "a/deep/x.md", "b/x.md", "b/_x.md", "c/x.txt"])

    @rule(path=paths, text=st.sampled_from(["one", "two"]))
    def write(self, path: str, text: str) -> None:
        write(self.folder, path, text)

    @rule(path=paths)
    def remove(self, path: str) -> None:
        (self.folder / path).unlink(missing_ok=True)

    @rule(names=st.permutations(["a", "b", "c"]))
    def rename(self, names: list[str]) -> None:
        if (self.folder / names[0]).is_dir() and not (self.folder / names[1]).exists():
            (self.folder / names[0]).rename(self.folder / names[1])

    @rule()
    def make_anew(self) -> None:
        shutil.rmtree(self.folder)
        self.folder.mkdir()

    @rule(path=st.none() | paths)
    def tell(self, path: str | None) -> None:
        self.library.changed(path)

    @invariant()
    def shows_what_is_there(self) -> None:
        self.library.revalidate()
        for category in self.library.categories():
            self.library.is_current(self.library.documents(category.name))
        shown = {
            str(each.id): each.text
            for category in self.library.categories()
            for each in self.library.documents(category.name)
        }
        there = {
            str(path.relative_to(self.folder).with_suffix("")): path.read_text()
            for path in self.folder.rglob("*.md")
            if not path.name.startswith("_")
        }
        assert shown == there


def test_any_order_of_changes_shows_at_once(tmp_path: Path):
    FolderAndLibrary.base = tmp_path
    case = FolderAndLibrary.TestCase
    case.settings = hypothesis_settings(max_examples=size(25, 500), stateful_step_count=15, deadline=None)
    case("runTest").debug()


def test_the_ending_of_a_document_may_be_in_capitals(folder: Path):
    write(folder, "lang/OLD.MD", "old")
    assert names(Library(folder), "lang") == ["OLD", "deep/go", "python"]
