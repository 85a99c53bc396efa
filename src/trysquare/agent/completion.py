"""Completion: when a run may finish, and the check of what `finish` claims. A word in a text ends nothing."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from trysquare.agent.ledger import Ledger
from trysquare.core.shortening import short
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.files.beneath import open_beneath

FINISH = "finish"
GIVE_UP = "give_up"

TESTS_FAIL = "all tests were run and some fail: call the tool that runs them without a choice of tests to see which"

RunTests: TypeAlias = Callable[[str, JsonObject], Awaitable[bool]]
"""Calls a tool that runs tests, and says whether they pass."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Criteria:
    """What must hold before a run may finish."""

    tests_pass: bool = False
    """Tests were run after the last change and passed; at the end all of them are run once more."""
    files_exist: bool = False
    """`finish` names at least one file; those that it names exist in any case."""
    files_change: bool = False
    """At least one file was changed."""
    called: tuple[str, ...] = ()
    """Tools of which a call must have succeeded."""


def told(criteria: Criteria) -> tuple[str, ...]:
    """The criteria as a model reads them before it begins."""
    lines = [f"A call of `{tool}` has succeeded." for tool in criteria.called]
    if criteria.files_change:
        lines.append("At least one file was changed.")
    if criteria.tests_pass:
        lines.append("The tests were run after the last change and passed; then all of them are run to check it.")
    if criteria.files_exist:
        lines.append("`finish` names the files that were made or changed, and they exist.")
    return tuple(lines)


def missing(criteria: Criteria, ledger: Ledger) -> tuple[str, ...]:
    """What has to happen before `finish` is open, by the facts; nothing where it is."""
    wanted = [f"call `{tool}` successfully" for tool in criteria.called if not ledger.was_called(tool)]
    if not ledger.has_called:
        wanted.append("do something first: no call of a tool has succeeded yet")
    if criteria.files_change and not ledger.modified_files:
        wanted.append("change at least one file")
    if criteria.tests_pass and not ledger.tests_passed:
        wanted.append("run the tests after the last change and see them pass")
    return tuple(wanted)


async def checked_evidence(
    criteria: Criteria, ledger: Ledger, files: Sequence[str], *, root: Path | None, run_tests: RunTests
) -> tuple[str, ...]:
    """What is not as `finish` claims, looked at for real; nothing where all of it is true."""
    wrong = [*missing(criteria, ledger), *await run_in_thread(lambda: _missing_files(files, root))]
    if criteria.files_exist and not files:
        wrong.append("name the files that were made or changed in `files`")
    whole = ledger.whole_test_call if criteria.tests_pass and not wrong else None
    if whole is not None and not await run_tests(*whole):
        wrong.append(TESTS_FAIL)
    return tuple(wrong)


def _missing_files(files: Sequence[str], root: Path | None) -> list[str]:
    if not files or root is None:
        return [f"`{short(name)}` cannot be looked at: this run has no folder" for name in files]
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return [f"`{short(name)}` does not exist" for name in files if not _exists(folder, _relative(name, root))]
    finally:
        os.close(folder)


def _relative(name: str, root: Path) -> str:
    plain = name.removeprefix(f"{root.as_posix()}/")
    return plain.removeprefix("./")


def _exists(folder: int, path: str) -> bool:
    try:
        os.close(open_beneath(folder, path, os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True
