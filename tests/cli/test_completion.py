"""Shell completion: what completes a line, and the scripts in the shells themselves."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.support import missing_component

TOOLS = ("--tools", "demo_tools:tools")


def completed(run: Run, *words: str) -> list[str]:
    ran = run("completion", "fish", "--", "trysquare", *words)
    assert (ran.code, ran.err.replace("printed while imported\n", "")) == (0, "")
    return [line.partition("\t")[0] for line in ran.out.splitlines()]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["ga"], ["gateway"]),
        (["gateway", "te"], ["test"]),
        (["gateway", "test", ""], ["files", "git"]),
        (["gateway", "remove", "g"], ["git"]),
        (["gateway", "import", "claude"], ["claude-code", "claude-desktop"]),
        (["gateway", "list", "--gateway", "oth"], ["other.json"]),
        (["gateway", "add", "x", "--", "oth"], ["other.json"]),
        (["gateway", "add", "x", "--tr"], ["--transport"]),
        (["install", "cur"], ["cursor"]),
        (["install", "--scope", "pr"], ["project"]),
        (["install", "--scope=u"], ["--scope=user"]),
        (["config", "--debug"], ["--debugger", "--debug", "--debug-traceback"]),
        (["config", "--project", "fol"], ["folder/"]),
        (["config", "--config", "folder/"], ["folder/in it.toml"]),
        (["list", "--tools", "demo"], ["demo_tools.py"]),
        (["call", *TOOLS, "gr"], ["greet"]),
        (["call", *TOOLS, "greet", "t"], ["tone="]),
        (["call", "--tools", "nowhere:tools", ""], []),
        (["why", "TOOL_N"], ["TOOL_NOT_FOUND"]),
        (["nonsense", "--he"], ["--help", "--help-all"]),
        (["--vers"], ["--version"]),
    ],
)
def test_a_line_is_completed(run: Run, project: Path, words: list[str], found: list[str]) -> None:
    (project / "mcp.json").write_text('{"mcpServers": {"files": {"command": "x"}, "git": {"command": "y"}}}')
    (project / "other.json").touch()
    (project / "folder").mkdir()
    (project / "folder" / "in it.toml").touch()
    assert completed(run, *words) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("trysquare install --scope=pr", ["project"]),
        ("trysquare gateway ", None),
        ("trysquare config --config 'in", ["in it.toml"]),
        ("trysquare config --config in\\ ", ["in\\ it.toml"]),
    ],
)
def test_bash_completes_what_follows_its_word_breaks(
    run: Run, project: Path, line: str, found: list[str] | None
) -> None:
    (project / "in it.toml").touch()
    lines = run("completion", "bash", "--", line).out.splitlines()
    assert lines == found or (found is None and "import" in lines)


def shell(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        missing_component(name, "run `make system`")
    return found or ""


def typed_at(command: list[str], ready: str, typed: str, wanted: str, folder: Path) -> str:
    """What an interactive shell shows until the wanted text is there."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TERM": "xterm"}
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe(command[0], command, environment)
    shown, sent, end = "", False, time.monotonic() + 60
    try:
        while wanted not in shown and time.monotonic() < end:
            if not sent and ready in shown:
                os.write(terminal, typed.encode())
                sent, shown = True, ""
            if select.select([terminal], [], [], 1)[0]:
                shown += os.read(terminal, 65536).decode(errors="replace")
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    return shown


def test_bash_completes_at_a_tab(project: Path) -> None:
    rc = project / "rc"
    rc.write_text('eval "$(trysquare completion bash)"\nPS1="rea""dy>"\n', encoding="utf-8")
    command = [shell("bash"), "--noprofile", "--rcfile", str(rc), "-i"]
    assert "import " in typed_at(command, "ready>", "trysquare gateway im\t", "import ", project)
    assert "project " in typed_at(command, "ready>", "trysquare install --scope=pr\t", "project ", project)


def test_zsh_completes_at_a_tab(project: Path) -> None:
    (project / ".zshrc").write_text(
        'autoload -U compinit && compinit -u\neval "$(trysquare completion zsh)"\nPS1="rea""dy>"\n', encoding="utf-8"
    )
    command = ["env", f"ZDOTDIR={project}", shell("zsh"), "-d", "-i"]
    assert "port" in typed_at(command, "ready>", "trysquare gateway im\t", "port", project)


def test_fish_completes_with_the_help_of_each_name(project: Path) -> None:
    script = "trysquare completion fish | source; complete -C 'trysquare gateway im'"
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = subprocess.run(
        [shell("fish"), "--no-config", "-c", script], capture_output=True, text=True, env=environment, check=True
    )
    assert ran.stdout == "import\ttake over the servers that an MCP client has\n"
