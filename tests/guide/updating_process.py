"""A process that changes a guide through its tools, or holds one of its locks until it is killed.

`python -m tests.guide.updating_process work FOLDER NAME COUNT` says `ready`, waits for a line, and then acknowledges
each round of updates with a line after it was made. `hold-state` and `hold-file` take a lock, say `holding`, and wait.
`update-once FOLDER hold-state` makes one update that needs that lock, and says at which moment it was made.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from trysquare.guide import GuideConfig, open_guide
from trysquare.guide.config import GuideFile
from trysquare.guide.library import Library, change_guide_file
from trysquare.guide.provider import GuideToolset
from trysquare.store import LazyDatabase
from trysquare.store.content import StoredDocument, StoredDocuments, StoredFlags
from trysquare.testing import accept, call

PROJECT = "team"


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def wait_for_a_line() -> None:
    sys.stdin.readline()


def state_of(folder: Path) -> LazyDatabase:
    return LazyDatabase(folder / ".trysquare" / "state.db")


@asynccontextmanager
async def opened_guide(folder: Path) -> AsyncGenerator[GuideToolset]:
    """The guide of a folder that holds `guide/`; nothing is watched, since the tools themselves tell of changes."""
    config = GuideConfig(project=PROJECT, root=folder, folders=(folder / "guide",), watch=False)
    project, user = state_of(folder), LazyDatabase(folder / "user" / "state.db")
    try:
        async with open_guide(config, project_state=lambda root: project, user_state=user) as toolset:
            yield toolset
    finally:
        project.close()
        user.close()


def updates(name: str, number: int) -> list[tuple[str, dict[str, Any]]]:
    """One round of updates: flags of two scopes, documents of its own and a shared one, and `guide.json`."""
    own = f"{name}-{number}"
    return [
        ("set_project_flag", {"name": own, "value": number}),
        ("set_feature_flag", {"name": own, "value": [name, str(number)]}),
        ("set_document", {"id": f"notes/{own}", "text": f"# {own}\n"}),
        # All processes change this one: each adds a key, and none may undo another's.
        ("set_document", {"id": "notes/shared", "text": "# Shared\n", "metadata": {own: number}}),
        ("set_category", {"name": own, "folder": "lang", "description": own}),
        ("set_collection", {"name": f"all-{own}", "expressions": ["lang"], "description": own}),
    ]


async def work(folder: Path, name: str, count: int) -> None:
    async with opened_guide(folder) as toolset:
        say("ready")
        wait_for_a_line()
        say("trying")
        for number in range(count):
            for tool, arguments in updates(name, number):
                result = await call(toolset, tool, arguments, human=accept(approve=True))
                if not result.success:
                    raise SystemExit(f"{tool} failed: {result.error}")
            say(f"{name} {number} {time.monotonic()}")


def hold_state(folder: Path) -> None:
    """Stop in the middle of a change of the state file."""

    def stop_inside(before: StoredDocument | None) -> StoredDocument:
        say("holding")
        wait_for_a_line()
        raise SystemExit("it was to be killed while it held the lock")

    StoredDocuments(state_of(folder), PROJECT).change("notes", "shared", stop_inside, by="holder")


def hold_file(folder: Path) -> None:
    """Stop in the middle of a change of `guide.json`."""

    def stop_inside(file: GuideFile) -> GuideFile:
        say("holding")
        wait_for_a_line()
        raise SystemExit("it was to be killed while it held the lock")

    change_guide_file(Library(folder / "guide"), stop_inside)


def update_once(folder: Path, lock: str) -> None:
    """Make one update that needs a lock, and say when it was made."""
    flags, library = StoredFlags(state_of(folder), f"project:{PROJECT}"), Library(folder / "guide")
    flags.set("before", True, by="waiting")
    say("ready")
    wait_for_a_line()
    say("trying")
    if lock == "hold-state":
        flags.set("after", True, by="waiting")
    else:
        change_guide_file(library, lambda file: file)
    say(str(time.monotonic()))


def main(what: str, folder: str, *rest: str) -> None:
    if what == "work":
        asyncio.run(work(Path(folder), rest[0], int(rest[1])))
    elif what == "update-once":
        update_once(Path(folder), *rest)
    else:
        {"hold-state": hold_state, "hold-file": hold_file}[what](Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
