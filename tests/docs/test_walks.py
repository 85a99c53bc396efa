"""The walks of ARCHITECTURE.md, each done in a copy of the package: the files that its row names, and no others."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from tests.docs.pages import ROOT, read_page

_FILE = re.compile(r"`([\w/]+/\w+\.py)`")


@dataclass(frozen=True, kw_only=True)
class Walk:
    """A change by one row of the page, and what shows that the product has it."""

    new: str = ""
    """The new module, if there is one."""
    text: str = ""
    edits: Mapping[str, tuple[str, str]]
    """By file: what is replaced, and by what."""
    command: tuple[str, ...]
    shows: str


def module(text: str) -> str:
    return dedent(text).lstrip()


_TOOL = '''
class Ping(ToolArguments):
    session_id: str | None = None


@debug_tool()
async def ping(service: DebugService, args: Ping, context: CallContext) -> Result[Any]:
    """Show that the debugger runs."""
    return Result.ok("pong")


class Execute(ToolArguments):'''
_RULE = '''
@rule("error", each_tool, "Rename it.")
def no_greeting(tool: Tool, options: LintOptions) -> Iterator[str]:
    """No tool greets."""
    if tool.name == "greet":
        yield "The tool greets."


@rule("error", each_tool, "Leave out the one that is wrong.")
def hints_agree'''
_SETTING = '    greeting: str = Field(default="good day", description="How to greet")\n    prefix: '
_TRANSPORT = """TransportType(
            name="pigeon",
            aliases=frozenset({"pigeon"}),
            matches=lambda fields: False,
            read_entry=read_remote,
        ),
        TransportType(
            name="sse","""
WALKS = {
    "a built-in tool": Walk(
        edits={
            "debug/tools/execution.py": ("\nclass Execute(ToolArguments):", _TOOL),
            "debug/provider.py": ("execution.execute,", "execution.execute, execution.ping,"),
        },
        command=("call", "debug_ping", "--debugger"),
        shows="pong",
    ),
    "a middleware": Walk(
        new="middleware/shout.py",
        text=module(
            '''
            """Middleware that shouts."""

            from dataclasses import replace

            from trysquare.middleware.base import Layer


            def shout(tool, config):
                async def call(arguments, context):
                    result = await tool.call(arguments, context)
                    return replace(result, value=result.value.upper())

                return tool.wrapped(call)


            MIDDLEWARE = Layer(order=15, wrap=shout)
            '''
        ),
        edits={},
        command=("call", "greet", "name=Ada", "--tools", "greeter:tools"),
        shows="HELLO, ADA",
    ),
    "a command": Walk(
        new="cli/hello.py",
        text=module(
            '''
            """`trysquare hello`: greet the world."""

            from trysquare.cli.command import Command


            def run(arguments):
                print("Hello, world")


            COMMAND = Command(run, ())
            '''
        ),
        edits={},
        command=("hello",),
        shows="Hello, world",
    ),
    "a debugger language": Walk(
        new="debug/adapters/brief.py",
        text=module(
            '''
            """Debug adapter of a language that needs none."""

            from trysquare.debug.adapters import base

            PACKAGE = base.AdapterPackage(name="brief-dap", programs=("python3",), install=())
            '''
        ),
        edits={
            "debug/adapters/registry.py": (
                "LANGUAGES = (",
                "from trysquare.debug.adapters import brief\n\nLANGUAGES = (\n"
                '    Language(name="brief", package=brief.PACKAGE, adapter=brief, suffixes=(".bf",), sample="a.bf"),',
            )
        },
        command=("call", "debug_init", "language=brief", "--json", "--debugger"),
        shows="brief-dap",
    ),
    "an upstream transport": Walk(
        new="gateway/upstream/pigeon.py",
        text=module(
            '''
            """Transport by carrier pigeon."""

            from trysquare.core.errors import ConfigurationError


            def create_transport(config, supervisor):
                raise ConfigurationError("no pigeon is at home.", where=config.name)
            '''
        ),
        edits={"gateway/config/entries.py": ('TransportType(\n            name="sse",', _TRANSPORT)},
        command=("gateway", "test", "--gateway", "mcp.json"),
        shows="no pigeon is at home",
    ),
    "how an argument error is rendered": Walk(
        edits={"core/schema/errors.py": ('f"Unknown argument `', 'f"No argument is called `')},
        command=("call", "greet", "nam=Ada", "--tools", "greeter:tools"),
        shows="No argument is called `nam`",
    ),
    "a setting": Walk(
        edits={"settings/model.py": ("    prefix: ", _SETTING)},
        command=("config",),
        shows="good day",
    ),
    "a lint rule": Walk(
        edits={
            "catalog/lint/tool_rules.py": (
                '\n@rule("error", each_tool, "Leave out the one that is wrong.")\ndef hints_agree',
                _RULE,
            )
        },
        command=("check", "--tools", "greeter:tools"),
        shows="no-greeting",
    ),
}
_GREETER = '''
"""Tools that greet."""

from trysquare import Declarations

tools = Declarations()


@tools.declare
def greet(name: str) -> str:
    """Greet a person.

    Args:
        name: Who to greet
    """
    return f"Hello, {name}"
'''


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources, and a project with a tool and a server."""
    folder = tmp_path_factory.mktemp("walks")
    shutil.copytree(ROOT / "src" / "trysquare", folder / "trysquare", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "greeter.py").write_text(_GREETER, encoding="utf-8")
    (folder / "mcp.json").write_text('{"mcpServers": {"far": {"type": "pigeon", "url": "http://127.0.0.1:1"}}}')
    return folder


def output(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "trysquare", *words]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    return ended.stdout + ended.stderr


@pytest.mark.parametrize("change", WALKS)
def test_a_change_takes_the_files_that_the_page_names(change: str, package: Path) -> None:
    walk = WALKS[change]
    [row] = [line for _, line in read_page(ROOT / "ARCHITECTURE.md").prose if line.startswith(f"| {change}")]
    named = _FILE.findall(row)
    beside = [name for name in named if walk.new and Path(name).parent == Path(walk.new).parent]
    assert {*walk.edits, *beside[:1]} == set(named)
    assert walk.shows not in output(package, *walk.command)
    before = {name: (package / "trysquare" / name).read_text(encoding="utf-8") for name in walk.edits}
    try:
        for name, (old, new) in walk.edits.items():
            assert before[name].count(old) == 1, f"{name}: write the change anew: {old!r} is there no longer, or twice"
            (package / "trysquare" / name).write_text(before[name].replace(old, new), encoding="utf-8")
        if walk.new:
            (package / "trysquare" / walk.new).write_text(walk.text, encoding="utf-8")
        assert walk.shows in output(package, *walk.command)
    finally:
        for name, text in before.items():
            (package / "trysquare" / name).write_text(text, encoding="utf-8")
        if walk.new:
            (package / "trysquare" / walk.new).unlink(missing_ok=True)
