"""Grep: lines that match a pattern. ripgrep, where it is installed, finds the files; Python's own patterns decide."""

from __future__ import annotations

import json
import os
import posixpath
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import anyio

from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.processes.child import Command
from trysquare.processes.nursery import Nursery
from trysquare.workbench.finding import grep_program
from trysquare.workbench.finding.globs import matches
from trysquare.workbench.shell.running import Collected, collect
from trysquare.workbench.tree import SKIPPED, walk
from trysquare.workbench.workspace import Workspace

SECONDS = 20.0
LARGEST_FILE = 4 * 1024 * 1024
LONGEST_LINE = 300
MOST_FILES = 100_000
_PLAIN_PIECES = re.compile(
    r"(?:[^\\\[\](){}?*+|^$.]|\\[bBdDsSwW.^$*+?()\[\]{}|\\/-]|\((?:\?:)?(?!\?)|\)|[?*+|^$.]"
    r"|\[\^?(?:[A-Za-z0-9]-[A-Za-z0-9]|[^\\\[\]&~^-]|\\[dDsSwW.^$*+?()\[\]{}|\\/-])+\]|\{\d+(?:,\d*)?\})*"
)
"""Patterns that mean the same to ripgrep and to Python."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """What is looked for, and where."""

    pattern: str
    below: str = "."
    file_patterns: Sequence[str] = ()
    """Globs, one of which a file must fit; none means every file."""
    ignore_case: bool = False
    limit: int = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """One line that matches."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Hits:
    """The lines that match, and whether there are more."""

    found: tuple[Hit, ...]
    more: bool = False


class Grep:
    """Searches one workspace."""

    def __init__(self, workspace: Workspace, nursery: Nursery) -> None:
        self._workspace, self._nursery = workspace, nursery

    async def search(self, query: Query, paths: Sequence[str] | None = None) -> Hits:
        """Search some files, or all below a folder."""
        check_pattern(query.pattern)
        with anyio.move_on_after(SECONDS) as clock:
            if paths is None:
                paths = await self._candidates(query)
            return await self._matched(query, paths)
        assert clock.cancelled_caught
        raise ToolError(
            f"The search took longer than {SECONDS:g} s and was ended.",
            code=ErrorCode.TOOL_TIMEOUT,
            instruction="Name a smaller `directory`, or a simpler pattern: repeats inside of repeats take very long.",
        )

    async def _candidates(self, query: Query) -> list[str]:
        listed = await self._files_by_ripgrep(query)
        if listed is None:
            listed = await run_in_thread(lambda: self._all_files(query.below))
        patterns = query.file_patterns
        seen = (path for path in listed if not self._workspace.is_hidden(path))
        return [path for path in seen if not patterns or any(matches(path, each) for each in patterns)]

    def _all_files(self, below: str) -> list[str]:
        with self._workspace.open_folder(below):
            found = (each.path for each in walk(self._workspace, below) if each.is_file)
            return [path for _, path in zip(range(MOST_FILES), found, strict=False)]

    async def _files_by_ripgrep(self, query: Query) -> list[str] | None:
        """The files that may hold a match, or None where ripgrep cannot tell."""
        program = shutil.which("rg")
        if program is None or not _PLAIN_PIECES.fullmatch(query.pattern):
            return None
        # The folder is opened first, so that what cannot be searched is told the same way with and without ripgrep.
        with self._workspace.open_folder(query.below):
            arguments = _ripgrep_arguments(query)
            collected = await self._collected(program, arguments)
        if collected.status not in (0, 1):
            return None
        names = (posixpath.normpath(os.fsdecode(name)) for name in collected.output.split(b"\0") if name)
        return sorted(names, key=_order)

    async def _matched(self, query: Query, paths: Sequence[str]) -> Hits:
        request: JsonObject = {
            "pattern": query.pattern,
            "ignore_case": query.ignore_case,
            "root": str(self._workspace.root),
            "paths": list(paths),
            "limit": query.limit,
            "largest": LARGEST_FILE,
            "longest": LONGEST_LINE,
        }
        program = str(Path(grep_program.__file__))
        collected = await self._collected(sys.executable, ["-I", "-S", program], json.dumps(request).encode() + b"\n")
        if collected.status != 0:
            raise ToolError("The search failed.", code=ErrorCode.COMMAND_FAILED, fields={"status": collected.status})
        return _read(collected.output.splitlines())

    async def _collected(self, program: str, arguments: Sequence[str], given: bytes = b"") -> Collected:
        command = Command(
            program=program,
            arguments=arguments,
            environment={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"},
            folder=str(self._workspace.root),
        )
        return await collect(self._nursery, command, given=given)


def check_pattern(pattern: str) -> None:
    """Refuse what is no pattern."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidArguments(
            f"`{pattern[:80]}` is no regular expression: {error}.",
            instruction="Write special letters with a backslash before them, such as \\( or \\[.",
        ) from None


def _ripgrep_arguments(query: Query) -> list[str]:
    skipped = [part for name in sorted(SKIPPED) for part in ("--glob", f"!{name}")]
    case = ["--ignore-case"] if query.ignore_case else []
    return [
        "--no-config", "--files-with-matches", "--null", "--no-messages", "--hidden", "--no-ignore", "--text", "--crlf",
        "--max-filesize", str(LARGEST_FILE),
        *case, *skipped, "-e", query.pattern, "--", f"./{query.below}",
    ]  # fmt: skip


def _order(path: str) -> list[str]:
    """The order in which a walk finds files."""
    return path.split("/")


def _read(lines: Iterable[bytes]) -> Hits:
    read = [cast(JsonObject, json.loads(line)) for line in lines]
    found = tuple(Hit(path=each["path"], line=each["line"], text=each["text"]) for each in read[:-1])
    return Hits(found=found, more=read[-1]["more"])
