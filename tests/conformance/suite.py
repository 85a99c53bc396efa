"""The official conformance suite, run against an address, and what it found."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import node_command

_PACKAGE_FILE = "@modelcontextprotocol/conformance/dist/index.js"
_RESULT_FOLDER = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z?")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one run found: the required scenarios, and each one's checks that did not succeed."""

    required: tuple[str, ...]
    failures: Mapping[str, Sequence[str]]
    warnings: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    skipped: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    missing: tuple[str, ...] = ()

    @property
    def passed(self) -> int:
        return len(self.required) - len(self.failures) - len(self.missing)


async def required_scenarios(revision: str) -> tuple[str, ...]:
    """The names of the server scenarios that a revision of the protocol requires."""
    listing = await _run("list", "--requirements", revision)
    server_part = listing.split("Server scenarios", 1)[1].split("Client scenarios", 1)[0]
    return tuple(re.findall(r"^  - (\S+)$", server_part, re.MULTILINE))


async def run_suite(url: str, revision: str, folder: Path) -> Outcome:
    """Run every required server scenario of a revision against an address."""
    required = await required_scenarios(revision)
    await _run("server", "--url", url, "--requirements", revision, "-o", str(folder))
    return _outcome(required, folder)


async def run_scenarios(url: str, scenarios: Sequence[str], folder: Path) -> Outcome:
    """Run scenarios that no revision requires, such as those of extensions, against an address."""
    for scenario in scenarios:
        await _run("server", "--url", url, "--scenario", scenario, "-o", str(folder))
    return _outcome(tuple(scenarios), folder)


def _outcome(required: tuple[str, ...], folder: Path) -> Outcome:
    checks = {scenario: _checks(path) for scenario, path in _result_files(folder).items()}
    return Outcome(
        required=required,
        failures=_with_status("FAILURE", required, checks),
        warnings=_with_status("WARNING", required, checks),
        skipped=_with_status("SKIPPED", required, checks),
        missing=tuple(scenario for scenario in required if not checks.get(scenario)),
    )


def _result_files(folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in folder.glob("*/checks.json"):
        if match := _RESULT_FOLDER.fullmatch(path.parent.name):
            found[match["scenario"]] = path
    return found


def _checks(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))


def _with_status(
    status: str, required: Sequence[str], checks: Mapping[str, list[dict[str, Any]]]
) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for scenario in required:
        lines = [
            f"{check['id']}: {check.get('errorMessage', check.get('description', ''))}"
            for check in checks.get(scenario, [])
            if check["status"] == status
        ]
        if lines:
            found[scenario] = lines
    return found


async def _run(*arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *node_command(_PACKAGE_FILE),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return output.decode("utf-8", "replace")
