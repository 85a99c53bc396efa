"""Targets: what a person or a model names to be run, told apart: tests, a Python program, or any other command."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from trysquare.core.errors import ErrorCode, InvalidArguments

Kind: TypeAlias = Literal["pytest", "unittest", "program", "module", "code", "command"]
_PYTHON = re.compile(r"(?:.*/)?(?:python(?:\d(?:\.\d+)?)?|pypy\d?)(?:\.exe)?")
_PARAMETERS = re.compile(r"""(?:^|(?<=\s))[^\s'"\[]+\.py(?:::[^\s'"\[]+)+\[""")
"""The beginning of a node id that goes on with parameters, which may hold blanks and quotes."""
_END = re.compile(r"\](?=\s+(?:-|\S*\.py)|\s*$)")
_TEST_FILE = re.compile(r"(?:test_[^/]*|[^/]*_test)\.py")


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What to run: its kind, its words, and the interpreter for it, where it is Python or one was named."""

    kind: Kind
    words: tuple[str, ...]
    python: str = ""

    @property
    def is_python(self) -> bool:
        return self.kind != "command"

    def with_words(self, more: Sequence[str]) -> Target:
        """The same with more words at its end."""
        return replace(self, words=(*self.words, *more))

    def __str__(self) -> str:
        head = {
            "pytest": ["pytest"],
            "unittest": ["python", "-m", "unittest"],
            "module": ["python", "-m"],
            "code": ["python", "-c"],
        }
        return shlex.join([*head.get(self.kind, []), *self.words])


def read_target(text: str | Sequence[str], root: Path, *, runtime: str | None = None) -> Target:
    """What a text names: a pytest node id, a test file, a Python file, or a command line; or words, split already."""
    words = _words(text) if isinstance(text, str) else list(text)
    text = text if isinstance(text, str) else shlex.join(text)
    python = runtime or python_of(root)
    first, *rest = words
    if _PYTHON.fullmatch(first):
        return _of_python(rest, python=runtime or (first if "/" in first else python), text=text)
    if first in ("pytest", "py.test"):
        return Target(kind="pytest", words=tuple(rest), python=python)
    if "::" in first or (_TEST_FILE.fullmatch(Path(first).name) and not rest):
        return Target(kind="pytest", words=tuple(words), python=python)
    if first.endswith(".py"):
        return Target(kind="program", words=tuple(words), python=python)
    return Target(kind="command", words=tuple(words), python=runtime or "")


def python_of(root: Path, environment: Mapping[str, str] | None = None) -> str:
    """The Python of a workspace: that of its own environment, of the active one, or the one that runs us."""
    known = os.environ if environment is None else environment
    folders = [root / ".venv", root / "venv", *([Path(known["VIRTUAL_ENV"])] if known.get("VIRTUAL_ENV") else [])]
    for folder in folders:
        if (found := folder / "bin" / "python").exists():
            return str(found)
    return sys.executable


def _words(text: str) -> list[str]:
    """The words of a command line. Parameters in a node id are taken as they are: pytest writes them without quotes."""
    words: list[str] = []
    rest = text
    try:
        while (begin := _PARAMETERS.search(rest)) is not None and (end := _END.search(rest, begin.end())) is not None:
            words.extend([*shlex.split(rest[: begin.start()]), rest[begin.start() : end.end()]])
            rest = rest[end.end() :]
        words.extend(shlex.split(rest))
    except ValueError as error:
        raise InvalidArguments(f"`target` cannot be read as a command: {error}.") from None
    if not words:
        raise InvalidArguments(
            "`target` is empty.",
            code=ErrorCode.VALIDATION_MISSING_PARAM,
            instruction="Name a failing test, such as tests/test_x.py::test_y, or a command.",
        )
    return words


def _of_python(rest: list[str], *, python: str, text: str) -> Target:
    match rest:
        case ["-m", "pytest", *words]:
            return Target(kind="pytest", words=tuple(words), python=python)
        case ["-m", "unittest", *words]:
            return Target(kind="unittest", words=tuple(words), python=python)
        case ["-m", module, *words]:
            return Target(kind="module", words=(module, *words), python=python)
        case ["-c", code, *words]:
            return Target(kind="code", words=(code, *words), python=python)
        case [first, *words] if not first.startswith("-"):
            return Target(kind="program", words=(first, *words), python=python)
        case _:
            raise InvalidArguments(
                f"`{text}` is not a program that can be run here.",
                instruction="Name a file, `python -m MODULE`, `python -c TEXT` or a test; no options of Python itself.",
            )
