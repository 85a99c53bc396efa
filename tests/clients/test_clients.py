"""Real clients call every kind of tool of one sample server, over stdio and HTTP, in the eras that they speak.

Each client is a program of its own, run once in the environment that has it; the test looks at its reports. Inspector's
command line is a program for each call, so it calls some of them here, and the rest of its tests are in `tests/e2e`.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients.sample_tools import KINDS, LINES, Kind
from tests.clients.sample_tools import tools as sample
from tests.e2e.inspector import FAILED_CALL, inspected
from tests.e2e.offered_tools import tools
from tests.e2e.stdio_process import REPOSITORY
from tests.support import NODE_PROJECT, missing_component, node_command, node_program

PROGRAMS = Path(__file__).with_name("programs")
OTHER_PYTHON = REPOSITORY / ".venv-clients" / "bin" / "python"
"""An environment with SDK 1.x, which does not fit beside the 2.x of ours."""
SERVE = [
    *(str(Path(sys.executable).parent / "trysquare"), "serve"),
    *("--tools", "tests.e2e.offered_tools:tools", "--tools", "tests.clients.sample_tools:tools"),
]
SESSIONS = ("stdio 2025-11-25", "http 2025-11-25")
EVERY_ERA = (*SESSIONS, "stdio 2026-07-28", "http 2026-07-28", "stdio auto", "http auto")
ROUNDS = 20

FEWEST_COMPLETE = 18
"""Of the rounds of a TypeScript client over stdio, those in which every progress report must arrive.

It runs the handler of a notification in a later turn of the event loop than that of a response, and has forgotten the
progress token by then if it read both in one piece. Our server leaves a gap between the two; a machine that is busy for
longer than that can still close it.
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A client, and where it connects to."""

    name: str
    program: str
    targets: tuple[str, ...]
    version: str
    """How its version begins."""
    can: frozenset[str] = frozenset({"audio", "progress", "elicitation", "cancellation", "sampling"})
    major: str | None = None
    """The version of the npm package; None for Python programs."""
    is_apart: bool = False
    """Whether its packages are in the other environment."""
    shows_only_values: bool = False
    """Whether it shows a model the structured content of a success and nothing else, where all content is text."""

    def command(self) -> list[str]:
        """The command that walks, but for the targets."""
        program = str(PROGRAMS / self.program)
        if self.major is not None:
            package = "sdk" if self.major == "1" else "client"
            node_command(f"@modelcontextprotocol/{package}/package.json")
            return [node_program(), program]
        if self.is_apart and not OTHER_PYTHON.exists():
            missing_component("the environment of the clients", "run `make clients`")
        return [str(OTHER_PYTHON) if self.is_apart else sys.executable, program]


NOT_CANCELLING = frozenset({"progress", "elicitation"})
"""What clients can do that are made with SDK 1.x, which has no way to cancel a request."""
CASES = (
    Case(name="Python SDK 2", version="2.", program="python_sdk_2.py", targets=EVERY_ERA),
    Case(
        name="Python SDK 1", version="1.3", program="python_sdk_1.py",
        targets=SESSIONS, can=NOT_CANCELLING | {"audio", "sampling"}, is_apart=True,
    ),
    Case(
        name="openai-agents", version="0.", program="openai_agents.py",
        targets=SESSIONS, can=frozenset({"audio"}), is_apart=True, shows_only_values=True,
    ),
    Case(
        name="langchain-mcp-adapters", version="0.", program="langchain_adapters.py",
        targets=SESSIONS, can=NOT_CANCELLING, is_apart=True,
    ),
    Case(name="FastMCP", version="4.", program="fastmcp_client.py", targets=EVERY_ERA),
    Case(
        name="pydantic-ai", version="2.", program="pydantic_ai_agent.py",
        targets=EVERY_ERA, can=NOT_CANCELLING | {"audio", "cancellation"}, shows_only_values=True,
    ),
    Case(name="TypeScript SDK 1", version="1.", program="typescript_sdk.cjs", targets=SESSIONS, major="1"),
    Case(name="TypeScript SDK 2", version="2.", program="typescript_sdk.cjs", targets=EVERY_ERA, major="2"),
)  # fmt: skip


@contextlib.contextmanager
def served_over_http(environment: dict[str, str]) -> Generator[str]:
    """Our server at an address of this machine."""
    command = [*SERVE, "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=REPOSITORY, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if "Serving at " in line)
            yield line.split("Serving at ")[1].split()[0]
        finally:
            process.terminate()


def reports(case: Case) -> dict[str, Any]:
    """What a client reports of every target. One process walks through them all: its imports take most of the time."""
    command = case.command()
    environment = dict(os.environ)
    stdio = {"command": SERVE, "env": environment, "folder": str(REPOSITORY)}
    with served_over_http(environment) as url:
        targets = {target: {"url": url} if target.startswith("http") else stdio for target in case.targets}
        calls = [{"tool": kind.tool, "arguments": kind.arguments, "needs": kind.needs} for kind in KINDS]
        more = [] if case.major is None else [case.major, str(NODE_PROJECT)]
        ended = subprocess.run(
            [*command, json.dumps({"targets": targets, "calls": calls}), *more],
            capture_output=True, text=True, timeout=300, check=False, env=environment, cwd=PROGRAMS,
        )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads(ended.stdout)


def value(called: dict[str, Any] | None) -> Any:
    """The value of a call: from the structured content, or from the text where a client hands on nothing else."""
    if called is None:
        return None
    data = called["data"]
    if data is None:
        return called["text"].split("\n")[0]
    return data["result"] if isinstance(data, dict) else data


def require_lists_and_results(case: Case, target: str, report: dict[str, Any]) -> None:
    """Every tool is listed; text, structured content and images arrive."""
    assert report["version"].startswith(case.version)
    offered = [tool.name for part in (tools, sample) for tool in part.toolset().tools()]
    assert [name for name in report["tools"] if name in offered] == offered
    assert value(report["plain"]) == "Hello, Ada"
    assert "Hello, Ada" in report["plain"]["text"]
    assert float(value(report["structured"])) == 3.5
    assert report["image"]["images"] == ["image/png"]


def require_kinds(case: Case, target: str, report: dict[str, Any]) -> None:
    """Every kind of tool gives the client what it returns; a long result can be read to its end."""
    expected = [kind for kind in KINDS if kind.needs is None or kind.needs in case.can]
    assert list(report["kinds"]) == [kind.tool for kind in expected]
    for kind in expected:
        require_kind(kind, report["kinds"][kind.tool], f"{kind.tool} over {target}: {report['kinds'][kind.tool]}")
    assert len(report["pages"]) > 2
    whole = "\n".join(report["pages"])
    assert [line for line in LINES if line not in whole] == []


def require_kind(kind: Kind, called: dict[str, Any], shown: str) -> None:
    assert called["is_error"] in (kind.fails, None), shown
    if called["blocks"] is not None:
        assert tuple(called["blocks"]) == kind.blocks, shown
    if kind.text is not None:
        assert kind.text in called["text"] + json.dumps(called["data"]), shown
    if kind.data is None:
        return
    if called["data"] is not None:
        # Some clients take what is no object out of the object around it.
        assert called["data"] in (kind.data, value_of(kind)), shown
    elif isinstance(value_of(kind), str):
        assert called["text"] == value_of(kind), shown
    else:
        assert json.loads(called["text"]) == value_of(kind), shown


def value_of(kind: Kind) -> Any:
    """The value of a kind, without what is around one that is no object."""
    return (kind.data or {}).get("result", kind.data)


def require_errors(case: Case, target: str, report: dict[str, Any]) -> None:
    """Errors are seen as errors, and the corrected call can be read and sent."""
    assert report["failed"]["is_error"] in (True, None)
    assert "It failed: rain" in report["failed"]["text"]
    assert report["wrong"]["is_error"] in (True, None)
    assert report["wrong"]["next"] == {"tool": "total", "arguments": {"amounts": [1, 2.4], "rounded": True}}
    assert float(value(report["corrected"])) == 3


def require_guidance(case: Case, target: str, report: dict[str, Any]) -> None:
    """The instruction of a failure is shown by all; that of a typed success by those that show the text."""
    assert "Tell the user." in report["kinds"]["failing"]["text"]
    is_shown = "Show the greeting" in report["plain"]["text"]
    assert is_shown is not case.shows_only_values


def require_progress(case: Case, target: str, report: dict[str, Any]) -> None:
    """Every progress report arrives before the result."""
    counted = report.get("progress", [])
    assert len(counted) == (ROUNDS if "progress" in case.can else 0)
    lost = [seen for seen in counted if seen != [1, 2, 3]]
    may_lose = ROUNDS - FEWEST_COMPLETE if case.major is not None and target.startswith("stdio") else 0
    assert len(lost) <= may_lose, lost


def require_questions_and_cancellation(case: Case, target: str, report: dict[str, Any]) -> None:
    """A question is answered, a call that is given up is cancelled, and the next one works."""
    assert value(report.get("elicitation")) == ("accept: True" if "elicitation" in case.can else None)
    abandoned = report.get("abandoned", {})
    assert value(abandoned.get("next")) == ("Hello, Bob" if "progress" in case.can else None)
    assert value(abandoned.get("cancelled")) == (target if "cancellation" in case.can else None)


REQUIREMENTS = (
    require_lists_and_results,
    require_kinds,
    require_errors,
    require_guidance,
    require_progress,
    require_questions_and_cancellation,
)


@pytest.mark.timeout(330)
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.name, marks=[] if case.major is None else [pytest.mark.node]) for case in CASES],
)
def test_the_client_can_use_everything_that_is_offered(case: Case) -> None:
    found = reports(case)
    assert list(found) == list(case.targets)
    crashed = [f"{target}: {report['crashed']}" for target, report in found.items() if "crashed" in report]
    assert not crashed, "\n".join(crashed)
    for target, report in found.items():
        for require in REQUIREMENTS:
            require(case, target, report)


@pytest.mark.node
@pytest.mark.timeout(330)
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_inspectors_command_line_calls_the_sample_server(era: Any) -> None:
    with served_over_http(dict(os.environ)) as url:
        # Its command line calls one tool and ends, so it answers no questions.
        for kind in (kind for kind in KINDS if kind.needs in (None, "audio")):
            given = [f"{name}={json.dumps(given)}" for name, given in kind.arguments.items()]
            arguments = [word for pair in given for word in ("--tool-arg", pair)]
            target = ["--transport", "http", "--server-url", url]
            seen = await inspected(target, era, "--method", "tools/call", "--tool-name", kind.tool, *arguments)
            assert seen.code == (FAILED_CALL if kind.fails else 0), seen
            called = seen.result
            assert tuple(block["type"] for block in called["content"]) == kind.blocks, seen
            # The first page of a long answer says how to read on.
            structured = called.get("structuredContent") or {}
            assert "next" in structured if kind.tool == "long_result" else structured == (kind.data or {}), seen
