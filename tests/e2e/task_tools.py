"""Tools with tasks for processes that are killed: what they did is in files of the folder `TASK_FOLDER`."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from trysquare import CallContext, TaskOptions, Tools

tools = Tools("work")
_LOOK = 0.01


def folder() -> Path:
    return Path(os.environ["TASK_FOLDER"])


def _record(file: str, line: str) -> None:
    with (folder() / file).open("a", encoding="utf-8") as effects:
        effects.write(f"{line}\n")


async def _wait_for(gate: str) -> None:
    while True:
        if (folder() / gate).exists():
            return
        await asyncio.sleep(_LOOK)


@tools.tool(task=TaskOptions(poll=0.05))
async def once(name: str, asks: bool, context: CallContext) -> str:
    """Work whose effect cannot be told from a second one: it never runs twice."""
    if asks:
        await context.ask(f"Go on with {name}?", bool)
    _record("effects", name)
    await _wait_for(f"open-{name}")
    _record("ended", name)
    return name


@tools.tool(task=TaskOptions(poll=0.05, repeats=True))
async def again(name: str, asks: bool, context: CallContext) -> str:
    """Work that may begin again: its effect is named by the task, so it happens once."""
    if asks:
        await context.ask(f"Go on with {name}?", bool)
    try:
        (folder() / f"task-{context.request_id}").touch(exist_ok=False)
        _record("effects", name)
    except FileExistsError:
        _record("repeated", name)
    await _wait_for(f"open-{name}")
    _record("ended", name)
    return name


@tools.tool(task=TaskOptions(poll=0.05, resumes=True))
async def steps(name: str, asks: bool, context: CallContext) -> str:
    """Work in two steps, the first of which is stored when it is done."""
    if asks:
        await context.ask(f"Go on with {name}?", bool)
    if "first" not in context.checkpoints:
        _record("effects", name)
        await context.checkpoint("first", name)
        _record("stored", name)
    await _wait_for(f"open-{name}")
    _record("ended", name)
    return str(context.checkpoints["first"])
