"""Command rules against a real bash: a rule that allows `ls*` lets nothing run but `ls`, however a line is written."""

from __future__ import annotations

import os
import shutil
import string
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.agents.scripted import GIVE_UP, ScriptedModel, call, definition, run_script, workbench
from tests.attacks.conftest import Attack
from tests.support import size
from trysquare.agents.capabilities import local_probes
from trysquare.agents.definition import known_definitions, load_definition
from trysquare.agents.policy import Policy, Rule

ONLY_LS = Policy(rules=(Rule(effect="allow", tool="bash", commands=("ls*",)),))
PROGRAMS = ("ls", "lsof", "rm", "cat", "x", "echo", "sh", "a", "b")


class Markers:
    """A PATH of programs that only write their own names down, and a bash that runs lines with it."""

    def __init__(self, folder: Path) -> None:
        self._log, self._work, programs = folder / "log", folder / "work", folder / "programs"
        self._work.mkdir(parents=True)
        programs.mkdir()
        for name in PROGRAMS:
            self._write(programs / name, name)
        # What lies in the folder of the command is another program of the same name.
        self._write(self._work / "ls", "the ls of the workspace")
        self._environment = {"PATH": str(programs), "HOME": str(self._work)}
        self._bash = shutil.which("bash") or "/bin/bash"

    def _write(self, path: Path, says: str) -> None:
        path.write_text(f"#!/bin/sh\necho '{says}' >> '{self._log}'\n", encoding="utf-8")
        path.chmod(0o755)

    def ran(self, line: str) -> tuple[set[str], set[str]]:
        """The programs that a line runs, and the files that it leaves behind."""
        self._log.write_text("", encoding="utf-8")
        before = set(os.listdir(self._work))
        subprocess.run(
            [self._bash, "-c", line],
            env=self._environment, cwd=self._work, stdin=subprocess.DEVNULL, capture_output=True, timeout=20,
        )  # fmt: skip
        return set(self._log.read_text(encoding="utf-8").splitlines()), set(os.listdir(self._work)) - before


@pytest.fixture(scope="module")
def markers(tmp_path_factory: pytest.TempPathFactory) -> Markers:
    return Markers(tmp_path_factory.mktemp("markers"))


def allows(line: str) -> bool:
    return ONLY_LS.decide("bash", {"command": line}).effect == "allow"


def check(markers: Markers, line: str) -> None:
    if not allows(line):
        return
    ran, made = markers.ran(line)
    assert (ran | {"ls"}, made) == ({"ls"}, set()), f"{line!r} was allowed"


FAULTS = [
    "ls;(cat .env)", "ls&&(rm x)", "ls|(rm x)", "PATH=. ls", "LD_PRELOAD=./x.so ls", "ls > x", "ls 2>x",
    "./ls", "ls\nrm x",
    "ls & rm x", "ls `rm x`", "ls $(rm x)", 'ls "$(rm x)"', "ls <(rm x)", "ls >(rm x)", "ls $'a'",
    "ls ${a:-$(rm)}", "ls #\nrm",
    "ls \\\nx; rm x", "{ls,rm} x", "! ls", "time ls", "ls () { rm x; }\nls", "ls;rm", "ls||rm x",
    "ls <<E\n$(rm)\nE", "lsof",
    "ls !rm", "ls *", "ls ~", "~/ls", "../work/ls", "ls'of'", "ls\x0brm", "ls\u2028rm x", "ls\rrm x", "alias ls=rm\nls",
    'ls "a`rm`"', "ls 'a'\"$(rm)\"", "ls a=b;rm", "coproc ls", "exec ls", "command ls", "eval ls", "env ls",
    "[ ls ]", "ls\0rm",
]  # fmt: skip


@pytest.mark.parametrize("line", FAULTS, ids=lambda line: repr(line)[1:-1])
def test_a_line_that_does_more_than_a_rule_allows(attack: Attack, line: str) -> None:
    attack(door="an allow rule of `ls*`", attempt=repr(line)[1:-1])
    assert ONLY_LS.decide("bash", {"command": line}).effect == "deny"


@pytest.mark.parametrize("line", ["ls", "ls -l", "ls 'a b' \"c;d\"", "ls --color=never ./x", "\tls\t-a "])
def test_what_the_rule_means_is_allowed(markers: Markers, line: str) -> None:
    assert allows(line)
    assert markers.ran(line) == ({"ls"}, set())


def _shapes() -> Iterator[str]:
    """Each character, and each pair of marks, in every place of a line."""
    marks = [*string.punctuation, " ", "\t", "\n", "\r", "\x0b", "\x0c", "\x01", "\x7f", "\xa0", "\u2028", "é"]
    pairs = [one + other for one in marks for other in marks]
    for piece in (*map(chr, range(1, 128)), *marks, *pairs):
        yield from (f"ls{piece}rm x", f"ls {piece}rm x", f"{piece}ls rm", f"ls 'a{piece}rm x'", f'ls "a{piece}rm x"')


def test_no_single_mark_and_no_pair_of_marks_gets_a_second_program_past_the_rule(
    attack: Attack, markers: Markers
) -> None:
    attack(door="an allow rule of `ls*`", attempt="every character and every pair of marks, run by bash")
    shapes = list(dict.fromkeys(_shapes()))
    lines = [line for line in shapes if allows(line)]
    # Outside of quotes next to nothing is allowed, so a part of the quoted lines tells as much as all of them.
    plain = [line for line in lines if "'" not in line and '"' not in line]
    quoted = [line for line in lines if line not in set(plain)]
    assert plain
    assert quoted
    for line in (*plain[:: size(2, 1)], *quoted[:: size(40, 1)]):
        check(markers, line)


_PIECES: Sequence[str] = (
    "ls", "ls", "ls ", "rm", "cat", "x", " ", " ", "-l", "'", '"', "a", "b", ";", "&", "|", "(", ")", "{",
    "}", "<", ">", "$",
    "`", "\\", "\n", "#", "!", "*", "?", "[", "]", "~", "=", ",", "$(", "${", "$'", "&&", "||", "<<", "2>",
    "/", "./", "..",
    "PATH=", "if ", "then ", "fi", "do ", "done", "function ", "time ", "exec ", "eval ", "\t", "\r", "é",
    "^", "%", "@", ":",
)  # fmt: skip


@settings(max_examples=size(300, 5_000), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rest=st.lists(st.sampled_from(_PIECES), max_size=9).map("".join), start=st.sampled_from(["ls", "ls ", ""]))
def test_no_made_up_line_gets_past_the_rule(attack: Attack, markers: Markers, start: str, rest: str) -> None:
    attack(door="an allow rule of `ls*`", attempt="lines made up of the shell's own marks, run by bash")
    check(markers, start + rest)


async def test_a_run_with_such_a_rule_does_not_run_the_rest_of_the_line(attack: Attack, tmp_path: Path) -> None:
    attack(door="an agent's run", attempt="`ls;(touch pwned)` where only `ls*` is allowed")
    lines = ["ls;(touch pwned)", "PATH=. ls", "./ls", "ls > pwned", "ls $(touch pwned)"]
    model = ScriptedModel([*(call("bash", command=line) for line in lines), GIVE_UP])
    async with workbench(tmp_path) as toolset:
        await run_script(model, toolset, agent=definition(policy=ONLY_LS), root=tmp_path, probes=local_probes(tmp_path))
    told = [message.text for message in model.messages() if message.role == "tool"]
    assert len(told) == len(lines)
    assert all("denies" in text for text in told)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("name", [agent.name for agent in known_definitions()])
@pytest.mark.parametrize(
    "line",
    ["$(echo trysquare) approve 1", "`echo trysquare` approve 1", "A=trysquare; $A approve 1", "{trysquare,approve,1}",
     "trysquare$IFS\"approve\" 1", "$'trysquare' approve 1", "try\\\nsquare approve 1"],
)  # fmt: skip
def test_a_line_in_which_a_denied_command_hides_does_not_run_unasked(attack: Attack, name: str, line: str) -> None:
    attack(door=f"the policy of {name}", attempt=line.replace("\n", "\\n"))
    decision = load_definition(name).policy.decide("bash", {"command": line})
    assert decision.effect in ("ask", "deny")


async def test_nothing_of_our_environment_changes_what_a_command_is(
    attack: Attack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attack(door="the sandbox's bash", attempt="BASH_ENV, an exported function, and a relative PATH")
    (tmp_path / "start").write_text("echo started\n", encoding="utf-8")
    (tmp_path / "ls").write_text("#!/bin/sh\necho the other ls\n", encoding="utf-8")
    (tmp_path / "ls").chmod(0o755)
    environment: dict[str, Any] = {
        "BASH_ENV": str(tmp_path / "start"),
        "ENV": str(tmp_path / "start"),
        "BASH_FUNC_ls%%": "() { echo function; }",
        "PATH": f".::{os.environ['PATH']}",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    model = ScriptedModel([call("bash", command="ls"), GIVE_UP])
    async with workbench(tmp_path) as toolset:
        await run_script(model, toolset, agent=definition(policy=ONLY_LS), root=tmp_path, probes=local_probes(tmp_path))
    [told] = [message.text for message in model.messages() if message.role == "tool"]
    assert "start" in told
    assert not any(word in told for word in ("started", "function", "other"))
