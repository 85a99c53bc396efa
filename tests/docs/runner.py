"""Runs a page: its blocks in order, in one project folder, as a reader would who types them in.

Marks of a block, after its language:

    title="my_module.py"   the block is that file of the project; a Python file is imported
    append                 the block goes to the end of that file
    fresh                  the Python block sees no names of the blocks before it
    raises="ValueError"    the Python block ends with that exception; an `output` block shows `ValueError: text`
    exit="1"               the last command of the console block ends with that code
    background             the last command keeps running until the page's end; its shown output is awaited
    types="y"              the last command runs in a terminal, where a person types this
    learns="9228-MYBE"     this part of the output differs each time; where later blocks show it, the real one is meant

TOML is loaded as settings, unless its title is not `trysquare.toml`. An `output` block holds what the Python block
before it printed. In every shown output `…` stands for anything within a line, and a line that is only `…` for any
number of lines.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

from tests.docs.not_run import NOT_RUN
from tests.docs.pages import ROOT, Block, Page
from tests.docs.python_session import PythonSession, Ran
from trysquare.settings import load_settings

SHOWN_PORTS = ("8000", "8001")
"""The ports that the pages show. Pages run side by side, so each runs with free ones in their place."""
COMMAND_SECONDS = 60

_MARKS: dict[str, frozenset[str]] = {
    "python": frozenset({"title", "append", "fresh", "raises"}),
    "console": frozenset({"exit", "background", "types", "learns"}),
    "toml": frozenset({"title"}),
    "json": frozenset({"title"}),
    "markdown": frozenset({"title"}),
    # Files of other programs, which test_deployment.py runs.
    "dockerfile": frozenset({"title"}),
    "ini": frozenset({"title"}),
    "nginx": frozenset({"title"}),
    "html": frozenset({"title"}),
    "output": frozenset(),
    "text": frozenset(),
}


def check_form(block: Block) -> None:
    """Refuse a language or a mark that this machine does not know: it would look checked and would not be."""
    known = _MARKS.get(block.language)
    if known is None:
        raise AssertionError(f"{block.place}: unknown language `{block.language}`; known are {', '.join(_MARKS)}")
    if unknown := block.marks.keys() - known:
        raise AssertionError(f"{block.place}: unknown mark {', '.join(sorted(unknown))} on a {block.language} block")


def is_left_out(block: Block) -> bool:
    """Whether the block stands in the list of those that are not run."""
    return (block.page, first_line(block)) in NOT_RUN


def first_line(block: Block) -> str:
    return block.text.partition("\n")[0]


Compare: TypeAlias = Callable[[str, str, str], None]
"""Holds what a place shows against what came out."""


def compare(place: str, expected: str, actual: str) -> None:
    """Hold what a page shows against what came out."""
    shown, came = _trimmed(expected), _trimmed(actual)
    if not is_same(expected, actual):
        raise AssertionError(f"{place} shows\n\n{shown}\n\nbut this came out:\n\n{came}")


def is_same(expected: str, actual: str) -> bool:
    """Whether the shown text, with its ellipses, stands for what came out."""
    return re.fullmatch(_pattern(_trimmed(expected)), _trimmed(actual)) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def _pattern(shown: str) -> str:
    """The shown text as an expression; a line of `…` alone takes its own newline along."""
    parts = [r"(?:[^\n]*\n)*" if line == "…" else _line_pattern(line) + r"\n" for line in shown.splitlines()]
    whole = "".join(parts)
    if shown.endswith("\n…") or shown == "…":
        return whole.removesuffix(r"(?:[^\n]*\n)*") + r"(?:[^\n]*\n?)*"
    return whole.removesuffix(r"\n")


def _line_pattern(line: str) -> str:
    return "[^\\n]*".join(re.escape(piece) for piece in line.split("…"))


class Background:
    """A command that keeps running, and what it has written so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._written: list[str] = []
        self._changed = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._collect, daemon=True)
        self._reader.start()

    def _collect(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self._written.append(line)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_for(self, matches: Callable[[str], bool]) -> str:
        """Wait until what was written so far matches, or the command ends, or it takes too long."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or matches("".join(self._written)), timeout=COMMAND_SECONDS)
            return "".join(self._written)

    def stop(self) -> None:
        """End the command and let go of its pipe."""
        assert self._process.stdout is not None
        self._process.terminate()
        self._process.wait(timeout=COMMAND_SECONDS)
        self._reader.join(timeout=COMMAND_SECONDS)
        self._process.stdout.close()


def project_of(page: Path, folder: Path) -> Path:
    """The folder in which a page runs: an example's own files, or an empty one."""
    if page.is_relative_to(ROOT / "examples") and page.parent != ROOT / "examples":
        shutil.copytree(page.parent, folder, ignore=shutil.ignore_patterns("__pycache__", ".trysquare", "node_modules"))
    else:
        folder.mkdir()
    return folder


class PageRun:
    """One page being run: its project folder, its Python names, and what still runs in the background."""

    def __init__(
        self,
        page: Page,
        project: Path,
        compare: Compare = compare,
        *,
        environment: Mapping[str, str] | None = None,
        leaves_out: Callable[[Block], bool] = is_left_out,
    ) -> None:
        self._page = page
        self._compare = compare
        self._project = project
        self._environment = dict(environment or reader_environment())
        self._leaves_out = leaves_out
        self._python: PythonSession | None = None
        self._printed: str | None = None
        self._background: list[Background] = []
        self._real = {port: _free_port() for port in SHOWN_PORTS}
        """What the page shows -> what is meant in this run."""

    def run(self) -> None:
        """Run every block; a failure names the block."""
        try:
            for block in self._page.blocks:
                check_form(block)
                if not self._leaves_out(block):
                    self._run_block(block)
        finally:
            self._close()

    def _close(self) -> None:
        if self._python is not None:
            self._python.close()
        for running in self._background:
            running.stop()

    def _run_block(self, block: Block) -> None:
        match block.language:
            case "python":
                self._printed = self._run_python(block)
            case "output":
                self._check_output(block)
            case "console":
                self._run_console(block)
            case "toml":
                self._check_toml(block)
                self._write(block)
            case "json":
                json.loads(block.text)
                self._write(block)
            case "markdown" | "dockerfile" | "ini" | "nginx" | "html":
                self._write(block)
            case _:
                pass

    def _write(self, block: Block) -> Path | None:
        if "title" not in block.marks:
            return None
        file = self._project / block.marks["title"]
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a" if "append" in block.marks else "w", encoding="utf-8") as stream:
            stream.write(("\n\n" if "append" in block.marks else "") + self._as_meant(block.text))
        return file

    def _check_toml(self, block: Block) -> None:
        """Parse it; and load it as settings, unless it says that it is another file."""
        tomllib.loads(block.text)
        if block.marks.get("title", "trysquare.toml") == "trysquare.toml":
            file = self._project / "settings-of-a-block.toml"
            file.write_text(block.text, encoding="utf-8")
            load_settings({}, {}, self._project, config=file)
            file.unlink()

    def _run_python(self, block: Block) -> str:
        file = self._write(block)
        ran = self._execute(block) if file is None else self._session().load(self._module_name(file))
        promised = block.marks.get("raises")
        if ran.error_type != promised:
            came = "it did not come" if ran.error_type is None else f"{ran.error_type}: {ran.error}"
            told = f"{promised} was promised, and " if promised else ""
            raise AssertionError(f"{block.place}: {told}{came}")
        return ran.printed if ran.error_type is None else f"{ran.printed}{ran.error_type}: {ran.error}\n"

    def _session(self) -> PythonSession:
        if self._python is None:
            self._python = PythonSession(self._project, self._environment)
        return self._python

    def _execute(self, block: Block) -> Ran:
        # Empty lines in front, so that a traceback shows the line of the page.
        code = "\n" * block.line + self._as_meant(block.text)
        return self._session().execute(code, file=str(self._page.path), fresh="fresh" in block.marks)

    def _module_name(self, file: Path) -> str:
        return ".".join(file.relative_to(self._project).with_suffix("").parts)

    def _check_output(self, block: Block) -> None:
        if self._printed is None:
            raise AssertionError(f"{block.place}: an `output` block needs a python block before it")
        self._compare(block.place, block.text, self._as_shown(self._printed))
        self._printed = None

    def _run_console(self, block: Block) -> None:
        commands = list(console_commands(block))
        for number, (command, shown) in enumerate(commands, start=1):
            last = number == len(commands)
            if last and "background" in block.marks:
                self._start(block, command, shown)
            else:
                self._check_command(block, command, shown, last=last)

    def _check_command(self, block: Block, command: str, shown: str, *, last: bool) -> None:
        typed = block.marks.get("types") if last else None
        run = _run_plainly if typed is None else partial(run_in_terminal, typed=typed)
        code, written = run(["sh", "-c", self._as_meant(command)], self._project, self._environment)
        place = f"{block.place} `{command}`"
        self._learn(block, shown, written)
        output = self._as_shown(written)
        expected = int(block.marks.get("exit", "0")) if last else 0
        if code != expected:
            raise AssertionError(f"{place} ended with {code}, not {expected}:\n\n{output}")
        self._compare(place, shown, output)

    def _learn(self, block: Block, shown: str, written: str) -> None:
        """Take from what came out the real form of what the page shows."""
        value = block.marks.get("learns", "")
        if not value or value not in shown or value in self._real:
            return
        escaped = re.escape(value)
        pattern = (
            _pattern(_trimmed(shown)).replace(escaped, r"(?P<real>[\w.~+/=-]+?)", 1).replace(escaped, r"(?P=real)")
        )
        if found := re.fullmatch(pattern, _trimmed(self._as_shown(written))):
            self._real[value] = found["real"]

    def _start(self, block: Block, command: str, shown: str) -> None:
        process = subprocess.Popen(
            ["sh", "-c", f"exec {self._as_meant(command)}"], cwd=self._project, env=self._environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8",
        )  # fmt: skip
        running = Background(process)
        self._background.append(running)
        pattern = re.compile(_pattern(_trimmed(shown)))
        written = running.wait_for(lambda text: bool(pattern.match(_trimmed(self._as_shown(text)))))
        self._compare(f"{block.place} `{command}`", shown, self._as_shown(written))

    def _as_meant(self, text: str) -> str:
        for shown, real in self._real.items():
            text = text.replace(shown, real)
        return text

    def _as_shown(self, text: str) -> str:
        for shown, real in self._real.items():
            text = text.replace(real, shown)
        return text.replace(str(self._project), ".")


def _run_plainly(command: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, encoding="utf-8", timeout=COMMAND_SECONDS, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def run_in_terminal(command: list[str], folder: Path, environment: dict[str, str], *, typed: str) -> tuple[int, str]:
    """Run a command in a terminal of its own and type something; returns its exit code and what the screen showed."""
    ours, theirs = os.openpty()
    written = bytearray()
    try:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        waiting = [f"{typed}\n".encode()]
        # At its end a terminal gives an error where a pipe gives nothing.
        with contextlib.suppress(OSError):
            while piece := os.read(ours, 65536):
                written += piece
                # A question ends with a space, where the person types.
                if waiting and written.endswith(b" "):
                    os.write(ours, waiting.pop())
        return process.wait(timeout=COMMAND_SECONDS), written.decode("utf-8").replace("\r\n", "\n")
    finally:
        os.close(ours)


def console_commands(block: Block) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output shown under it."""
    command, shown = "", ""
    lines = iter(block.text.splitlines())
    for line in lines:
        if not line.startswith("$ "):
            if not command:
                raise AssertionError(f"{block.place}: a console block begins with `$ ` and a command")
            shown += f"{line}\n"
            continue
        if command:
            yield command, shown
        command, shown = line.removeprefix("$ "), ""
        while command.endswith("\\"):
            command = command.removesuffix("\\") + next(lines).strip()
    if command:
        yield command, shown


def reader_environment(scripts: Path = Path(sys.executable).parent) -> dict[str, str]:
    """The environment of a reader's shell: this Python's commands first, plain output, and no settings of ours."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("TRYSQUARE_", "OTEL_"))}
    # A proxy of the machine must not stand between a page's client and its server.
    own = {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100", "NO_COLOR": "1", "NO_PROXY": "*"}
    return {**inherited, **own}


def _free_port() -> str:
    """A port that nothing listens on, below those that the system gives to connections of other tests."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return str(port)
