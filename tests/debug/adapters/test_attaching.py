"""Programs that nobody started for debugging are attached to, looked into and let go; ends are told as known."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.debug.calling import Tools, goes_on, line_of, opened, running, status_of
from tests.support import missing_component
from trysquare.debug.adapters.lldb import PACKAGE as LLDB

pytestmark = pytest.mark.timeout(300)
PATIENCE = 120


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A program that counts for ever; `count` is known at a line of it."""

    language: str
    file: str
    text: str
    line: int
    compiler: Sequence[str]
    debugger: Sequence[str] = LLDB.programs


C_TEXT = """\
#include <stdio.h>
#include <unistd.h>
int main(void) {
    for (int count = 1;; count++) {
        printf("%d\\n", count);
        fflush(stdout);
        usleep(10000);
    }
}
"""
CASES = (
    Case(language="c", file="tick.c", text=C_TEXT, line=6, compiler=("gcc", "-g", "-O0", "-o")),
    Case(language="cpp", file="tick.cpp", text=C_TEXT, line=6, compiler=("g++", "-g", "-O0", "-o")),
    Case(
        language="rust",
        file="tick.rs",
        text="""\
fn main() {
    let mut count = 0;
    loop {
        count += 1;
        println!("{}", count);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
""",
        line=6,
        compiler=("rustc", "-g", "-C", "opt-level=0", "-o"),
    ),
    Case(
        language="go",
        file="tick.go",
        text="""\
package main

import (
	"fmt"
	"time"
)

func main() {
	for count := 1; ; count++ {
		fmt.Println(count)
		time.Sleep(10 * time.Millisecond)
	}
}
""",
        line=11,
        compiler=("go", "build", "-gcflags=all=-N -l", "-o"),
        debugger=("dlv",),
    ),
)

ENDING = """\
import os, signal, sys, time
print("ready", flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
if sys.argv[1] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(9)
"""
ENDING_C = """\
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
    if (count > 1) kill(getpid(), atoi(words[1]));
    exit(9);
}
"""
ENDING_GO = """\
package main

import (
	"os"
	"syscall"
)

func main() {
	if len(os.Args) > 1 {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	os.Exit(9)
}
"""
ENDING_JAVA = """\
public class Ending {
    public static void main(String[] words) throws Exception {
        if (words[0].equals("kill")) {
            new ProcessBuilder("kill", "-9", "" + ProcessHandle.current().pid()).start().waitFor();
            Thread.sleep(60000);
        }
        System.exit(137);
    }
}
"""


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncGenerator[Tools]:
    async with opened(tmp_path) as tools:
        yield tools


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.language)
async def test_a_program_is_attached_to_stops_shows_a_value_and_runs_on_after(case: Case, tools: Tools) -> None:
    program = await _built(case, tools)
    with running(program) as process:
        breakpoints = [{"file": case.file, "line": case.line}]
        stop = await tools.call(
            "session_start", pid=process.pid, language=case.language, breakpoints=breakpoints, timeout=PATIENCE
        )
        assert (status_of(stop), line_of(stop)) == ("stopped_at_breakpoint", case.line), stop
        assert int(stop["data"]["locals"]["count"]) > 0
        assert (await tools.call("session", action="stop"))["summary"]
        assert await anyio.to_thread.run_sync(goes_on, process)


@pytest.mark.parametrize(("language", "instead"), [("ruby", "rdbg --open"), ("java", "-agentlib:jdwp")])
async def test_a_language_that_cannot_says_what_to_do_instead(tools: Tools, language: str, instead: str) -> None:
    with running("/bin/sh", "-c", "echo ready; exec sleep 60") as process:
        refused = await tools.refused("session_start", pid=process.pid, language=language)
        assert refused["error"]["code"] == "CAPABILITY_NOT_SUPPORTED"
        assert instead in refused["instruction"]
        assert "`port`" in refused["instruction"]
        assert process.poll() is None


@pytest.mark.parametrize("how", ["exit", "kill"])
async def test_how_an_attached_program_ended_is_its_parents_to_know(tools: Tools, how: str) -> None:
    if shutil.which("gdb") is None:
        missing_component("gdb", "apt-get install gdb")
    program, flag = tools.write("ending.py", ENDING), tools.folder / "flag"
    with running(sys.executable, str(program), how, str(flag)) as process:
        await tools.call("session_start", pid=process.pid, timeout=PATIENCE)
        flag.touch()
        ended = await tools.call("execute", action="wait", timeout=PATIENCE)
    assert (ended["data"]["exit_code"], ended["data"].get("signal")) == (None, None)


async def test_how_a_child_process_ended_is_its_parents_to_know(tools: Tools) -> None:
    program = tools.write(
        "parent.py",
        """
        import os, subprocess, sys
        if len(sys.argv) > 1:
            os.kill(os.getpid(), 9)
        sys.exit(4 if subprocess.call([sys.executable, __file__, "child"]) == -9 else 5)
        """,
    )
    ended = await tools.start(program, timeout=PATIENCE)
    assert ended["data"]["exit_code"] == 4
    [child] = [each for each in await tools.sessions() if each.get("started_by")]
    told = await tools.call("execute", action="wait", session_id=child["session_id"], timeout=PATIENCE)
    assert (told["data"]["exit_code"], told["data"].get("signal")) == (None, None)


@pytest.mark.parametrize("words", ["", " 9"])
async def test_lldb_does_not_tell_an_exit_code_from_a_signal_that_nobody_sees(tools: Tools, words: str) -> None:
    _need(LLDB.programs, "lldb-19")
    tools.write("ending.c", ENDING_C)
    ended = await tools.call("session_start", target=f"ending.c{words}", timeout=PATIENCE)
    assert "exit code 9" in ended["summary"]
    assert "SIGKILL" in ended["summary"]
    assert (ended["data"]["exit_code"], ended["data"].get("signal")) == (None, None)


@pytest.mark.parametrize(("words", "expected"), [("", (9, None)), (" kill", (None, "SIGKILL"))])
async def test_delve_tells_an_exit_code_from_a_signal(tools: Tools, words: str, expected: tuple[Any, Any]) -> None:
    _need(("dlv",), "delve golang-go")
    tools.write("ending.go", ENDING_GO)
    ended = await tools.call("session_start", target=f"ending.go{words}", timeout=PATIENCE)
    assert (ended["data"]["exit_code"], ended["data"].get("signal")) == expected, ended


@pytest.mark.parametrize(("word", "expected"), [("exit", (137, None)), ("kill", (None, "SIGKILL"))])
async def test_java_tells_an_exit_code_from_a_signal(tools: Tools, word: str, expected: tuple[Any, Any]) -> None:
    _need(("javac",), "default-jdk-headless")
    tools.write("Ending.java", ENDING_JAVA)
    ended = await tools.call("session_start", target=f"Ending.java {word}", timeout=PATIENCE)
    assert (ended["data"]["exit_code"], ended["data"].get("signal")) == expected, ended


async def _built(case: Case, tools: Tools) -> str:
    _need(case.debugger, "lldb-19 delve")
    _need(case.compiler[:1], "g++ gcc golang-go rustc")
    source = tools.write(case.file, case.text)
    program = str(source.with_suffix(""))
    # A compiler that was installed for one user is found by that user's home, which tests do not have.
    home = {"HOME": pwd.getpwuid(os.getuid()).pw_dir} if case.language == "rust" else {}
    await anyio.run_process([*case.compiler, program, str(source)], env={**os.environ, **home}, cwd=tools.folder)
    return program


def _need(names: Sequence[str], packages: str) -> None:
    if not any(shutil.which(name) for name in names):
        missing_component(names[0], f"apt-get install {packages}")
