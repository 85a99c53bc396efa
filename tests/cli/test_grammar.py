"""`trysquare grammar`."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.models.tiny_gguf import write_tiny_gguf
from tests.support import missing_component

TOOLS = '''
from typing import Annotated, Any

from pydantic import Field

from trysquare import Declarations

tools = Declarations()


@tools.declare(read_only=True)
def add(one: int, other: Annotated[int, Field(ge=0, le=9)] = 0) -> int:
    """Add two numbers."""
    return one + other


@tools.declare(read_only=True)
def odd(when: Annotated[str, Field(json_schema_extra={"format": "ipv6"})]) -> str:
    """Take what no grammar can hold."""
    return when
'''
CLOSED = {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"], "additionalProperties": False}


@pytest.fixture
def tools(project: Path) -> tuple[str, str]:
    """A module with a tool that can be held to a grammar, and one that cannot."""
    (project / "some_tools.py").write_text(TOOLS, encoding="utf-8")
    return ("--tools", "some_tools:tools")


def test_the_calls_of_a_tool_are_printed_as_gbnf(run: Run, tools: tuple[str, str]) -> None:
    ran = run("grammar", "--tool", "add", *tools)
    assert ran.code == 0
    assert ran.out.splitlines()[0] == 'root ::= "{\\"name\\":\\"add\\",\\"args\\":" add "}"'
    assert 'add ::= "{\\"one\\":" integer (",\\"other\\":" other)? "}"' in ran.out


@pytest.mark.parametrize(
    ("dialect", "start"), [("lark", "%llguidance {}\nstart: "), ("json-schema", "{"), ("openai", "{")]
)
def test_every_dialect_is_printed(run: Run, tools: tuple[str, str], dialect: str, start: str) -> None:
    ran = run("grammar", "--format", dialect, "--tool", "add", *tools)
    assert ran.code == 0
    assert ran.out.startswith(start)
    if start == "{":
        assert "add" in json.dumps(ran.json)


def test_tools_that_no_grammar_holds_are_named_and_nothing_is_printed(run: Run, tools: tuple[str, str]) -> None:
    ran = run("grammar", *tools)
    assert (ran.code, ran.out) == (1, "")
    assert "`/properties/when/format`" in ran.err
    assert "`odd`" in ran.err
    assert "--tool" in ran.err


def test_an_unknown_tool_is_refused_with_the_nearest_name(run: Run, tools: tuple[str, str]) -> None:
    ran = run("grammar", "--tool", "ad", *tools)
    assert ran.code == 1
    assert "unknown tool `ad`." in ran.err
    assert "`add`" in ran.err


def test_tokens_bound_the_answer(run: Run, tools: tuple[str, str]) -> None:
    assert "integer-max-" in run("grammar", "--tool", "add", "--tokens", "60", *tools).out
    ran = run("grammar", "--tool", "add", "--tokens", "10", *tools)
    assert ran.code == 1
    assert "The shortest response" in ran.err


def test_a_schema_of_a_file_is_written_in_every_dialect(run: Run, project: Path) -> None:
    (project / "s.json").write_text(json.dumps(CLOSED), encoding="utf-8")
    assert run("grammar", "--schema", "s.json").out.startswith("root ::= ")
    assert run("grammar", "--schema", "s.json", "--format", "lark").out.startswith("%llguidance")
    assert run("grammar", "--schema", "s.json", "--format", "openai").json["required"] == ["a"]
    assert run("grammar", "--schema", "s.json", "--format", "json-schema").json["required"] == ["a"]


def test_a_file_that_is_no_json_is_refused(run: Run, project: Path) -> None:
    (project / "s.json").write_text("{", encoding="utf-8")
    ran = run("grammar", "--schema", "s.json")
    assert ran.code == 2
    assert "s.json: " in ran.err


def test_a_grammar_file_is_checked_and_texts_are_held_against_it(run: Run, project: Path) -> None:
    (project / "g.gbnf").write_text('root ::= "a" ("b" | "c")\n', encoding="utf-8")
    ran = run("grammar", "--check", "g.gbnf", "--text", "ab", "--text", "ad", "--text", "a")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "g.gbnf: 1 rule, OK",
        "matches: ab",
        "does not match: ad",
        "                 ^",
        "does not match: a",
        "  it is not complete",
    ]


def test_an_error_in_a_grammar_file_is_reported(run: Run, project: Path) -> None:
    (project / "g.gbnf").write_text("root ::= missing\n", encoding="utf-8")
    ran = run("grammar", "--check", "g.gbnf")
    assert ran.code == 1
    assert re.search(r"error: .*`root`.*`missing`", ran.out)


def test_a_certificate_counts_what_was_sampled_and_checked(run: Run, tools: tuple[str, str]) -> None:
    ran = run("grammar", "--certify", "--samples", "12", "--seed", "3", *tools)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "1 tool certified, 1 refused"
    assert lines[2].startswith("12 texts sampled ")
    assert lines[-1] == "holds"


def test_llama_cpp_writes_some_of_the_texts_where_it_has_weights(
    run: Run, tools: tuple[str, str], project: Path
) -> None:
    if not (find_spec("gguf") and find_spec("xllamacpp")):
        missing_component("gguf and xllamacpp", "pip install gguf xllamacpp")
    write_tiny_gguf(project / "tiny.gguf")
    ran = run("grammar", "--certify", "--samples", "12", "--weights", "tiny.gguf", *tools)
    assert ran.code == 0
    assert "  2 of them by llama.cpp under our GBNF" in ran.out.splitlines()
    assert run("grammar", "--certify", "--weights", "missing.gguf", *tools).code == 2


def test_no_samples_are_no_certificate(run: Run, tools: tuple[str, str]) -> None:
    assert run("grammar", "--certify", "--samples", "0", *tools).code == 2
