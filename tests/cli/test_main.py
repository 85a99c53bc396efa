"""The command line as a whole: usage, errors, exit codes, and what it does not import."""

from __future__ import annotations

import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from trysquare.cli.main import find_commands, load_command, parse

TRYSQUARE = [sys.executable, "-m", "trysquare"]


def all_commands() -> Iterator[tuple[list[str], Any]]:
    """Every command and sub-command with its words."""
    for name in find_commands():
        command = load_command(name)
        yield [name], command
        yield from (([name, inner], each) for inner, each in command.subcommands.items())


@pytest.mark.parametrize("words", [[], ["--help"], ["help"]])
def test_help_shows_every_command_in_its_group_and_the_exit_codes(run: Run, words: list[str]) -> None:
    ran = run(*words)
    assert (ran.code, ran.err) == (0, "")
    for word in find_commands():
        assert f"\n  {word}" in ran.out
    for title in ("Build and try a server", "Connect clients and servers", "Examples", "Exit codes"):
        assert f"{title}:\n" in ran.out


def test_the_help_of_each_command_has_two_examples_that_parse_and_folds_shared_options(run: Run) -> None:
    for words, command in all_commands():
        short, whole = run(*words, "--help"), run(*words, "--help-all")
        assert (short.code, whole.code) == (0, 0)
        assert ("Exit codes:" in short.out, "Exit codes:" in whole.out) == (False, True)
        assert ("  --config FILE" in short.out) is False
        assert len(command.examples) >= 2, words
        assert all(line in short.out for line in command.examples)
        assert max(len(line) for line in (short.out + whole.out).splitlines()) <= 80
        for line in command.examples:
            program, *rest = shlex.split(re.split(" >?[<>] ", line)[0])
            assert program == "trysquare"
            assert parse(rest).command.run is not None or len(words) == 1


def test_a_misspelt_command_names_the_nearest(run: Run) -> None:
    ran = run("lst")
    assert ran.code == 2
    for token in ("`lst`", "`list`", "trysquare --help"):
        assert token in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "--profil", "levels"], "unknown option `--profil`; did you mean `--profile`?"),
        (["list", "--tool=a:b"], "unknown option `--tool`; did you mean `--tools`?"),
        (["config", "--zzzz"], "unknown option `--zzzz`"),
        (["config", "word"], "unexpected argument `word`"),
        (["list", "--tools"], "--tools: a value is missing"),
        (["call"], "missing argument NAME"),
        (["call", "add", "--a", "1"], "unknown option `--a`. Write an argument of the tool as a=VALUE."),
        (["install", "--scope", "projct"], "--scope: unknown value `projct`; did you mean `project`?"),
        (["grammar", "--format", "xyz"], "--format: unknown value `xyz`; choose from gbnf, lark, json-schema, openai"),
    ],
)
def test_wrong_usage_names_the_nearest_option(run: Run, words: list[str], said: str) -> None:
    ran = run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"trysquare {words[0]}: {said} (see trysquare {words[0]} --help)\n"


@pytest.mark.parametrize("command", ["guide", "bot", "gateway", "models", "jobs", "token"])
def test_a_bare_group_shows_its_help(run: Run, command: str) -> None:
    ran = run(command)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == run(command, "--help").out
    for name, inner in load_command(command).subcommands.items():
        assert re.search(rf"(?m)^  {name}\b", ran.out)
        assert inner.help[:1].islower()


def test_an_unknown_option_without_a_command_is_named(run: Run) -> None:
    ran = run("--foo")
    assert (ran.code, ran.out) == (2, "")
    assert "unknown option `--foo`" in ran.err


def test_a_misspelt_command_of_a_group_names_the_nearest(run: Run) -> None:
    ran = run("gateway", "lst")
    assert (ran.code, ran.out) == (2, "")
    for token in ("`lst`", "`list`", "trysquare gateway --help"):
        assert token in ran.err


@pytest.mark.parametrize("command", ["serve", "list", "check"])
def test_a_missing_workspace_is_reported_in_one_line(run: Run, project: Path, command: str) -> None:
    ran = run(command, "--workbench", "nowhere")
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert line.startswith(f"trysquare: {project / 'nowhere'}: ")


def test_a_wrong_configuration_is_reported_in_one_line_without_a_traceback(run: Run, project: Path) -> None:
    (project / "trysquare.toml").write_text("strct = true\n", encoding="utf-8")
    ran = run("list")
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert line.startswith(f"trysquare: {project}/trysquare.toml:1: ")
    assert "`strct`" in line
    assert "`strict`" in line


def test_the_traceback_is_shown_where_it_is_asked_for(project: Path) -> None:
    (project / "trysquare.toml").write_text("strct = true\n", encoding="utf-8")
    asked = subprocess.run([*TRYSQUARE, "list", "--debug-traceback"], capture_output=True, text=True, check=False)
    assert asked.returncode == 1
    assert "Traceback" in asked.stderr


def test_help_list_and_call_do_not_import_the_mcp_sdk(project: Path) -> None:
    script = (
        "import sys\n"
        "from trysquare.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "loaded = [name for name in sys.modules if name.split('.')[0] in ('mcp', 'mcp_types', 'fastmcp', 'uvicorn')]\n"
        "print('loaded', loaded)\n"
    )
    for words in (
        ["--help"],
        ["list", "--tools", "demo_tools:tools"],
        ["call", "add", "first=1", "--tools", "demo_tools:tools"],
    ):
        ran = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
        assert ran.stdout.endswith("loaded []\n"), words


def test_a_reader_that_goes_away_ends_the_command_quietly(project: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run([*TRYSQUARE, "config"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, b"")


def test_an_interrupt_ends_the_command_quietly(project: Path) -> None:
    (project / "slow.py").write_text(
        "import asyncio\n\nfrom trysquare import Declarations\n\ntools = Declarations()\n\n\n"
        "@tools.declare\nasync def wait() -> None:\n    '''Wait for ever.'''\n"
        "    print('waiting', flush=True)\n    await asyncio.Event().wait()\n",
        encoding="utf-8",
    )
    command = [*TRYSQUARE, "call", "wait", "--tools", "slow:tools"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        # What a tool prints is kept off the answer.
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "")


@pytest.mark.parametrize(
    ("words", "level"),
    [(["-v"], "INFO"), (["-vv"], "DEBUG"), (["--debug"], "DEBUG"), (["-v", "--log-level", "error"], "ERROR")],
)
def test_verbose_options_set_the_log_level(run: Run, words: list[str], level: str) -> None:
    settings = run("config", *words, "--json").json["settings"]
    assert settings["log_level"]["value"] == level
    assert settings["debugger"]["value"] is False


def test_the_former_setting_names_the_present_one(run: Run, project: Path) -> None:
    (project / "trysquare.toml").write_text("debug = true\n", encoding="utf-8")
    ran = run("config")
    assert ran.code == 2
    assert "`debugger`" in ran.err
    assert "trysquare.toml:1" in ran.err


def test_debug_names_the_option_that_has_its_former_meaning(run: Run) -> None:
    ran = run("config", "--debug", "--json")
    assert ran.code == 0
    assert "--debugger" in ran.err
    assert "--debugger" not in run("config", "--debugger", "--json").err


def shown_at_a_terminal(*words: str, **variables: str) -> str:
    """What a command prints on a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm", **variables}
    with subprocess.Popen([*TRYSQUARE, *words], stdout=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:
            # Linux ends the terminal of a process that has gone with an error.
            pass
    os.close(ours)
    assert process.returncode == 0
    return shown.decode()


def test_tables_fit_a_terminal_of_80_columns_and_have_colours_unless_unwanted(project: Path) -> None:
    for words in (["why"], ["config"], ["gateway", "import"]):
        shown = shown_at_a_terminal(*words)
        assert "\x1b[1m" in shown
        lines = re.sub(r"\x1b\[\d+m", "", shown).splitlines()
        assert max(map(len, lines)) <= 80
        assert "\x1b" not in shown_at_a_terminal(*words, NO_COLOR="1")
    assert "\x1b" not in shown_at_a_terminal("why", TERM="dumb")
