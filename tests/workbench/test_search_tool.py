"""search and navigate: what is found, and that ripgrep changes nothing but the time it takes."""

from __future__ import annotations

import random
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from tests.support import missing_component, size
from tests.workbench.workplace import Workplace, workplace
from trysquare.workbench import grep

FILES: dict[str, str | bytes] = {
    "src/app.py": "import os\n\n\ndef start(port):\n    return port\n\n\nclass Server:\n    def stop(self): ...\n",
    "src/deep/er/util.py": "LIMIT = 10\ndef start_all(): pass\n# naïve start\n",
    "web/app.ts": "export function start(): void {}\r\nconst LIMIT = 3\r\n",
    "README.md": "# Start\n\nTo start, run `app`.\n",
    ".env.example": "START=1\n",
    "node_modules/x/start.js": "start\n",
    "logo.png": b"\x89PNG\0start",
    "latin.txt": "na\xefve start\n".encode("latin-1"),
}


@pytest.fixture
async def place(tmp_path: Path) -> AsyncGenerator[Workplace]:
    async with workplace(tmp_path / "work") as opened:
        for path, text in FILES.items():
            opened.write(path, text)
        yield opened


@pytest.fixture(params=["with ripgrep", "without ripgrep"])
def ripgrep(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "without ripgrep":
        monkeypatch.setattr(grep.shutil, "which", lambda name: None)
    elif shutil.which("rg") is None:
        missing_component("ripgrep", "install the Debian package ripgrep")
    return str(request.param)


async def test_lines_are_found_by_a_pattern(place: Workplace, ripgrep: str) -> None:
    found = await place.done("search", action="grep", pattern=r"\bstart\b", case_insensitive=True)
    assert found["output"].split("\n") == snapshot(
        [
            ".env.example:1: START=1",
            "README.md:1: # Start",
            "README.md:3: To start, run `app`.",
            "latin.txt:1: na\ufffdve start",
            "src/app.py:4: def start(port):",
            "src/deep/er/util.py:3: # naïve start",
            "web/app.ts:1: export function start(): void {}",
        ]
    )


async def test_a_search_is_narrowed_by_folder_glob_and_number(place: Workplace, ripgrep: str) -> None:
    inside = await place.done("search", action="grep", pattern="start", directory="src/deep")
    assert inside["output"] == "src/deep/er/util.py:2: def start_all(): pass\nsrc/deep/er/util.py:3: # naïve start"
    by_glob = await place.done("search", action="grep", pattern="start", file_pattern="**/*.{ts,md}")
    assert [line.partition(":")[0] for line in by_glob["output"].split("\n")] == ["README.md", "web/app.ts"]
    first = await place.done("search", action="grep", pattern="start", max_results=1)
    assert first["data"] == {"count": 1}
    assert len(first["warnings"]) == 1


PIECES = [
    "start", "s", ".", "a+", r"\w+", r"\d", "^", "$", "(", ")", "|", "[a-z]", "[^a]", "x*", r"\b", "{2}", "?", " ",
    "def", "(?i)", "(?=a)", "é", r"\.", "{", r"\s", "(?:",
]  # fmt: skip


async def test_any_pattern_finds_the_same_with_and_without_ripgrep(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("rg") is None:
        missing_component("ripgrep", "install the Debian package ripgrep")
    chance = random.Random(7)
    patterns = ["".join(chance.choices(PIECES, k=chance.randint(1, 5))) for _ in range(size(30, 500))]
    with_ripgrep = [await found_by(place, pattern) for pattern in patterns]
    assert any(answer.get("success") for answer in with_ripgrep)
    monkeypatch.setattr(grep.shutil, "which", lambda name: None)
    for pattern, answer in zip(patterns, with_ripgrep, strict=True):
        assert await found_by(place, pattern) == answer, pattern


async def found_by(place: Workplace, pattern: str) -> dict[str, Any]:
    return await place.send("search", action="grep", pattern=pattern)


async def test_a_pattern_that_is_none_is_refused_with_the_place(place: Workplace) -> None:
    code, message = await place.refused("search", action="grep", pattern="def (")
    assert code == "VALIDATION_INVALID_PARAM"
    assert "missing ), unterminated subpattern at position 4" in message


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["src/app.py", "src/deep/er/util.py"]),
        ("src/*.py", ["src/app.py"]),
        ("src/**/*.py", ["src/app.py", "src/deep/er/util.py"]),
        ("**/er/*", ["src/deep/er/util.py"]),
        ("app.{py,ts}", ["src/app.py", "web/app.ts"]),
        ("[!a-z]*", [".env.example", "README.md"]),
        ("*" * 50 + "z" * 20, []),
    ],
)
async def test_files_are_found_by_their_names(place: Workplace, pattern: str, found: list[str]) -> None:
    told = await place.done("search", action="find_files", pattern=pattern)
    assert told["output"] == ("\n".join(found) or "Nothing was found.")


async def test_definitions_are_found_by_their_name(place: Workplace) -> None:
    told = await place.done("search", action="find_definition", name="start", language="python")
    assert told["output"] == "src/app.py:4-5: function start"
    assert (await place.done("search", action="find_definition", name="stop"))["data"]["count"] == 1
    limit = await place.done("search", action="find_definition", name="LIMIT", language="python")
    assert limit["output"] == "src/deep/er/util.py:1-1: variable LIMIT"


async def test_folders_are_listed_and_drawn(place: Workplace) -> None:
    assert (await place.done("navigate", action="list_directory"))["output"] == snapshot("""\
README.md (30 bytes)
latin.txt (12 bytes)
logo.png (10 bytes)
node_modules/
src/
web/\
""")
    tree = await place.done("navigate", action="get_tree", directory="src", max_depth=2, extension=".py")
    assert tree["output"] == snapshot("""\
app.py (85 bytes)
deep/
  er/\
""")
    hidden = await place.done("navigate", action="list_directory", show_hidden=True, extension=".example")
    assert ".env.example (8 bytes)" in hidden["output"]


async def test_a_file_is_outlined_and_its_imports_are_listed(place: Workplace) -> None:
    outline = await place.done("navigate", action="get_file_outline", path="src/app.py")
    assert outline["output"] == "4-5: function start\n8-9: class Server\n  9-9: function stop"
    imports = await place.done("navigate", action="find_imports", path="src/app.py")
    assert imports["output"] == "1: import os"


async def test_what_cannot_be_outlined_is_reported(place: Workplace) -> None:
    code, _ = await place.refused("navigate", action="get_file_outline", path="README.md")
    assert code == "CAPABILITY_NOT_SUPPORTED"


async def test_the_search_folder_must_be_there(place: Workplace, ripgrep: str) -> None:
    assert (await place.refused("search", action="grep", pattern="x", directory="nowhere"))[0] == "FILE_NOT_FOUND"
