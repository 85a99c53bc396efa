"""DirectoryRoot: whatever is asked of it, nothing outside is read, written or removed."""

from __future__ import annotations

import errno
import itertools
import os
import stat
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.files.attacks import LINKS, SECRET, SPECIALS, TRAVERSALS, make_stage
from tests.support import raises_code, size
from trysquare import ErrorCode, ToolError
from trysquare.files import root as beneath
from trysquare.files.root import DirectoryRoot, PathNotAllowed

ALL_PATHS = [*TRAVERSALS, *LINKS, *SPECIALS]


@pytest.fixture(params=["in one step", "by components"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of opening: the kernel's, and the one for systems that have none."""
    if request.param == "by components":
        monkeypatch.setattr(beneath, "_has_openat2", lambda: False)
    elif not beneath._has_openat2():
        pytest.skip("this kernel has no openat2")
    return str(request.param)


@pytest.fixture
def sealed(way: str, tmp_path: Path) -> Iterator[DirectoryRoot]:
    with DirectoryRoot(make_stage(tmp_path)) as folder:
        yield folder


def outside_state(folder: DirectoryRoot) -> dict[str, Any]:
    base = folder.root.parent
    kept = [base, base / "outside", base / "inside-sibling"]
    return {str(path): path.read_text() if path.is_file() else None for each in kept for path in each.iterdir()}


REFUSALS = (None, ErrorCode.VALIDATION_INVALID_PARAM, ErrorCode.RESOURCE_NOT_FOUND)


def refusal(act: Callable[[], object]) -> ErrorCode | None:
    """The code with which something is refused; None where it is done."""
    try:
        act()
    except ToolError as error:
        return error.code
    return None


def test_the_list_of_attacks_is_long():
    assert len(set(ALL_PATHS)) >= 120


def test_no_path_reads_anything_outside(sealed: DirectoryRoot):
    for path in ALL_PATHS:
        with pytest.raises(ToolError) as caught:
            sealed.read_text(path)
        assert SECRET not in caught.value.message
        assert str(sealed.root.parent) not in caught.value.message, path


def test_no_path_tells_of_anything_outside(sealed: DirectoryRoot):
    for path in ALL_PATHS:
        with pytest.raises(ToolError):
            sealed.stat(path)


def test_no_path_lists_anything_outside(sealed: DirectoryRoot):
    inside = {"b.md", "a/c.md"}
    for path in [*TRAVERSALS, "to_folder", "to_parent", "to_root", "to_proc", "to_proc_root", "a/up", "to_cwd"]:
        for list_all in (
            lambda path=path: [each.path for each in sealed.walk(path)],
            lambda path=path: sealed.folders(path),
        ):
            try:
                found = list_all()
            except ToolError:
                continue
            pytest.fail(f"{path!r} was listed: {found}")
    assert {each.path for each in sealed.walk()} == inside
    assert sealed.folders() == ["a", "folder.md"]


def test_no_path_writes_anything_outside(sealed: DirectoryRoot):
    before = outside_state(sealed)
    for path in ALL_PATHS:
        assert refusal(lambda path=path: sealed.write_bytes(path, b"overwritten")) in REFUSALS
    assert outside_state(sealed) == before


def test_no_path_removes_anything_outside(sealed: DirectoryRoot):
    before = outside_state(sealed)
    for path in ALL_PATHS:
        assert refusal(lambda path=path: sealed.remove(path)) in REFUSALS
    assert outside_state(sealed) == before


def test_a_refused_path_leaves_no_folder_behind(sealed: DirectoryRoot):
    for path in ("new/../../x.md", "new/..", "new/x\0.md", "new/\udcff.md", "new/" * 50 + "x.md", "new/" + "é" * 200):
        with pytest.raises(PathNotAllowed):
            sealed.write_bytes(path, b"x")
    assert not (sealed.root / "new").exists()


def test_writing_over_a_link_replaces_the_link(sealed: DirectoryRoot):
    sealed.write_bytes("to_file.md", b"mine")
    assert (sealed.root / "to_file.md").read_text() == "mine"
    assert not (sealed.root / "to_file.md").is_symlink()
    assert (sealed.root.parent / "secret.md").read_text() == SECRET


def test_removing_a_link_leaves_what_it_leads_to(sealed: DirectoryRoot):
    sealed.remove("to_file.md")
    assert not (sealed.root / "to_file.md").is_symlink()
    assert (sealed.root.parent / "secret.md").read_text() == SECRET


def test_a_link_that_stays_inside_shows_what_is_inside_or_nothing(sealed: DirectoryRoot, way: str):
    if way == "in one step":
        assert sealed.read_text("within.md") == "inside"
    else:
        with pytest.raises(PathNotAllowed):
            sealed.read_text("within.md")


def test_a_hard_link_is_a_file_of_the_folder(sealed: DirectoryRoot):
    # Nothing tells a hard link from any other name of a file. Whoever can make one could have copied the file as well;
    # writing to it makes a new file in its place and leaves the other name's contents alone.
    os.link(sealed.root.parent / "secret.md", sealed.root / "hard.md")
    assert sealed.read_text("hard.md") == SECRET
    sealed.write_bytes("hard.md", b"mine")
    assert (sealed.root.parent / "secret.md").read_text() == SECRET


def test_a_device_is_not_read(way: str):
    with DirectoryRoot(Path("/dev")) as devices:
        for name in ("null", "zero", "random"):
            with pytest.raises(PathNotAllowed, match="is not a regular file"):
                devices.read_bytes(name)
            with pytest.raises(PathNotAllowed, match="is not a regular file"):
                devices.stat(name)


def test_a_file_that_says_it_is_empty_and_is_not_is_still_bounded(way: str):
    with DirectoryRoot(Path("/proc/self")) as process, pytest.raises(PathNotAllowed, match="more than 10 bytes"):
        process.read_bytes("maps", limit=10)


def test_the_magic_links_of_proc_lead_nowhere(way: str):
    with DirectoryRoot(Path("/proc/self")) as process:
        for path in ("root/etc/passwd", "cwd/x", "exe", "fd/0"):
            with pytest.raises(ToolError):
                process.read_bytes(path)


def test_an_odd_name_that_really_is_inside_is_read(sealed: DirectoryRoot):
    for name in ("...", "..a.md", "a..md", "\uff0e\uff0e", "%2e%2e", "..\\x.md", "~", " .. ", "é\u0301.md"):
        sealed.write_bytes(name, name.encode())
        assert sealed.read_text(name) == name


@given(st.text(alphabet="./\\a%2e\0\uff0e~ \u2215", max_size=24))
def test_no_path_at_all_leads_outside(tmp_path_factory: pytest.TempPathFactory, path: str):
    base = tmp_path_factory.getbasetemp() / "any"
    if not base.exists():
        make_stage(base)
    with DirectoryRoot(base / "inside") as folder:
        assert SECRET not in _read_or_refused(folder, path)


@contextmanager
def repeated(act: Callable[[], None]) -> Generator[Callable[[], int]]:
    """Another thread does something over and over while the block lasts; yields how often it was done."""
    done, count = threading.Event(), [0]

    def run() -> None:
        while not done.is_set():
            act()
            count[0] += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield lambda: count[0]
    finally:
        done.set()
        thread.join(timeout=30)


def test_swapping_a_folder_for_a_link_while_reading_gives_nothing_away(sealed: DirectoryRoot):
    inside = sealed.root
    (inside / "a" / "secret.md").write_text("inside")
    (inside / "evil").symlink_to(inside.parent / "outside")

    def swap() -> None:
        os.rename(inside / "a", inside / "kept")
        os.rename(inside / "evil", inside / "a")
        os.rename(inside / "a", inside / "evil")
        os.rename(inside / "kept", inside / "a")

    with repeated(swap) as swaps:
        seen = {_read_or_refused(sealed, "a/secret.md") for _ in range(size(1_000, 20_000))}
        listed = {each.path for _ in range(size(50, 1_000)) for each in sealed.walk(".")}
        while swaps() == 0:
            seen.add(_read_or_refused(sealed, "a/secret.md"))
    assert seen <= {"inside", "refused"}
    assert listed <= {"a/c.md", "a/secret.md", "kept/c.md", "kept/secret.md", "b.md"}


def test_turning_a_link_outside_while_writing_changes_nothing_there(sealed: DirectoryRoot):
    inside = sealed.root
    before = outside_state(sealed)
    (inside / "turned").symlink_to("a")

    def turn() -> None:
        for target in ("../outside", "a"):
            (inside / "next").symlink_to(target)
            os.rename(inside / "next", inside / "turned")

    with repeated(turn) as turns:
        for round in range(size(200, 5_000)):
            _write_or_refused(sealed, f"turned/new{round}.md")
            _write_or_refused(sealed, f"turned/folder{round}/new.md")
        while turns() == 0:
            _write_or_refused(sealed, "turned/new.md")
    assert outside_state(sealed) == before


def _read_or_refused(sealed: DirectoryRoot, path: str) -> str:
    try:
        return sealed.read_text(path)
    except ToolError:
        return "refused"


def _write_or_refused(sealed: DirectoryRoot, path: str) -> None:
    try:
        sealed.write_bytes(path, b"new")
    except ToolError:
        return


# Reading


def test_text_is_read_with_and_without_a_mark_at_its_start(sealed: DirectoryRoot):
    (sealed.root / "bom.md").write_bytes(b"\xef\xbb\xbftext")
    assert sealed.read_text("bom.md") == "text"


def test_what_is_no_text_is_refused_with_the_byte(sealed: DirectoryRoot):
    (sealed.root / "bad.md").write_bytes(b"ab\xff")
    with pytest.raises(PathNotAllowed, match=r"not UTF-8 text \(byte 2\)"):
        sealed.read_text("bad.md")


def test_a_large_file_is_refused_by_its_size(sealed: DirectoryRoot):
    (sealed.root / "big.md").write_bytes(b"x" * 11)
    with pytest.raises(PathNotAllowed, match="11 bytes; at most 10"):
        sealed.read_bytes("big.md", limit=10)


def test_hidden_underscored_and_unreadable_names_are_not_listed(sealed: DirectoryRoot):
    for name in (b".hidden.md", b"_draft.md", b"bad\xff.md"):
        (sealed.root / os.fsdecode(name)).write_text("x")
    for folder in (".git", "_drafts"):
        (sealed.root / folder).mkdir()
        (sealed.root / folder / "x.md").write_text("x")
    assert {each.path for each in sealed.walk()} == {"b.md", "a/c.md"}
    assert sealed.folders() == ["a", "folder.md"]


def test_only_so_many_levels_are_walked(sealed: DirectoryRoot):
    (sealed.root / "a" / "b" / "deep.md").write_text("x")
    assert [each.path for each in sealed.walk(max_depth=2)] == ["a/c.md", "b.md"]
    assert [each.path for each in sealed.walk("a/", max_depth=2)] == ["a/b/deep.md", "a/c.md"]


def test_a_state_of_a_folder_tells_of_new_and_removed_files(sealed: DirectoryRoot):
    visited: dict[str, tuple[int, ...]] = {}
    list(sealed.walk(visited=visited))
    assert set(visited) == {".", "a", "a/b", "folder.md"}


def test_a_folder_that_was_replaced_is_noticed(sealed: DirectoryRoot):
    assert sealed.is_at_its_path()
    sealed.root.rename(sealed.root.parent / "moved")
    assert not sealed.is_at_its_path()
    sealed.root.mkdir()
    assert not sealed.is_at_its_path()
    assert sealed.read_text("b.md") == "inside", "what is held stays the folder that it was"


def test_a_closed_folder_says_so(tmp_path: Path):
    folder = DirectoryRoot(tmp_path)
    folder.close()
    with pytest.raises(ToolError, match="is closed"):
        folder.read_text("x")


# Writing


def test_a_file_is_written_with_the_folders_that_it_needs(sealed: DirectoryRoot):
    sealed.write_bytes("new/deep/x.md", b"x")
    assert sealed.read_text("new/deep/x.md") == "x"


def test_a_file_keeps_its_permissions(sealed: DirectoryRoot):
    (sealed.root / "b.md").chmod(0o600)
    sealed.write_bytes("b.md", b"new")
    assert stat.S_IMODE((sealed.root / "b.md").stat().st_mode) == 0o600


def test_writing_over_a_folder_is_refused(sealed: DirectoryRoot):
    with pytest.raises(PathNotAllowed):
        sealed.write_bytes("a", b"x")
    assert not [each for each in os.listdir(sealed.root) if each.endswith(".tmp")]


def _failing(code: int) -> Callable[..., Any]:
    def fail(*arguments: Any, **options: Any) -> Any:
        raise OSError(code, os.strerror(code))

    return fail


class _FailingFile:
    """A file whose writing fails half way."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> _FailingFile:
        return self

    def __exit__(self, *ignored: object) -> None:
        os.close(self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def write(self, data: bytes) -> int:
        os.write(self._descriptor, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("step", ["open", "write", "fsync", "rename", "chmod"])
def test_a_write_that_fails_leaves_the_old_contents_and_nothing_else(
    sealed: DirectoryRoot, step: str, monkeypatch: pytest.MonkeyPatch
):
    before = sorted(os.listdir(sealed.root))
    with monkeypatch.context() as patched:
        if step == "write":
            patched.setattr(os, "fdopen", lambda descriptor, mode: _FailingFile(descriptor))
        elif step == "open":
            real = os.open
            patched.setattr(
                os, "open", lambda path, flags, *more, **options: _failing(errno.ENOSPC)()
                if flags & os.O_CREAT else real(path, flags, *more, **options),
            )  # fmt: skip
        else:
            name = {"fsync": "fsync", "rename": "rename", "chmod": "fchmod"}[step]
            patched.setattr(os, name, _failing(errno.ENOSPC))
        with pytest.raises(ToolError, match="No space left") as caught:
            sealed.write_bytes("b.md", b"new contents")
    assert caught.value.code == ErrorCode.STATE_UNAVAILABLE
    assert sealed.read_text("b.md") == "inside"
    assert sorted(os.listdir(sealed.root)) == before


def test_a_reader_sees_the_old_or_the_new_file_and_never_a_part(sealed: DirectoryRoot):
    versions = [bytes([letter]) * 50_000 for letter in b"xyz"]
    sealed.write_bytes("b.md", versions[0])
    following = itertools.cycle(versions)
    with repeated(lambda: sealed.write_bytes("b.md", next(following))) as writes:
        seen = {sealed.read_bytes("b.md") for _ in range(size(100, 2_000))}
        while writes() == 0:
            seen.add(sealed.read_bytes("b.md"))
    assert seen <= set(versions)


def test_a_missing_file_is_not_found(sealed: DirectoryRoot):
    for act in (sealed.read_text, sealed.stat, sealed.remove):
        with raises_code(ErrorCode.RESOURCE_NOT_FOUND):
            act("nosuch.md")


def test_descriptors_are_given_back(sealed: DirectoryRoot):
    before = len(os.listdir("/proc/self/fd"))
    for path in ALL_PATHS:
        for act in (sealed.read_text, sealed.stat, sealed.remove, lambda each: list(sealed.walk(each))):
            try:
                act(path)
            except ToolError:
                continue
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_that_follows_no_links_takes_every_path_for_what_it_says(way: str, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "secret.md").write_text("kept")
    (tmp_path / "other").symlink_to("kept")
    (tmp_path / "name.md").symlink_to("kept/secret.md")
    with DirectoryRoot(tmp_path, follow_links=False) as folder:
        assert folder.read_text("kept/secret.md") == "kept"
        for path in ("other/secret.md", "name.md"):
            with pytest.raises(ToolError):
                folder.read_text(path)
        with pytest.raises(ToolError):
            folder.write_bytes("other/new.md", b"new")
        with folder.open_folder("kept") as descriptor:
            assert os.listdir(descriptor) == ["secret.md"]
    assert os.listdir(tmp_path / "kept") == ["secret.md"]
