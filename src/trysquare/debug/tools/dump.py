"""dump: all threads and asyncio tasks of a process that hangs."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.debug.desk import Desk
from trysquare.debug.dumping import dump_process
from trysquare.debug.names import ToolName

_THREADS = 12
_LONGEST = 4000


class DumpArguments(ToolArguments):
    """Arguments of dump."""

    pid: Annotated[int, Field(gt=0)]
    depth: Annotated[int, Field(description="Frames of each", ge=1, le=30)] = 6


def dump_tool(desk: Desk) -> Tool:
    """The tool that looks into a process that hangs."""

    async def dump(args: DumpArguments, context: CallContext) -> Result[Any]:
        """Tell what all threads and asyncio tasks of a running Python process do; it goes on."""
        found = await dump_process(args.pid)
        threads = cast(list[JsonObject], found["threads"])
        tasks = cast(list[JsonObject], found.get("tasks") or [])
        lines = [*_listed("thread", threads, args.depth), *_listed("task", tasks, args.depth)]
        text = "\n".join(lines)
        shown = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
        return Result.ok(shown, fields={"pid": args.pid, "threads": len(threads), "tasks": len(tasks)})

    return tool(dump, name=ToolName.DUMP, room="debug", category="debug", result_limit=None)


def _listed(kind: str, found: list[JsonObject], depth: int) -> list[str]:
    """Each thread or task with its innermost frames; those that stand at the same place are told once."""
    groups: dict[str, list[JsonObject]] = {}
    for each in found:
        groups.setdefault("\n".join(cast(list[str], each["stack"])[:depth]), []).append(each)
    lines: list[str] = []
    for same in list(groups.values())[:_THREADS]:
        lines.extend(_told(kind, same, depth))
    if len(groups) > _THREADS:
        lines.append(f"… {len(groups) - _THREADS} more places")
    return lines


def _told(kind: str, same: list[JsonObject], depth: int) -> list[str]:
    names = ", ".join(str(each["name"]) for each in same[:3])
    more = f" and {len(same) - 3} more" if len(same) > 3 else ""
    waits = f" waits for {same[0]['waits_for']}" if same[0].get("waits_for") else ""
    stack = cast(list[str], same[0]["stack"])
    lines = [f"{kind} {names}{more}{waits}", *(f"  {level}" for level in stack[:depth])]
    if len(stack) > depth:
        lines.append(f"  … {len(stack) - depth} frames above")
    values = cast(dict[str, str], same[0].get("values") or {})
    return [*lines, "  " + ", ".join(f"{name}={text}" for name, text in values.items())] if values else lines
