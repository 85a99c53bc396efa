"""debug_explain: why a test or program fails, in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.debug.desk import Desk
from trysquare.debug.elsewhere import explain_elsewhere
from trysquare.debug.explain import Explained, explain_failure
from trysquare.debug.languages import language_of
from trysquare.debug.targets import read_target

_NAMES = 50
_SHORT = 8
_OUTPUT = 1500


class Explain(ToolArguments):
    """Arguments of explain."""

    target: Annotated[str, Field(description="A failing pytest node id, or a command such as `python app.py`")]
    workspace_root: Annotated[str | None, Field(description="Folder to run in")] = None
    timeout: Annotated[float, Field(description="Seconds it may run", gt=0, le=600)] = 60.0
    runtime_path: Annotated[str | None, Field(description="The Python to use")] = None


def explain_tool(desk: Desk) -> Tool:
    """The tool that explains a failure."""

    async def explain(args: Explain, context: CallContext) -> Result[Any]:
        """Run a failing test or program once and say why it fails."""
        root = desk.workspace(args.workspace_root)
        target = read_target(args.target, root, runtime=args.runtime_path)
        if target.is_python:
            explained = await explain_failure(target, root, desk.nursery, timeout=args.timeout)
        else:
            explained = await explain_elsewhere(
                target,
                language_of(target),
                root,
                desk.sessions,
                principal=context.principal.subject,
                timeout=args.timeout,
            )
        return told(explained, root, str(target))

    return tool(
        explain,
        room="debug",
        category="debug",
        requirement="required",
        use_when="a test or program fails",
        read_only=False,
        result_limit=None,
    )


def told(explained: Explained, root: Path, target: str) -> Result[Any]:
    """What is answered: each failure's explanation, or that there was none to explain."""
    data: JsonObject = {"outcome": explained.outcome, "exit_code": explained.exit_code}
    if explained.failed_count > 1:
        data |= {"failed_count": explained.failed_count, "failed": list(explained.failed[:_NAMES])}
    data["recording"] = explained.cost.to_json()
    if not explained.failures:
        return _nothing_explained(explained, target, data)
    many = explained.failed_count > 1
    heading = _heading(explained) if many else []
    share = (1900 - sum(len(line.encode()) + 1 for line in heading)) // len(explained.failures)
    texts = [
        (f"{name}\n" if many else "") + each.to_text(str(root), longest=share - (len(name.encode()) + 1) * many)
        for name, each in explained.failures
    ]
    return Result.ok(
        "\n\n".join(["\n".join(heading), *texts] if many else texts), warnings=explained.cost.warnings, fields=data
    )


def _heading(explained: Explained) -> list[str]:
    """How many failed, and the names of those that are not explained below."""
    shown = {name for name, _ in explained.failures}
    others = [name for name in explained.failed if name not in shown]
    lines = [f"{explained.failed_count} failed; explained: {len(shown)}."]
    if others:
        named = ", ".join(others[:_SHORT])
        more = explained.failed_count - len(shown) - len(others[:_SHORT])
        lines.append(f"Not explained: {named}" + (f", and {more} more" if more > 0 else ""))
    return lines


def _nothing_explained(explained: Explained, target: str, data: JsonObject) -> Result[Any]:
    if explained.outcome == "passed":
        return Result.ok(_told_passed(explained, target), fields=data)
    if explained.reasons:
        reasons = [f"{name}: {reason.strip()[:300]}" for name, reason in list(explained.reasons.items())[:3]]
        return Result.ok("It failed without an exception:\n" + "\n".join(reasons), fields=data)
    said = [line.strip() for line in explained.output.splitlines() if line.startswith("ERROR: ")]
    near = explained.nearest_tests
    what = f" {' '.join(said[:3])}" if said else ""
    raise ToolError(
        f"`{target}` ended ({explained.outcome}, exit code {explained.exit_code}) without an exception.{what}",
        code=ErrorCode.EXECUTION_FAILED,
        instruction=f"Did you mean {' or '.join(near)}?" if near else "The output says what is known.",
        fields={**data, "output": explained.output[-_OUTPUT:].strip()},
    )


def _told_passed(explained: Explained, target: str) -> str:
    if explained.ran == 0:
        return f"`{target}` ran no test, so that none failed. Check the name."
    lines = [f"`{target}` did not fail: it ended with exit code {explained.exit_code}."]
    lines.extend(f"skipped: {name}: {reason}" for name, reason in list(explained.skipped.items())[:3])
    return "\n".join(lines)
