"""`trysquare list`, `call`, `read` and `prompt` of a file, a command or a URL."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.test_serve import serving

SAMPLE = Path(__file__).parent.parent / "client" / "sample.py"
COMMAND = ("--", sys.executable, str(SAMPLE))


@pytest.fixture(params=["file", "command"])
def server(request: pytest.FixtureRequest, project: Path) -> tuple[list[str], list[str]]:
    """The words before and after those of a command."""
    (project / "sample_file.py").write_text(SAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    return (["sample_file.py"], []) if request.param == "file" else ([], [*COMMAND])


def test_a_server_is_listed_and_called_and_read(run: Run, server: tuple[list[str], list[str]], tmp_path: Path) -> None:
    before, after = server
    listed = run("list", *before, "--json", *after).json
    assert [tool["name"] for tool in listed["tools"]][:2] == ["add", "weather"]
    assert {"uri_template": "note://{topic}", "name": "note"} in listed["resources"]
    assert run("call", *before, "add", "a=2", "b=3", *after).out == "5\n"
    assert run("call", *before, "add", '{"a": 2}', *after).out == "3\n"
    assert run("read", *before, "note://tea", *after).out == "About tea.\n"
    assert run("prompt", *before, "hello", "name=Ada", *after).out == "Greet Ada.\n"
    drawn = run("call", *before, "picture", "--out", str(tmp_path / "out"), *after)
    assert drawn.out == "[image/png, 8 bytes]\n"
    assert (tmp_path / "out" / "picture-1.png").read_bytes() == b"\x89PNG\r\n\x1a\n"


def test_failures_of_a_server_are_those_of_the_command(run: Run, server: tuple[list[str], list[str]]) -> None:
    before, after = server
    failed = run("call", *before, "add", "a=x", "--json", *after)
    assert (failed.code, failed.json["success"]) == (1, False)
    unknown = run("call", *before, "ad", "a=1", *after)
    assert unknown.code == 1
    assert "`ad`" in unknown.out
    assert run("call", *before, "wipe", "what=it", *after).code == 1
    missing = run("read", *before, "nothing://here", *after)
    assert (missing.code, missing.out) == (1, "")


def test_a_server_is_reached_by_its_address(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRYSQUARE_HTTP_TOKENS", "secret-of-it")
    with serving(command=(sys.executable, str(SAMPLE), "--http")) as address:
        header = ("--header", "Authorization: Bearer secret-of-it")
        assert run("call", address, "add", "a=1", *header).out == "2\n"
        assert len(run("list", address, "--json", *header).json["tools"]) > 5
        refused = run("call", address, "add", "a=1")
        assert refused.code == 1
        assert "--header" in refused.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("call", "server.py"), "a name is missing after `server.py`"),
        (("list", "server.py", "--", "x"), "both `server.py` and a command after `--` are given"),
        (("list", "--"), "a command is missing after `--`"),
        (("list", "--header", "X: y"), "headers are for a server that has a URL"),
        (("list", "http://127.0.0.1:9/mcp", "--header", "X"), "expected NAME: VALUE"),
        (("prompt", "hello", "Ada", *COMMAND), "`Ada` is not KEY=VALUE"),
        (("read", "a", "b", "c"), "unexpected argument `c`"),
    ],
)
def test_wrong_usage_is_reported_before_anything_starts(run: Run, words: tuple[str, ...], said: str) -> None:
    ran = run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
