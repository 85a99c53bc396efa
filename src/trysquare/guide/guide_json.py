"""Changes of `guide.json`: read, changed and written whole, by one process at a time, and never half."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager

from trysquare.core.errors import NotFound
from trysquare.guide.config import FILE, GuideFile, dump_guide_file, parse_guide_file
from trysquare.guide.library import Library

Change = Callable[[GuideFile], GuideFile]


def change_guide_file(library: Library, change: Change) -> GuideFile:
    """Apply a change to the file as it is now, not as it was last read, and write the outcome."""
    with _one_writer(library):
        changed = change(_current(library))
        text = dump_guide_file(changed)
        # What was written must be readable again: a change that breaks the file is refused before it is one.
        parse_guide_file(text, where=str(library.folder.root / FILE))
        library.folder.write_bytes(FILE, text.encode("utf-8"))
    library.changed()
    return changed


def _current(library: Library) -> GuideFile:
    try:
        text = library.folder.read_text(FILE)
    except NotFound:
        return GuideFile()
    return parse_guide_file(text, where=str(library.folder.root / FILE))


@contextmanager
def _one_writer(library: Library) -> Generator[None]:
    """Hold a lock that the system takes back when its holder dies, so that no dead process blocks a living one."""
    descriptor = os.open(library.folder.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
