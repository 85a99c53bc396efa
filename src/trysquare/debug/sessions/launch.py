"""Targets, locations, launch and attach specifications, and the DebugAdapter protocol."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.debug.debugger import Debugger
from trysquare.debug.sessions.session import DebugSession
from trysquare.processes.supervisor import ChildProcess, ProcessSupervisor

Kind: TypeAlias = Literal["pytest", "unittest", "program", "module", "code", "command"]
_PYTHON = re.compile(r"(?:.*/)?(?:python(?:\d(?:\.\d+)?)?|pypy\d?)(?:\.exe)?")
_PARAMETERS = re.compile(r"""(?:^|(?<=\s))[^\s'"\[]+\.py(?:::[^\s'"\[]+)+\[""")
"""The start of a node id with parameters, which may contain spaces and quotes."""
_END = re.compile(r"\](?=\s+(?:-|\S*\.py)|\s*$)")
_TEST_FILE = re.compile(r"(?:test_[^/]*|[^/]*_test)\.py")


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A program to run: its kind, its words, and its interpreter where it is Python or one was given."""

    kind: Kind
    words: tuple[str, ...]
    python: str = ""

    @property
    def is_python(self) -> bool:
        return self.kind != "command"

    def __str__(self) -> str:
        head = {
            "pytest": ["pytest"],
            "unittest": ["python", "-m", "unittest"],
            "module": ["python", "-m"],
            "code": ["python", "-c"],
        }
        return shlex.join([*head.get(self.kind, []), *self.words])


def read_target(text: str | Sequence[str], root: Path, *, runtime: str | None = None) -> Target:
    """Parse a target: a pytest node id, a test file, a Python file, or a command line, as text or split into words."""
    words = _split(text) if isinstance(text, str) else list(text)
    python = runtime or python_of(root)
    first, *rest = words
    if _PYTHON.fullmatch(first):
        return _python_target(rest, runtime or (first if "/" in first else python), shlex.join(words))
    if first in ("pytest", "py.test"):
        return Target(kind="pytest", words=tuple(rest), python=python)
    if "::" in first or (_TEST_FILE.fullmatch(Path(first).name) and not rest):
        return Target(kind="pytest", words=tuple(words), python=python)
    if first.endswith(".py"):
        return Target(kind="program", words=tuple(words), python=python)
    return Target(kind="command", words=tuple(words), python=runtime or "")


def python_of(root: Path, environment: Mapping[str, str] | None = None) -> str:
    """The Python of a workspace: of its own virtual environment, of the active one, or `sys.executable`."""
    known = os.environ if environment is None else environment
    active = known.get("VIRTUAL_ENV")
    programs = (Path(each) / "bin" / "python" for each in (root / ".venv", root / "venv", active) if each)
    return next((str(each) for each in programs if each.exists()), sys.executable)


def _split(text: str) -> list[str]:
    """The words of a command line. Parameters of a node id are not split: pytest prints them without quotes."""
    words: list[str] = []
    rest = text
    try:
        while (begin := _PARAMETERS.search(rest)) is not None and (end := _END.search(rest, begin.end())) is not None:
            words.extend([*shlex.split(rest[: begin.start()]), rest[begin.start() : end.end()]])
            rest = rest[end.end() :]
        words.extend(shlex.split(rest))
    except ValueError as error:
        raise InvalidArguments(f"`target` is not a valid command line: {error}.") from None
    if not words:
        raise InvalidArguments(
            "`target` is empty.",
            code=ErrorCode.VALIDATION_MISSING_PARAM,
            instruction="Give a failing test, such as tests/test_x.py::test_y, or a command.",
        )
    return words


def _python_target(arguments: list[str], python: str, text: str) -> Target:
    match arguments:
        case ["-m", "pytest" | "unittest" as kind, *words]:
            return Target(kind=kind, words=tuple(words), python=python)
        case ["-m", module, *words]:
            return Target(kind="module", words=(module, *words), python=python)
        case ["-c", code, *words]:
            return Target(kind="code", words=(code, *words), python=python)
        case [first, *words] if not first.startswith("-"):
            return Target(kind="program", words=(first, *words), python=python)
        case _:
            raise InvalidArguments(
                f"Unsupported target `{text}`.",
                instruction="Give a file, `python -m MODULE`, `python -c TEXT` or a test, without options of Python.",
            )


_LOCATION = re.compile(r"(?P<file>.+?):(?P<line>\d+)(?::(?P<column>\d+))?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Location:
    """A line of an existing file."""

    file: str
    line: int
    column: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")


def read_location(text: str, root: Path, *, column: int | None = None) -> Location:
    """Parse a location, relative to the workspace; the file must have the line."""
    found = _LOCATION.fullmatch(text.strip())
    if found is None:
        raise InvalidArguments(f"Invalid location `{text}`.", instruction="Write file:line, such as src/app.py:42.")
    file = (root / found["file"]).expanduser().resolve()
    line = int(found["line"])
    try:
        count = len(file.read_bytes().splitlines())
    except OSError as error:
        raise InvalidArguments(
            f"`{text}`: cannot read {file} ({error.strerror}).",
            instruction="Give the path relative to workspace_root, or an absolute path.",
        ) from None
    if not 1 <= line <= count:
        raise InvalidArguments(f"`{text}`: the file has {count} lines.", code=ErrorCode.VALIDATION_INVALID_PARAM)
    return Location(file=str(file), line=line, column=int(found["column"] or 0) or column)


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchSpec:
    target: Target
    root: Path
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    source_paths: tuple[str, ...] = ()
    """Source directories in addition to the root."""
    just_my_code: bool = False
    timeout: float = 30.0

    @property
    def title(self) -> str:
        return str(self.target)


@dataclass(frozen=True, kw_only=True, slots=True)
class AttachSpec:
    """A running program: a local process, or one whose debugger listens on a port."""

    root: Path
    pid: int | None = None
    host: str = "127.0.0.1"
    port: int | None = None
    source_paths: tuple[str, ...] = ()
    just_my_code: bool = False
    timeout: float = 30.0

    @property
    def title(self) -> str:
        return f"process {self.pid}" if self.pid is not None else f"{self.host}:{self.port}"


SessionSpec: TypeAlias = LaunchSpec | AttachSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchEnvironment:
    """The session that a debug adapter starts, and the services for it."""

    session: DebugSession
    supervisor: ProcessSupervisor
    open_child: Callable[[DebugSession, str], DebugSession | None]
    """Makes the session of a program that another one started, with its title; None where there are too many."""
    run_in_background: Callable[[Coroutine[None, None, None]], object]
    """Runs a task that may outlive the session."""
    shows_secrets: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchedProgram:
    """A program under its debugger, stopped before its first line."""

    debugger: Debugger
    child: ChildProcess | None
    close: Callable[[], object] = lambda: None
    """Closes resources of the adapter, such as a port."""


class DebugAdapter(Protocol):
    """Starts the debugger of one language: a module of `adapters`."""

    async def launch(self, spec: LaunchSpec, environment: LaunchEnvironment) -> LaunchedProgram:
        """Start a program and stop it before its first line, so that breakpoints can be set."""
        ...

    async def attach(self, spec: AttachSpec, environment: LaunchEnvironment) -> LaunchedProgram:
        """Attach to a running program, or raise where the debugger cannot."""
        ...
