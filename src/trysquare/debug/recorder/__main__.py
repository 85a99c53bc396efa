"""Record a run of a program and write a report to a file: `python <this directory> REPORT OPTIONS TARGET …`.

Runs in the interpreter of the program under test, which need not have Trysquare: only this directory is used.
"""

from __future__ import annotations

import json
import os
import sys
import types
from typing import Any


def _borrow_package() -> Any:
    """Import the recorder without running, or leaving behind, the packages above it."""
    folder = os.path.dirname(os.path.abspath(__file__))
    names = ["trysquare", "trysquare.debug", "trysquare.debug.recorder"]
    for name, path in zip(names, (None, None, folder)):  # noqa: B905 - the interpreter may be older than `strict`
        module = types.ModuleType(name)
        module.__path__ = [path] if path else []
        sys.modules[name] = module
    from trysquare.debug.recorder import runner

    # The program may be, or use, Trysquare itself: it must find the real one.
    for name in [name for name in sys.modules if name == "trysquare" or name.startswith("trysquare.")]:
        del sys.modules[name]
    return runner


def main() -> None:
    report_file, options_text, *target = sys.argv[1:]
    if sys.version_info < (3, 9):  # noqa: UP036 - the interpreter is the program's, not ours
        problem = f"recording needs Python 3.9 or newer, and `{sys.executable}` is {sys.version.split()[0]}"
        with open(report_file, "w", encoding="utf-8") as out:
            json.dump({"outcome": "not run", "problem": problem}, out)
        sys.exit(1)
    runner = _borrow_package()
    sys.path.pop(0)
    runner.run(report_file, json.loads(options_text), target)


if __name__ == "__main__":
    main()
