"""Every language stops at a real breakpoint, shows its values, steps, evaluates, takes a value apart and exits."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.debug.calling import find_toolchains
from tests.support import missing_component, node_program
from trysquare import Toolset, call_tool
from trysquare.debug import DebugConfig, open_debugger
from trysquare.debug.adapters.registry import check_packages, find_language

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A program with a function that adds two numbers: where its sum is known, and what the caller's value is."""

    file: str
    language: str
    line: int
    structure: str
    part: str
    """A name among the parts of `structure`."""


CASES = (
    Case(file="sum.py", language="python", line=6, structure="point", part="'x'"),
    Case(file="sum.js", language="javascript", line=3, structure="point", part="x"),
    Case(file="sum.ts", language="typescript", line=4, structure="point", part="x"),
    Case(file="sum.c", language="c", line=5, structure="p", part="x"),
    Case(file="sum.cpp", language="cpp", line=5, structure="p", part="x"),
    Case(file="sum.rs", language="rust", line=4, structure="p", part="x"),
    Case(file="sum.go", language="go", line=12, structure="p", part="X"),
    Case(file="sum.rb", language="ruby", line=3, structure="p1", part=":x"),
    Case(file="Sum.java", language="java", line=10, structure="main", part="names"),
)


@pytest.fixture(autouse=True)
def _toolchains(monkeypatch: pytest.MonkeyPatch) -> None:
    find_toolchains(monkeypatch)


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncGenerator[Toolset]:
    async with open_debugger(DebugConfig(root=tmp_path)) as toolset:
        yield toolset


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.language)
async def test_a_program_stops_steps_evaluates_expands_and_exits(case: Case, tools: Toolset, tmp_path: Path) -> None:
    await _require_debugger(case.language)
    shutil.copy(PROGRAMS / case.file, tmp_path / case.file)

    async def call(name: str, **arguments: Any) -> dict[str, Any]:
        result = await call_tool(tools, name, arguments)
        assert result.success, result.to_text()
        return result.to_json()

    start: dict[str, Any] = {"target": case.file, "timeout": 120}
    if case.language in ("javascript", "typescript"):
        start["runtime_path"] = node_program()
    # Where an operator may be code of the program's, nothing but a path is read without leave.
    is_open = case.language in ("cpp", "ruby")
    start["allow_side_effects"] = is_open
    stop = await call("session_start", **start, breakpoints=[{"file": case.file, "line": case.line}])
    assert stop["data"]["execution_state"]["status"] == "stopped_at_breakpoint", stop
    first = dict(stop["data"]["locals"])
    assert (first["a"], first["b"]) in (("1", "2"), ("0", "2")), stop

    asked = {"expression": "a + b"}
    if is_open:
        refused = await call_tool(tools, "inspect", {"target": "expression", **asked})
        assert refused.to_json()["error"]["code"] == "EXECUTION_NOT_ALLOWED"
    total = await (call("variable", **asked) if is_open else call("inspect", target="expression", **asked))
    assert int(total["data"]["value"]) == int(first["a"]) + int(first["b"])

    await call("breakpoint", action="clear_all")
    out = await call("step", action="out")
    assert out["data"]["execution_state"]["status"] == "stopped_after_step"
    parts = await _parts_of(call, case)
    assert case.part in parts

    ended = await call("execute")
    assert ended["data"]["execution_state"]["status"] == "terminated", ended
    assert ended["data"]["exit_code"] == 3
    assert "sum" in (await call("inspect", target="output"))["data"]["output"]


async def _parts_of(call: Any, case: Case) -> Any:
    """What a structure is made of; rdbg stops at the function's end first, and the caller's frame is one above."""
    for frame in (0, 1):
        found = await call("inspect", target="locals", frame=frame)
        if case.structure in found["data"]["locals"]:
            told = await call("inspect", target="expression", expression=case.structure, frame=frame)
            return told["data"]["parts"]
    pytest.fail(f"{case.structure} is in none of the frames")


async def _require_debugger(language: str) -> None:
    package = find_language(language).package
    if language in ("javascript", "typescript"):
        return
    [found] = await check_packages([package])
    if found.path is None:
        missing_component(package.name, package.install_command)
