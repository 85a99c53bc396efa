"""A project of its own for each test of the command line, and the command itself, run in this process."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from trysquare.cli.main import main

TOOLS = '''
from typing import Literal
from pydantic import Field
from trysquare import CallContext, Consent, Declarations, Result, ToolArguments, ToolError

print("printed while imported")
tools = Declarations()


class Greet(ToolArguments):
    name: str = Field(description="Who to greet, as they write it themselves")
    tone: Literal["warm", "formal"] = Field("warm", description="How the greeting sounds")


@tools.declare(category="example", use_when="the user wants to be greeted")
async def greet(args: Greet) -> Result[str]:
    """Greet a person by name."""
    return Result.ok(f"Hello, {args.name}", instruction="Show the greeting as it is.")


@tools.declare(use_when="two numbers are to be added")
def add(first: int, second: int = 1) -> int:
    """Add two numbers.

    Args:
        first: The first number
        second: The second number
    """
    return first + second


@tools.declare(use_when="something is to be removed", destructive=True, consent=Consent(question="Remove {what}?"))
async def remove(what: str) -> str:
    """Remove a thing.

    Args:
        what: What to remove
    """
    return f"removed {what}"


@tools.declare(use_when="a report is wanted")
async def report(context: CallContext) -> str:
    """Report twice, then finish."""
    await context.progress(1, 2, "half")
    await context.log("nearly done")
    raise ToolError("It did not work.", instruction="Leave it.")
'''


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]
Types = Callable[[str | None], None]


class Terminal(io.StringIO):
    """A terminal in which somebody types."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module of tools, which is the working directory."""
    (tmp_path / "demo_tools.py").write_text(TOOLS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    before, path = set(sys.modules), list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if not name.startswith(("trysquare", "mcp", "pydantic", "anyio")):
            module_file = getattr(sys.modules[name], "__file__", None) or ""
            if module_file.startswith(str(tmp_path)):
                del sys.modules[name]


@pytest.fixture
def run(project: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in the project, in this process."""

    def run_command(*words: str) -> Ran:
        capsys.readouterr()
        try:
            code = main(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
        captured = capsys.readouterr()
        return Ran(code=code, out=captured.out, err=captured.err)

    return run_command


@pytest.fixture
def types(monkeypatch: pytest.MonkeyPatch) -> Types:
    """Let a person sit at the terminal and type, or with None leave it.

    It is called in the test itself, since capturing swaps the streams before.
    """

    def type_in(text: str | None) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO() if text is None else Terminal(text))
        monkeypatch.setattr(sys.stderr, "isatty", lambda: text is not None, raising=False)

    return type_in
