"""Targets, locations, launch and attach specifications, and the DebugAdapter protocol."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
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
_NAMED = re.compile(r"""[^\s'"]+\.(?:[cm]?[jt]sx?|go|java|rs)::.+""")
"""A test by its name in a file of another language; names of JavaScript's tests are sentences."""
_END = re.compile(r"\](?=\s+(?:-|\S*\.py)|\s*$)")
_LAUNCHERS = ("uv", "poetry", "pdm", "hatch", "pipenv", "rye")
"""Programs whose `run` starts a command in the workspace's environment."""
_LAUNCHER_VALUES = ("--with", "--extra", "--group", "--python", "-p", "--package", "--env-file", "-e", "--env")
_LAUNCHER_SECONDS = 60
_OPTIONS_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_TEST_FILE = re.compile(r"(?:test_[^/]*|[^/]*_test)\.py")


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A program to run: its kind, its words, and its interpreter where it is Python or one was given."""

    kind: Kind
    words: tuple[str, ...]
    python: str = ""
    options: tuple[str, ...] = ()
    """Options of the interpreter, such as `-O`."""

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
        words = head.get(self.kind, [])
        if self.options:
            words = ["python", *self.options, *(words[1:] if self.kind != "pytest" else ["-m", "pytest"])]
        return shlex.join([*words, *self.words])


def read_target(text: str | Sequence[str], root: Path, *, runtime: str | None = None) -> Target:
    """Parse a target: a pytest node id, a test file, a Python file, or a command line, as text or split into words."""
    words = _split(text) if isinstance(text, str) else list(text)
    words, launcher = _without_launcher(words)
    python = runtime or python_of(root, launcher=launcher)
    first, *rest = words
    if _PYTHON.fullmatch(first):
        return _python_target(rest, runtime or (first if "/" in first else python), shlex.join(words))
    if Path(first).name in ("pytest", "py.test"):
        return Target(kind="pytest", words=tuple(rest), python=python)
    has_options = not rest or rest[0].startswith("-")
    is_tests = _TEST_FILE.fullmatch(Path(first).name) or (root / first).is_dir()
    is_node_id = "::" in first and Path(first.partition("::")[0]).suffix in ("", ".py")
    if is_node_id or (is_tests and has_options) or first in ("-k", "--lf", "--last-failed"):
        return Target(kind="pytest", words=tuple(words), python=python)
    if first.endswith(".py"):
        return Target(kind="program", words=tuple(words), python=python)
    return Target(kind="command", words=tuple(words), python=runtime or "")


def _without_launcher(words: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """A command without `uv run` and the like in front of it, and that launcher."""
    if len(words) < 3 or words[0] not in _LAUNCHERS or words[1] != "run":
        return words, ()
    rest = words[2:]
    while len(rest) > 1 and rest[0].startswith("-"):
        # An option's value stands behind it, unless it is a flag or written with `=`.
        has_value = rest[0] in _LAUNCHER_VALUES
        del rest[: 2 if has_value else 1]
    return rest or words, (words[0], "run")


def python_of(root: Path, environment: Mapping[str, str] | None = None, *, launcher: Sequence[str] = ()) -> str:
    """The Python of a workspace: of its own virtual environment, of the active one, or `sys.executable`.

    For a command behind `poetry run` and the like it is asked for, where the workspace has none of its own.
    """
    known = os.environ if environment is None else environment
    active = known.get("VIRTUAL_ENV")
    programs = (Path(each) / "bin" / "python" for each in (root / ".venv", root / "venv", active) if each)
    found = next((str(each) for each in programs if each.exists()), None)
    if found is None and launcher and (program := shutil.which(launcher[0])) is not None:
        words = [program, *launcher[1:], "python", "-c", "import sys; print(sys.executable)"]
        asked = subprocess.run(words, cwd=root, capture_output=True, text=True, timeout=_LAUNCHER_SECONDS, check=False)
        found = asked.stdout.strip().rpartition("\n")[2] or None
    return found or sys.executable


def _split(text: str) -> list[str]:
    """The words of a command line. Parameters of a node id are not split: pytest prints them without quotes."""
    if _NAMED.fullmatch(text.strip()):
        return [text.strip()]
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
    options, arguments = _interpreter_options(arguments)
    match arguments:
        case ["-m", "coverage", "run", *words] if words:
            return _python_target([each for each in words if each not in ("-a", "--branch", "-p")], python, text)
        case ["-m", "pytest" | "unittest" as kind, *words]:
            return Target(kind=kind, words=tuple(words), python=python, options=options)
        case ["-m", module, *words]:
            return Target(kind="module", words=(module, *words), python=python, options=options)
        case ["-c", code, *words]:
            return Target(kind="code", words=(code, *words), python=python, options=options)
        case [first, *words] if not first.startswith("-"):
            return Target(kind="program", words=(first, *words), python=python, options=options)
        case _:
            raise InvalidArguments(
                f"Unsupported target `{text}`.",
                instruction="Give a file, `python -m MODULE`, `python -c TEXT` or a test.",
            )


def _interpreter_options(arguments: list[str]) -> tuple[tuple[str, ...], list[str]]:
    """The options of the interpreter in front of what it runs, and the rest."""
    options: list[str] = []
    rest = list(arguments)
    while (
        rest and rest[0].startswith("-") and rest[0] not in ("-", "-c", "-m") and not rest[0].startswith(("-c", "-m"))
    ):
        count = 2 if rest[0] in _OPTIONS_WITH_VALUE else 1
        options += rest[:count]
        del rest[:count]
    return tuple(options), rest


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
    stdin: str | None = None
    """All of its input; None: it stays open for `DebugSession.send_input`."""
    stop_on_entry: bool = False

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
    chosen: Mapping[str, str] = field(default_factory=dict[str, str])
    """Versions or paths of debuggers, by the names of their packages."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchedProgram:
    """A program under its debugger, stopped before its first line."""

    debugger: Debugger
    child: ChildProcess | None
    close: Callable[[], object] = lambda: None
    """Closes resources of the adapter, such as a port."""
    send_input: Callable[[str], None] | None = None
    """Writes to the standard input of the program; None where it has ended or is not ours."""


class DebugAdapter(Protocol):
    """Starts the debugger of one language: a module of `adapters`."""

    async def launch(self, spec: LaunchSpec, environment: LaunchEnvironment) -> LaunchedProgram:
        """Start a program and stop it before its first line, so that breakpoints can be set."""
        ...

    async def attach(self, spec: AttachSpec, environment: LaunchEnvironment) -> LaunchedProgram:
        """Attach to a running program, or raise where the debugger cannot."""
        ...
