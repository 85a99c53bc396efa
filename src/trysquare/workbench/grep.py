"""Line search: ripgrep selects the files if it is installed, Python's `re` decides."""

from __future__ import annotations

import asyncio
import json
import os
import posixpath
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.threads import run_in_thread
from trysquare.files.globs import file_matches
from trysquare.processes.supervisor import Command, ProcessSupervisor
from trysquare.processes.worker import WorkerResult, run_supervised
from trysquare.workbench import grep_worker
from trysquare.workbench.workspace import SKIPPED, Workspace, walk

SECONDS = 20.0
MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_LINE = 300
MAX_FILES = 100_000
_PLAIN_PIECES = re.compile(
    r"(?:[^\\\[\](){}?*+|^$.]|\\[bBdDsSwW.^$*+?()\[\]{}|\\/-]|\((?:\?:)?(?!\?)|\)|[?*+|^$.]"
    r"|\[\^?(?:[A-Za-z0-9]-[A-Za-z0-9]|[^\\\[\]&~^-]|\\[dDsSwW.^$*+?()\[\]{}|\\/-])+\]|\{\d+(?:,\d*)?\})*"
)
"""Patterns with the same meaning in ripgrep and Python."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    pattern: str
    below: str = "."
    file_patterns: Sequence[str] = ()
    """Globs; empty means every file."""
    ignore_case: bool = False
    limit: int = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    path: str
    line: int
    text: str


class Grep:
    def __init__(self, workspace: Workspace, supervisor: ProcessSupervisor) -> None:
        self._workspace, self._supervisor = workspace, supervisor

    async def search(self, query: Query, paths: Sequence[str] | None = None) -> tuple[list[Hit], bool]:
        """Search the given files, or all below a directory; also whether there are more hits."""
        check_pattern(query.pattern)
        try:
            async with asyncio.timeout(SECONDS):
                if paths is None:
                    paths = await self._candidates(query)
                return await self._match(query, paths)
        except TimeoutError:
            raise ToolError(
                f"Timeout: the search took longer than {SECONDS:g} s.",
                code=ErrorCode.TOOL_TIMEOUT,
                instruction="Name a smaller `directory` or a simpler pattern; nested repeats take very long.",
            ) from None

    async def _candidates(self, query: Query) -> list[str]:
        listed = await self._files_by_ripgrep(query)
        if listed is None:
            listed = await run_in_thread(lambda: self._all_files(query.below))
        patterns = query.file_patterns
        visible = (path for path in listed if not self._workspace.is_hidden(path))
        return [path for path in visible if not patterns or any(file_matches(path, each) for each in patterns)]

    def _all_files(self, below: str) -> list[str]:
        with self._workspace.open_folder(below):
            found = (each.path for each in walk(self._workspace, below) if each.is_file)
            return [path for _, path in zip(range(MAX_FILES), found, strict=False)]

    async def _files_by_ripgrep(self, query: Query) -> list[str] | None:
        """Files that may match; None if ripgrep cannot be used."""
        program = shutil.which("rg")
        if program is None or not _PLAIN_PIECES.fullmatch(query.pattern):
            return None
        # Opening the directory first gives the same errors with and without ripgrep.
        with self._workspace.open_folder(query.below):
            result = await self._run(program, _ripgrep_arguments(query))
        if result.status not in (0, 1):
            return None
        names = (posixpath.normpath(os.fsdecode(name)) for name in result.output.split(b"\0") if name)
        # In the order of a directory walk.
        return sorted(names, key=lambda path: path.split("/"))

    async def _match(self, query: Query, paths: Sequence[str]) -> tuple[list[Hit], bool]:
        request: JsonObject = {
            "pattern": query.pattern,
            "ignore_case": query.ignore_case,
            "root": str(self._workspace.root),
            "paths": list(paths),
            "limit": query.limit,
            "largest": MAX_FILE_BYTES,
            "longest": MAX_LINE,
        }
        program = str(Path(grep_worker.__file__))
        result = await self._run(sys.executable, ["-I", "-S", program], json.dumps(request).encode() + b"\n")
        if result.status != 0:
            raise ToolError("The search failed.", code=ErrorCode.COMMAND_FAILED, fields={"status": result.status})
        *found, end = (json.loads(line) for line in result.output.splitlines())
        return [Hit(**each) for each in found], end["more"]

    async def _run(self, program: str, arguments: Sequence[str], given: bytes = b"") -> WorkerResult:
        command = Command(
            program=program,
            arguments=arguments,
            environment={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"},
            folder=str(self._workspace.root),
        )
        return await run_supervised(self._supervisor, command, given=given)


def check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidArguments(
            f"`{pattern[:80]}` is not a valid regular expression: {error}.",
            instruction="Escape special characters with a backslash, as in \\( or \\[.",
        ) from None


def _ripgrep_arguments(query: Query) -> list[str]:
    skipped = [part for name in sorted(SKIPPED) for part in ("--glob", f"!{name}")]
    case = ["--ignore-case"] if query.ignore_case else []
    return [
        "--no-config", "--files-with-matches", "--null", "--no-messages", "--hidden", "--no-ignore", "--text", "--crlf",
        "--max-filesize", str(MAX_FILE_BYTES),
        *case, *skipped, "-e", query.pattern, "--", f"./{query.below}",
    ]  # fmt: skip
