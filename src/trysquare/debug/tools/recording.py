"""explain, trace, who_wrote, probe, diff, dump: recorded runs, compared stops and process dumps."""

from __future__ import annotations

import ast
import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.core.text import truncate
from trysquare.debug.explain.explain import FULL, Explained
from trysquare.debug.explain.localization import BUDGET
from trysquare.debug.explain.native import explain_target
from trysquare.debug.explain.recording import Run, dump_process, record_run, require_python
from trysquare.debug.explain.traces import Trace, compare, divergence_text, writes_text
from trysquare.debug.guard import require_reading
from trysquare.debug.handover import StopAt, require_stoppable, start_stopped
from trysquare.debug.responses import answer
from trysquare.debug.service import DebugService, debug_tool, require_argument
from trysquare.debug.sessions.launch import read_location, read_target
from trysquare.debug.snapshot import differences
from trysquare.debug.sources import Sources, relative

_MAX_NAMES = 50
_MAX_UNEXPLAINED = 8
_MAX_PROBES = 20
_MAX_SUSPECTS = 10
_MAX_CHANGES = 40
_MAX_STACKS = 12
_LONGEST = 4000
_EXPLANATION = 1900
_OUTPUT = 1500


class Explain(ToolArguments):
    target: Annotated[str, Field(description="A failing pytest node id, or a command such as `python app.py`")]
    workspace_root: Annotated[str | None, Field(description="Directory to run in")] = None
    timeout: Annotated[float, Field(description="Seconds it may run", gt=0, le=600)] = 60.0
    runtime_path: Annotated[str | None, Field(description="The Python to use")] = None
    budget: Annotated[float, Field(description="Seconds for other tests and trial changes; 0: none", ge=0, le=300)] = (
        BUDGET
    )
    full: bool = False
    stop: Annotated[StopAt | None, Field(description="Then start a session that stops there")] = None


# Documented as in guide/tools/README.md.
@debug_tool(requirement="required", use_when="a test or program fails", read_only=False)
async def explain(service: DebugService, args: Explain, context: CallContext) -> Result[Any]:
    """Run a failing test or program once and explain why it fails."""
    root = service.workspace(args.workspace_root)
    target = read_target(args.target, root, runtime=args.runtime_path)
    who = context.principal.subject
    if args.stop is not None:
        require_stoppable(target, root)
    explained = await explain_target(
        target, root, service.supervisor, timeout=args.timeout, sessions=service.sessions, principal=who,
        budget=args.budget,
    )  # fmt: skip
    result = explain_result(explained, root, str(target), full=args.full)
    if args.stop is None:
        return result
    session, stop = await start_stopped(
        service, explained, target, root, args.stop, principal=who, timeout=args.timeout
    )
    return with_session(result, session.id, stop)


def with_session(result: Result[Any], session_id: str, stop: Result[Any]) -> Result[Any]:
    """An explanation with the session that it was handed over to."""
    fields = {"session_id": session_id, "stop": stop.fields["data"], "next_steps": stop.fields.get("next_steps", [])}
    value = f"{result.value}\n\n{stop.fields['summary']} Session: {session_id}"
    return replace(result, value=value, warnings=(*result.warnings, *stop.warnings), fields={**result.fields, **fields})


def explain_result(explained: Explained, root: Path, target: str, *, full: bool = False) -> Result[Any]:
    data: JsonObject = {"outcome": explained.outcome, "exit_code": explained.exit_code}
    many = explained.failed_count > 1
    if many:
        data |= {"failed_count": explained.failed_count, "failed": list(explained.failed[:_MAX_NAMES])}
    data["recording"] = explained.cost.to_json()
    data |= _suspect_fields(explained, root)
    if not explained.failures:
        return _nothing_explained(explained, target, data)
    heading = _heading(explained) if many else []
    whole = FULL if full else _EXPLANATION
    share = (whole - sum(len(line.encode()) + 1 for line in heading)) // len(explained.failures)
    texts = ["\n".join(heading)] if many else []
    for name, each in explained.failures:
        title = f"{name}\n" if many else ""
        texts.append(title + each.to_text(str(root), longest=share - len(title.encode())))
    return Result.ok("\n\n".join(texts), warnings=explained.cost.warnings, fields=data)


def _suspect_fields(explained: Explained, root: Path) -> JsonObject:
    """The suspects of the explained test as data."""
    found = next((each.localization for _, each in explained.failures if each.suspects), None)
    if found is None:
        return {}
    suspects = [
        {
            "location": relative(each.location, str(root)), "function": each.function, "code": each.code,
            "score": each.score, "proved": each.proof is not None and not each.proof["breaks"],
        }
        for each in found.suspects[:_MAX_SUSPECTS]
    ]  # fmt: skip
    return {"suspects": suspects, "confidence": found.confidence.partition(":")[0]}


def _heading(explained: Explained) -> list[str]:
    """The number of failures, and the names of those that are not explained."""
    shown = {name for name, _ in explained.failures}
    others = [name for name in explained.failed if name not in shown]
    lines = [f"{explained.failed_count} failed; explained: {len(shown)}."]
    if others:
        named = ", ".join(others[:_MAX_UNEXPLAINED])
        more = explained.failed_count - len(shown) - len(others[:_MAX_UNEXPLAINED])
        lines.append(f"Not explained: {named}" + (f", and {more} more" if more > 0 else ""))
    return lines


def _nothing_explained(explained: Explained, target: str, data: JsonObject) -> Result[Any]:
    if explained.outcome == "passed" and explained.ran == 0:
        return Result.ok(f"`{target}` ran no test. Check the name.", fields=data)
    if explained.outcome == "passed":
        lines = [f"`{target}` did not fail: it ended with exit code {explained.exit_code}."]
        lines.extend(f"skipped: {name}: {reason}" for name, reason in list(explained.skipped.items())[:3])
        return Result.ok("\n".join(lines), fields=data)
    if explained.reasons:
        reasons = [f"{name}: {reason.strip()[:300]}" for name, reason in list(explained.reasons.items())[:3]]
        return Result.ok("It failed without an exception:\n" + "\n".join(reasons), fields=data)
    errors = [line.strip() for line in explained.output.splitlines() if line.startswith("ERROR: ")]
    near = explained.nearest_tests
    what = f" {' '.join(errors[:3])}" if errors else ""
    raise ToolError(
        f"`{target}` ended ({explained.outcome}, exit code {explained.exit_code}) without an exception.{what}",
        code=ErrorCode.EXECUTION_FAILED,
        instruction=f"Did you mean {' or '.join(near)}?" if near else "Read `output`.",
        fields={**data, "output": explained.output[-_OUTPUT:].strip()},
    )


async def _record(
    service: DebugService, target: str, folder: str | None, watch: JsonObject, when: str | None = None
) -> tuple[Path, Run]:
    root = service.workspace(folder)
    wanted = read_target(target, root)
    require_python(wanted)
    if when is not None:
        require_reading(when, "python", allowed=False)
        watch = {**watch, "when": when}
    return root, await record_run(wanted, root, service.supervisor, watch, timeout=service.config.timeout)


def _run_fields(run: Run, **more: Any) -> JsonObject:
    fields: JsonObject = {"outcome": run.outcome, **more, "recording": run.cost.to_json()}
    return fields | ({"error": run.error} if run.error else {})


class TraceArguments(ToolArguments):
    target: Annotated[str | None, Field(description="None: the last trace")] = None
    function: Annotated[str | None, Field(description="Name, or Class.name")] = None
    call: Annotated[int, Field(description="Which call; -1 is the last")] = 1
    when: Annotated[str | None, Field(description="Or the first call where this is true")] = None
    at: Annotated[int | None, Field(description="State before a step; -1 is the last")] = None
    workspace_root: str | None = None


@debug_tool()
async def trace(service: DebugService, args: TraceArguments, context: CallContext) -> Result[Any]:
    """Record one call: arguments, each line with its changes, calls, result; or step back in it. Python."""
    who = context.principal.subject
    if args.target is None:
        if who in service.traces:
            return _step_result(service.traces[who], args.at if args.at is not None else -1)
        raise InvalidArguments(
            "`target` is missing, and there is no earlier trace.",
            code=ErrorCode.VALIDATION_MISSING_PARAM,
            instruction="Send `target` and `function`.",
        )
    function = require_argument(args.function, "function", "Name the function to trace, such as total or Cart.total.")
    if args.call == 0:
        raise InvalidArguments("`call` is 0; calls are counted from 1, and -1 is the last.")
    watch: JsonObject = {"watch": "trace", "function": function, "call": args.call}
    root, run = await _record(service, args.target, args.workspace_root, watch, args.when)
    call = run.found.get("call")
    if call is None:
        raise _never_called(run, args)
    found = service.traces[who] = Trace(call=call, root=str(root))
    if args.at is not None:
        return _step_result(found, args.at)
    fields = _run_fields(run, calls=run.found["calls"], steps=len(found.steps))
    return Result.ok(found.to_text(Sources()), warnings=run.cost.warnings, fields=fields)


def _step_result(found: Trace, at: int) -> Result[Any]:
    if not found.steps:
        raise NotFound("The traced call ran no recorded line.")
    state = found.state_at(at, Sources())
    summary = f"Step {state['step']} of {state['of']} in {found.call['function']}: {state['location']} is about to run."
    return Result.ok(fields={"summary": summary, "data": state})


def _never_called(run: Run, args: TraceArguments) -> NotFound:
    calls = int(run.found.get("calls") or 0)
    refused = run.found.get("refused")
    if not calls:
        what = f"`{args.function}` was never called"
    elif args.when:
        what = f"`{args.when}` was true in none of the {calls} calls of `{args.function}`"
        what += f" ({refused})" if refused else ""
    else:
        what = f"`{args.function}` was called {calls} times, so there is no call {args.call}"
    ended = f"; the run {run.outcome}" + (f": {run.error}" if run.error else "")
    return NotFound(
        what + ended + ".",
        code=ErrorCode.INTROSPECTION_NOT_FOUND,
        instruction="Check `function`, `target` and `workspace_root`; child processes are not traced.",
        fields={"output": run.output[-500:]},
    )


class WhoWrote(ToolArguments):
    target: str
    value: Annotated[str, Field(description="total, Cart.total or settings['port']")]
    function: Annotated[str | None, Field(description="Only in this one")] = None
    when: Annotated[str | None, Field(description="Only where this is true after the write")] = None
    workspace_root: str | None = None


@debug_tool()
async def who_wrote(service: DebugService, args: WhoWrote, context: CallContext) -> Result[Any]:
    """Run it and list the lines that last wrote a name, attribute or key. Python."""
    _require_assignable(args.value)
    watch: JsonObject = {"watch": "writes", "value": args.value, "function": args.function}
    root, run = await _record(service, args.target, args.workspace_root, watch, args.when)
    fields = _run_fields(run, count=run.found.get("count", 0))
    text = writes_text(run.found, args.value, str(root), Sources())
    return Result.ok(text, warnings=run.cost.warnings, fields=fields)


def _require_assignable(text: str) -> None:
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        node = None
    if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        raise InvalidArguments(
            f"`{text[:80]}` cannot be assigned to.",
            instruction="Send a variable (total), an attribute (Cart.total) or a key (settings['port']).",
        )
    require_reading(text, "python", allowed=False)


class ProbeArgument(ToolArguments):
    """A line, and expressions to read whenever it begins."""

    location: Annotated[str, Field(description="file:line")]
    expressions: Annotated[list[str], Field(default_factory=list[str])]


class ProbeArguments(ToolArguments):
    target: str
    probes: Annotated[list[ProbeArgument], Field(min_length=1, max_length=_MAX_PROBES)]
    workspace_root: str | None = None


@debug_tool()
async def probe(service: DebugService, args: ProbeArguments, context: CallContext) -> Result[Any]:
    """Run it and summarize expressions at lines: hits, min, max, distinct, first change. Never stops. Python."""
    folder = service.workspace(args.workspace_root)
    sources = Sources()
    probes = [_read_probe(each, folder, sources) for each in args.probes]
    root, run = await _record(service, args.target, args.workspace_root, {"watch": "probes", "probes": probes})
    moved = tuple(
        f"Nothing runs at {each.location}; line {read['line']} was used."
        for read, each in zip(probes, args.probes, strict=True)
        if str(read["line"]) != each.location.split(":")[1]
    )
    return Result.ok(_probes_text(run.found, str(root), sources), warnings=moved, fields=_run_fields(run))


def _read_probe(given: ProbeArgument, root: Path, sources: Sources) -> JsonObject:
    location = read_location(given.location, root)
    for expression in given.expressions:
        require_reading(expression, "python", allowed=False)
    line = sources.next_statement(location.file, location.line)
    if line is None:
        raise InvalidArguments(f"`{given.location}`: no statement there or below.")
    return {"file": location.file, "line": line, "expressions": given.expressions}


def _probes_text(found: JsonObject, root: str, sources: Sources) -> str:
    lines: list[str] = []
    for each in cast(list[JsonObject], found.get("probes") or []):
        file, line = str(each["file"]), int(each["line"])
        lines.append(f"{relative(file, root)}:{line} `{sources.line(file, line)}` {each['hits']} hits")
        lines.extend(_probe_line(value) for value in cast(list[JsonObject], each["values"]))
    return truncate("\n".join(lines), _LONGEST)


def _probe_line(value: JsonObject) -> str:
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


class DiffArguments(ToolArguments):
    target: Annotated[str | None, Field(description="A failing test or command")] = None
    passing: Annotated[str | None, Field(description="A passing one to compare with")] = None
    stop: Annotated[int, Field(description="Or a stop of the session; -1 is the one before")] = -1
    other_stop: Annotated[int, Field(description="0 is the latest")] = 0
    session_id: str | None = None
    workspace_root: str | None = None


@debug_tool()
async def diff(service: DebugService, args: DiffArguments, context: CallContext) -> Result[Any]:
    """Compare two stops, or a failing with a passing run up to where they diverge."""
    if args.target is None:
        return await _compare_stops(service, args, context)
    passing = require_argument(args.passing, "passing", "Name a test or command that passes, to compare with `target`.")
    watch: JsonObject = {"watch": "flow"}
    (root, one), (_, other) = await asyncio.gather(
        _record(service, args.target, args.workspace_root, watch), _record(service, passing, args.workspace_root, watch)
    )
    text = divergence_text(compare(one.found, other.found), str(root), Sources())
    fields: JsonObject = {
        "outcomes": [one.outcome, other.outcome],
        "error": one.error,
        "recording": [one.cost.to_json(), other.cost.to_json()],
    }
    return Result.ok(text, warnings=(*one.cost.warnings, *other.cost.warnings), fields=fields)


async def _compare_stops(service: DebugService, args: DiffArguments, context: CallContext) -> Result[Any]:
    async with service.session(args.session_id, context, operation="diff") as session:
        known = service.stops.get(session.key, {})
        one, other = (_stop_number(each, list(known)) for each in (args.stop, args.other_stop))
        first, second = known[one], known[other]
        found = differences(first, second)
        shown = dict(list(found.items())[:_MAX_CHANGES])
        data: JsonObject = {"from": f"#{one} {first.location}", "to": f"#{other} {second.location}", "changed": shown}
        if len(found) > len(shown):
            data |= {"truncated": True, "total": len(found)}
        return answer(session, f"{len(found)} values differ between stop {one} and stop {other}.", data)


def _stop_number(wanted: int, known: list[int]) -> int:
    """A stop by its number; 0 and negative ones count from the latest."""
    index = len(known) - 1 + wanted
    if wanted > 0 and wanted in known:
        return wanted
    if wanted <= 0 and 0 <= index < len(known):
        return known[index]
    raise InvalidArguments(
        f"Unknown stop {wanted}.", instruction=f"Known stops: {', '.join(map(str, known[-20:])) or 'none yet'}."
    )


class DumpArguments(ToolArguments):
    pid: Annotated[int, Field(gt=0)]
    depth: Annotated[int, Field(description="Frames of each", ge=1, le=30)] = 6


@debug_tool()
async def dump(service: DebugService, args: DumpArguments, context: CallContext) -> Result[Any]:
    """Show what all threads and asyncio tasks of a running Python process do, without ending it."""
    found = await dump_process(args.pid)
    threads = cast(list[JsonObject], found["threads"])
    tasks = cast(list[JsonObject], found.get("tasks") or [])
    text = "\n".join([*_stacks("thread", threads, args.depth), *_stacks("task", tasks, args.depth)])
    return Result.ok(truncate(text, _LONGEST), fields={"pid": args.pid, "threads": len(threads), "tasks": len(tasks)})


def _stacks(kind: str, found: list[JsonObject], depth: int) -> list[str]:
    """Threads or tasks with their innermost frames; equal stacks are shown once."""
    groups: dict[str, list[JsonObject]] = {}
    for each in found:
        groups.setdefault("\n".join(cast(list[str], each["stack"])[:depth]), []).append(each)
    lines = [line for same in list(groups.values())[:_MAX_STACKS] for line in _stack_lines(kind, same, depth)]
    return [*lines, f"… {len(groups) - _MAX_STACKS} more stacks"] if len(groups) > _MAX_STACKS else lines


def _stack_lines(kind: str, same: list[JsonObject], depth: int) -> list[str]:
    names = ", ".join(str(each["name"]) for each in same[:3])
    more = f" and {len(same) - 3} more" if len(same) > 3 else ""
    waits = f" waits for {same[0]['waits_for']}" if same[0].get("waits_for") else ""
    stack = cast(list[str], same[0]["stack"])
    lines = [f"{kind} {names}{more}{waits}", *(f"  {level}" for level in stack[:depth])]
    if len(stack) > depth:
        lines.append(f"  … {len(stack) - depth} frames above")
    values = cast(dict[str, str], same[0].get("values") or {})
    return [*lines, "  " + ", ".join(f"{name}={text}" for name, text in values.items())] if values else lines
