"""`trysquare call`."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run, Types

TOOLS = ("--tools", "demo_tools:tools")


def test_the_answer_is_printed_as_a_model_reads_it(run: Run) -> None:
    ran = run("call", "greet", '{"name": "Ada"}', *TOOLS)
    assert (ran.code, ran.out) == (0, "Hello, Ada\nInstruction: Show the greeting as it is.\n")


def test_json_prints_the_envelope(run: Run) -> None:
    wanted = {"success": True, "value": "Hello, Ada", "instruction": "Show the greeting as it is."}
    for words in (('{"name": "Ada"}', "--json"), ("--json", '{"name": "Ada"}'), ("--json", "name=Ada")):
        assert run("call", "greet", *words, *TOOLS).json == wanted
    ran = run("call", "--json", "greet", *TOOLS, "name=Ada")
    assert ran.json == wanted


def test_arguments_come_as_pairs_that_follow_the_schema(run: Run) -> None:
    assert run("call", "add", "first=2", "second=3", *TOOLS).out == "5\n"
    assert run("call", "greet", "name=7", *TOOLS).out.startswith("Hello, 7\n")


def test_arguments_come_from_stdin(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"first": 41}'))
    assert run("call", "add", "-", *TOOLS).out == "42\n"


def test_a_failed_call_ends_with_one_and_carries_the_corrected_call(run: Run) -> None:
    ran = run("call", "greet", "nme=Ada", *TOOLS)
    assert ran.code == 1
    error, instruction, following = ran.out.splitlines()
    assert error.startswith("Error VALIDATION_UNKNOWN_PARAM: ")
    assert "`nme`" in error
    assert instruction.startswith("Instruction: ")
    assert following == 'Next: {"tool":"greet","arguments":{"name":"Ada"}}'
    assert ran.err == "printed while imported\n"


def test_a_tool_error_shows_progress_and_log_besides_the_answer(run: Run) -> None:
    ran = run("call", "report", *TOOLS)
    assert ran.code == 1
    assert ran.err.splitlines() == ["printed while imported", "[1/2] half", "info: nearly done"]
    assert "It did not work." in ran.out


def test_an_unknown_tool_names_the_nearest(run: Run) -> None:
    ran = run("call", "gret", *TOOLS)
    assert ran.code == 1
    assert "`greet`" in ran.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["{"], "trysquare: the arguments: invalid JSON at line 1, column 2"),
        (["[1"], "trysquare: the arguments: invalid JSON at line 1, column 3"),
        (['{"name": ' + "9" * 5000 + "}"], "trysquare: the arguments: a number in it is too long."),
        (["word"], "trysquare: the arguments: `word` is neither JSON nor key=value."),
        (["{" * 100_000], "trysquare: the arguments: invalid JSON"),
        (['{"a":' * 100_000], "trysquare: the arguments: invalid JSON: nested too deeply."),
    ],
)
def test_arguments_that_are_no_json_are_wrong_usage(run: Run, words: list[str], expected: str) -> None:
    ran = run("call", "greet", *words, *TOOLS)
    assert (ran.code, ran.out) == (2, "")
    assert expected in ran.err


def test_without_a_terminal_a_tool_that_needs_consent_hands_out_a_code(run: Run, project: Path) -> None:
    ran = run("call", "remove", "what=all", *TOOLS)
    assert ran.code == 1
    assert "trysquare approve " in ran.out


@pytest.mark.parametrize(("answer", "code", "said"), [("yes\n", 0, "removed all"), ("no\n", 1, "CONSENT_REFUSED")])
def test_the_user_at_the_terminal_is_asked(run: Run, types: Types, answer: str, code: int, said: str) -> None:
    types(answer)
    ran = run("call", "remove", "what=all", *TOOLS)
    assert "Remove all?" in ran.err
    assert ran.code == code
    assert said in ran.out


def test_stdin_that_is_no_text_is_wrong_usage(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"a": "\xff"}'), encoding="utf-8"))
    ran = run("call", "add", "-", *TOOLS)
    assert ran.code == 2
    assert "trysquare: stdin: " in ran.err
    assert "byte 7" in ran.err


def test_a_long_number_in_a_pair_is_taken_as_text_and_refused_by_the_tool(run: Run) -> None:
    assert run("call", "add", "first=" + "9" * 5000, *TOOLS).code == 1


@pytest.mark.parametrize("given", [[], ["token=hunter2"]])
def test_a_crash_is_logged_with_its_traceback_and_without_the_secrets_of_the_call(
    project: Path, given: list[str]
) -> None:
    module = """
from trysquare import Declarations

tools = Declarations()


@tools.declare
def boom(token: str = "") -> str:
    "Fail."
    raise ValueError("refused " + token)
"""
    (project / "boom_tools.py").write_text(module, encoding="utf-8")
    command = [sys.executable, "-m", "trysquare", "call", "boom", *given, "--tools", "boom_tools:tools"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=project)
    assert ran.returncode == 1
    assert 'boom_tools.py", line 10, in boom' in ran.stderr
    assert "ValueError: refused" in ran.stderr
    assert "hunter2" not in ran.stderr + ran.stdout


def test_a_crash_is_shown_with_the_frames_of_the_users_code(project: Path) -> None:
    (project / "crashing.py").write_text(
        "from trysquare import Tools\n\ntools = Tools('x')\n\n\ndef inner(n):\n    return 1 / n\n\n\n"
        "@tools.tool\ndef crash(n: int) -> float:\n    '''Crash.'''\n    return inner(n)\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "trysquare", "call", "crash", "n=0", "--tools", "crashing:tools"]
    short = subprocess.run(command, capture_output=True, text=True, check=False)
    frames = re.findall(r'File "(.+?)", line \d+, in (\w+)', short.stderr)
    assert frames == [(str(project / "crashing.py"), "crash"), (str(project / "crashing.py"), "inner")]
    assert short.stderr.count(" ERROR ") == 1
    whole = subprocess.run([*command, "--debug-traceback"], capture_output=True, text=True, check=False)
    assert whole.stderr.count("File ") > 5


def test_an_image_is_shown_as_its_type_and_size(run: Run, project: Path) -> None:
    (project / "painting.py").write_text(
        "from trysquare import Image, Result, Tools\n\ntools = Tools('x')\n\n\n@tools.tool\n"
        "def paint() -> Result[None]:\n    '''Paint.'''\n"
        "    return Result.ok(content=(Image(data='iVBORw0KGgoA', mime_type='image/png'),))\n",
        encoding="utf-8",
    )
    assert run("call", "paint", "--tools", "painting:tools").out == "[image/png, 9 bytes]\n"


PRINTING = '''
from collections.abc import Iterator

from trysquare import Tools

tools = Tools("printing")


@tools.lifespan
def opened() -> Iterator[None]:
    print("opening")
    yield
    print("closing")


@tools.tool
def add(a: int, b: int) -> int:
    """Add."""
    print("adding")
    return a + b


@tools.resource("printing://one")
def one() -> str:
    return "one"
'''


def test_only_the_answer_is_printed_to_stdout(run: Run, project: Path) -> None:
    (project / "printing_server.py").write_text(PRINTING, encoding="utf-8")
    called = run("call", "printing_server.py", "add", "a=1", "b=2")
    assert called.out == "3\n"
    assert all(word in called.err for word in ("opening", "adding", "closing"))
    read = run("read", "printing_server.py", "printing://one")
    assert read.out == "one\n"
    assert all(word in read.err for word in ("opening", "closing"))
