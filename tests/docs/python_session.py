"""PythonSession: the Python blocks of a page, run one after the other in an interpreter of their own.

A process of its own, because a page may set what holds for a whole process: a tracer provider, a logger, a module.
Run as a program this file is that interpreter: it reads a request a line and answers with a line.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What became of a block: what it printed, and the type and text of the exception that ended it."""

    printed: str
    error_type: str | None = None
    error: str | None = None


class PythonSession:
    """An interpreter in a project's folder."""

    def __init__(self, project: Path, environment: Mapping[str, str]) -> None:
        python = shutil.which("python", path=environment["PATH"]) or sys.executable
        self._process = subprocess.Popen(
            [python, __file__, str(project)], cwd=project, env=dict(environment), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, encoding="utf-8",
        )  # fmt: skip

    def execute(self, code: str, *, file: str, fresh: bool) -> Ran:
        """Run some lines with the names of those before, or without them."""
        return self._request({"code": code, "file": file, "fresh": fresh})

    def load(self, module: str) -> Ran:
        """Import a module of the project anew."""
        return self._request({"module": module})

    def _request(self, request: dict[str, Any]) -> Ran:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            return Ran(printed="", error_type="SystemExit", error="the block ended the interpreter")
        return Ran(**json.loads(answer))

    def close(self) -> None:
        """End the interpreter."""
        self._process.kill()
        self._process.communicate()


class _Interpreter:
    """The other side: holds the names of the page."""

    def __init__(self) -> None:
        self._main = self._new_main()

    def _new_main(self) -> ModuleType:
        # The real name of a script's module, so that annotations and pickles find their way as in a reader's own file.
        sys.modules["__main__"] = ModuleType("__main__")
        return sys.modules["__main__"]

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        printed = io.StringIO()
        error: Exception | None = None
        with contextlib.redirect_stdout(printed):
            try:
                self._run(request)
            except Exception as raised:  # noqa: BLE001 - the page's code; the test decides what it means
                error = raised
        told = {} if error is None else {"error_type": type(error).__name__, "error": str(error)}
        return {"printed": printed.getvalue(), **told}

    def _run(self, request: dict[str, Any]) -> None:
        if module := request.get("module"):
            sys.modules.pop(module, None)
            importlib.invalidate_caches()
            importlib.import_module(module)
            return
        if request["fresh"]:
            self._main = self._new_main()
        exec(compile(request["code"], request["file"], "exec", dont_inherit=True), vars(self._main))


def main() -> None:
    """Answer requests until there are no more."""
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # What the page's code reads and writes by itself must not mix with the requests and answers.
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - for the life of the process
    os.dup2(2, 1)
    sys.path[0] = sys.argv[1]
    interpreter = _Interpreter()
    for line in requests:
        answers.write(json.dumps(interpreter.answer(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
