"""Regression test: a recorded call of the suspect's function as a test that fails until the function is right."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import cast

from trysquare.core.errors import ConfigurationError
from trysquare.core.json import JsonObject
from trysquare.debug.explain.explain import Explained
from trysquare.debug.explain.recording import record_run
from trysquare.debug.sessions.launch import Target
from trysquare.processes.supervisor import ProcessSupervisor


def require_new_file(file: Path) -> None:
    """Refuse a file that exists, or whose directory does not."""
    if file.exists():
        raise ConfigurationError(f"`{file}` exists; name a file that does not.", where="--write-test")
    if not file.parent.is_dir():
        raise ConfigurationError(f"`{file.parent}` is not a directory.", where="--write-test")


async def write_regression_test(
    explained: Explained, file: Path, target: Target, root: Path, supervisor: ProcessSupervisor
) -> str:
    """Write a test to a new file and run it; what came of it as a sentence. One that does not fail is removed."""
    located = [each.localization.found for _, each in explained.failures if each.localization is not None]
    recorded = cast(JsonObject | None, located[0].get("regression")) if located else None
    if recorded is None:
        return "No regression test was written: there are no suspects."
    if problem := recorded.get("problem"):
        return f"No regression test was written: {problem}."
    await asyncio.to_thread(file.write_text, regression_text(recorded), encoding="utf-8")
    run = await record_run(replace(target, kind="pytest", words=(str(file),)), root, supervisor, {"watch": "failure"})
    if run.outcome != "failed":
        await asyncio.to_thread(file.unlink)
        return "No regression test was written: the recorded call by itself does not fail."
    return f"Wrote {file}, which fails now. Check what it expects: it comes from the change that was tried."


def regression_text(recorded: JsonObject) -> str:
    """The source of a test from a recorded call."""
    function, module = str(recorded["function"]), str(recorded["module"])
    arguments = cast(list[tuple[str, str]], recorded["arguments"])
    positional = int(recorded["positional"])
    given = [text if index < positional else f"{name}={text}" for index, (name, text) in enumerate(arguments)]
    call = f"{function}({', '.join(given)})"
    expected = recorded.get("expected")
    check = call if expected is None else f"assert {call} == {expected}"
    return (
        f'"""Regression test from a recorded call of `{module}.{function}`."""\n\n'
        f"from {module} import {function}\n\n\n"
        f"def test_{function.strip('_')}_regression():\n    {check}\n"
    )
