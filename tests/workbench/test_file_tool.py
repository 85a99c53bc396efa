"""file and code_edit: what callers see of reading, changing, conflicts and taking back."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from tests.workbench.workplace import Workplace, workplace


@pytest.fixture
async def place(tmp_path: Path) -> AsyncGenerator[Workplace]:
    async with workplace(tmp_path / "work") as opened:
        yield opened


async def test_a_file_is_written_read_and_changed(place: Workplace) -> None:
    assert await place.done("file", action="write", path="src/a.py", content="one\ntwo\nthree\n") == snapshot(
        {
            "success": True,
            "output": "Wrote src/a.py: 3 lines.",
            "modified_files": ["src/a.py"],
            "data": {"path": "src/a.py", "version": "b6285c57e879", "lines": 3},
        }
    )
    replaced = await place.done("file", action="replace", path="src/a.py", old="two", new="2\n2b")
    assert replaced["output"] == "Replaced in src/a.py:\n1\tone\n2\t2\n3\t2b\n4\tthree"
    assert (place.root / "src/a.py").read_text() == "one\n2\n2b\nthree\n"
    read = await place.done("file", action="read", path="./src//a.py")
    assert (read["output"], read["modified_files"]) == ("one\n2\n2b\nthree", [])


async def test_lines_are_shown_with_numbers_and_changed_by_them(place: Workplace) -> None:
    place.write("a.py", "one\ntwo\nthree\n")
    shown = await place.done("code_edit", action="get_lines", path="a.py", start_line=2, end_line=3)
    assert shown["output"] == "2\ttwo\n3\tthree"
    await place.done("code_edit", action="edit_lines", path="a.py", start_line=2, end_line=3, new_content="2")
    await place.done("code_edit", action="insert_at_line", path="a.py", line_number=1, content="zero")
    last = await place.done("code_edit", action="delete_lines", path="a.py", start_line=2, end_line=2)
    assert (place.root / "a.py").read_text() == "zero\n2\n"
    assert last["output"] == "Deleted; a.py now:\n1\tzero\n2\t2"


async def test_whoever_has_not_read_a_file_cannot_edit_its_lines_or_write_over_it(place: Workplace) -> None:
    place.write("a.py", "one\n")
    edit = {"action": "edit_lines", "path": "a.py", "start_line": 1, "end_line": 1, "new_content": "x"}
    code, _ = await place.refused("code_edit", **edit)
    assert code == "FILE_CONFLICT"
    assert (await place.refused("file", action="write", path="a.py", content="x"))[0] == "FILE_CONFLICT"
    await place.of("bob").done("file", action="read", path="a.py")
    assert (await place.refused("code_edit", **edit))[0] == "FILE_CONFLICT"
    await place.done("file", action="read", path="a.py")
    await place.done("code_edit", **edit)


async def test_a_file_that_changed_since_is_left_alone_and_the_change_is_reported(place: Workplace) -> None:
    place.write("a.py", "one\ntwo\n")
    await place.done("file", action="read", path="a.py")
    place.write("a.py", "one\nTWO\n")
    told = await place.send("code_edit", action="delete_lines", path="a.py", start_line=2, end_line=2)
    assert told.pop("error")["code"] == "FILE_CONFLICT"
    assert told.pop("instruction")
    assert told == snapshot(
        {
            "success": False,
            "error_type": "file_conflict",
            "next": {"tool": "file", "arguments": {"action": "read", "path": "a.py"}},
            "path": "a.py",
            "version": "ff4bebae5b91",
            "changes": """\
--- as you read it
+++ now
@@ -1,2 +1,2 @@
 one
-two
+TWO\
""",
        }
    )
    assert (place.root / "a.py").read_text() == "one\nTWO\n"


async def test_a_version_stands_for_having_read_even_after_a_restart(tmp_path: Path) -> None:
    async with workplace(tmp_path) as place:
        place.write("a.py", "one\n")
        version = (await place.done("file", action="read", path="a.py"))["data"]["version"]
    async with workplace(tmp_path) as place:
        edit = {"action": "edit_lines", "path": "a.py", "start_line": 1, "end_line": 1, "new_content": "two"}
        await place.done("code_edit", **edit, version=version)
        assert (await place.refused("code_edit", **edit, version=version))[0] == "FILE_CONFLICT"
        assert (await place.refused("file", action="delete", path="a.py", version=version))[0] == "FILE_CONFLICT"


async def test_an_exact_match_needs_no_reading_first(place: Workplace) -> None:
    place.write("a.py", "one\ntwo\n")
    await place.done("file", action="replace", path="a.py", old="two", new="2")
    assert (place.root / "a.py").read_text() == "one\n2\n"


async def test_changes_are_taken_back_one_after_the_other(place: Workplace) -> None:
    for content in ("1\n", "2\n", "3\n"):
        await place.done("file", action="write", path="a.txt", content=content)
    await place.done("file", action="undo", path="a.txt")
    assert (place.root / "a.txt").read_text() == "2\n"
    await place.done("file", action="undo", path="a.txt")
    await place.done("file", action="undo", path="a.txt")
    assert not (place.root / "a.txt").exists()
    code, _ = await place.refused("file", action="undo", path="a.txt")
    assert code == "FILE_NOT_FOUND"


async def test_a_deleted_file_comes_back_with_its_permissions_even_a_binary_one(place: Workplace) -> None:
    file = place.write("run.bin", b"\x7fELF\0\xff")
    file.chmod(0o755)
    await place.done("file", action="delete", path="run.bin")
    assert not file.exists()
    await place.done("file", action="undo", path="run.bin")
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"\x7fELF\0\xff", 0o755)


async def test_what_somebody_else_wrote_is_not_taken_back(place: Workplace) -> None:
    await place.done("file", action="write", path="a.txt", content="mine\n")
    place.write("a.txt", "theirs\n")
    assert (await place.refused("file", action="undo", path="a.txt"))[0] == "FILE_CONFLICT"
    assert (place.root / "a.txt").read_text() == "theirs\n"


async def test_encoding_line_ends_and_permissions_are_kept(place: Workplace) -> None:
    file = place.write("a.txt", "\ufeffä\r\nb\r\n".encode("utf-16-le"))
    file.chmod(0o750)
    await place.done("file", action="replace", path="a.txt", old="b", new="c\nd")
    assert file.read_bytes() == "\ufeffä\r\nc\r\nd\r\n".encode("utf-16-le")
    assert file.stat().st_mode & 0o777 == 0o750
    await place.done("file", action="read", path="a.txt")
    await place.done("file", action="write", path="a.txt", content="new\nlines\n")
    assert file.read_bytes() == "\ufeffnew\r\nlines\r\n".encode("utf-16-le")


async def test_binary_files_are_refused_clearly(place: Workplace) -> None:
    place.write("a.png", b"\x89PNG\r\n\x1a\n\0\0")
    for call in ({"action": "read"}, {"action": "append", "content": "x"}):
        code, _ = await place.refused("file", path="a.png", **call)
        assert code == "FILE_NOT_ALLOWED"


async def test_a_long_file_is_shown_in_parts_with_the_call_for_the_next(place: Workplace) -> None:
    place.write("long.txt", "".join(f"line {number}\n" for number in range(1, 2_501)))
    seen: list[str] = []
    told = await place.done("file", action="read", path="long.txt")
    seen += told["output"].split("\n")
    while "next" in told:
        assert told["next"]["tool"] == "code_edit"
        told = await place.done("code_edit", **told["next"]["arguments"])
        seen += [line.partition("\t")[2] for line in told["output"].split("\n")]
    assert seen == [f"line {number}" for number in range(1, 2_501)]


async def test_a_missing_file_is_reported_with_the_nearest_names(place: Workplace) -> None:
    place.write("src/parser.py", "")
    code, message = await place.refused("file", action="read", path="src/parsr.py")
    assert code == "FILE_NOT_FOUND"
    assert "`src/parser.py`" in message


async def test_an_absolute_path_inside_the_workspace_is_taken(place: Workplace) -> None:
    place.write("a.txt", "inside")
    read = await place.done("file", action="read", path=str(place.root.resolve() / "a.txt"))
    assert read["data"]["path"] == "a.txt"


async def test_nothing_is_left_of_a_change_that_cannot_be_written(place: Workplace) -> None:
    place.write("a.txt", "one\n".encode("latin-1") + b"\xe9\n")
    code, _ = await place.refused("file", action="replace", path="a.txt", old="one", new="中")
    assert code == "FILE_NOT_ALLOWED"
    assert (place.root / "a.txt").read_bytes() == b"one\n\xe9\n"
    assert not [name for name in os.listdir(place.root) if name.endswith(".tmp")]


async def test_a_wrong_combination_of_arguments_is_refused(place: Workplace) -> None:
    assert (await place.refused("file", action="read", path="a", content="x"))[0] == "VALIDATION_UNKNOWN_PARAM"
    assert (await place.refused("code_edit", action="edit_lines", path="a"))[0] == "VALIDATION_MISSING_PARAM"
