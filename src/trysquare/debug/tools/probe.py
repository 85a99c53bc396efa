"""probe: recording breakpoints: a batch of lines with expressions, one run, one table, no hit lost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import InvalidArguments
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.debug.desk import Desk
from trysquare.debug.locations import read_location
from trysquare.debug.names import ToolName
from trysquare.debug.sources import Sources
from trysquare.debug.tools.trace import recorded, require_expression
from trysquare.debug.traces import shorter

MOST = 20
LONGEST = 4000


class ProbeArgument(ToolArguments):
    """A line, and what to read whenever it begins."""

    location: Annotated[str, Field(description="file:line")]
    expressions: Annotated[list[str], Field(default_factory=list[str])]


class ProbeArguments(ToolArguments):
    """Arguments of probe."""

    target: str
    probes: Annotated[list[ProbeArgument], Field(min_length=1, max_length=MOST)]
    workspace_root: str | None = None


def probe_tool(desk: Desk) -> Tool:
    """The tool that counts and sums up."""

    async def probe(args: ProbeArguments, context: CallContext) -> Result[Any]:
        """Run it and sum up expressions at lines: hits, min, max, distinct, first change. Never stops. Python."""
        folder = desk.workspace(args.workspace_root)
        sources = Sources()
        wanted = [_read(each, folder, sources) for each in args.probes]
        watch: JsonObject = {"watch": "probes", "probes": wanted}
        root, run = await recorded(desk, args.target, args.workspace_root, watch)
        fields: JsonObject = {"outcome": run.outcome, "recording": run.cost.to_json()}
        if run.error:
            fields["error"] = run.error
        return Result.ok(_table(run.found, str(root), sources), warnings=_moved(wanted, args.probes), fields=fields)

    return tool(probe, name=ToolName.PROBE, room="debug", category="debug", result_limit=None)


def _read(given: ProbeArgument, root: Path, sources: Sources) -> JsonObject:
    """A probe as the recorder takes it: at a line that runs, with expressions that only read."""
    place = read_location(given.location, root)
    for expression in given.expressions:
        require_expression(expression)
    line = sources.next_statement(place.file, place.line)
    if line is None:
        raise InvalidArguments(f"`{given.location}`: no line runs there or below.")
    return {"file": place.file, "line": line, "expressions": given.expressions}


def _moved(wanted: list[JsonObject], given: list[ProbeArgument]) -> tuple[str, ...]:
    return tuple(
        f"Nothing runs at {each.location}; line {probe['line']} was taken."
        for probe, each in zip(wanted, given, strict=True)
        if str(probe["line"]) != each.location.split(":")[1]
    )


def _table(found: JsonObject, root: str, sources: Sources) -> str:
    lines: list[str] = []
    for probe in cast(list[JsonObject], found.get("probes") or []):
        file, line = str(probe["file"]), int(probe["line"])
        lines.append(f"{shorter(file, root)}:{line} `{sources.line(file, line)}` {probe['hits']} hits")
        lines.extend(_row(each) for each in cast(list[JsonObject], probe["values"]))
    text = "\n".join(lines)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _row(value: JsonObject) -> str:
    parts = [f"  {value['expression']}: {value['count']} values"]
    if value["min"] is not None:
        parts.append(f"min {value['min']}, max {value['max']}")
    if value["count"]:
        parts.append(f"{value['distinct']}{' or more' if value['distinct_is_least'] else ''} distinct")
        parts.append(f"first {value['first']}, last {value['last']}")
    if (change := value["first_change"]) is not None:
        parts.append(f"first change at hit {change[0]}: {change[1]} -> {change[2]}")
    common = [f"{text} {times}x" for text, times in cast(list[tuple[str, int]], value["common"]) if times > 1]
    if common:
        parts.append(f"mostly {', '.join(common)}")
    if value["errors"]:
        parts.append(f"{value['errors']} failed, such as {value['error']}")
    return ", ".join(parts)
