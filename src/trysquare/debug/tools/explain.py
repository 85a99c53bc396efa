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
from trysquare.debug.desk import Desk
from trysquare.debug.elsewhere import explain_elsewhere
from trysquare.debug.explain import Explained, explain_failure
from trysquare.debug.languages import language_of
from trysquare.debug.targets import read_target


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
    data = {"outcome": explained.outcome, "exit_code": explained.exit_code, "recording": explained.cost.to_json()}
    if not explained.failures:
        return _nothing_failed(explained, target, data)
    share = 1900 // len(explained.failures)
    texts = [explanation.to_text(str(root), longest=share) for _, explanation in explained.failures]
    return Result.ok("\n\n".join(texts), warnings=explained.cost.warnings, fields=data)


def _nothing_failed(explained: Explained, target: str, data: dict[str, Any]) -> Result[Any]:
    if explained.outcome == "passed":
        return Result.ok(f"`{target}` did not fail: it ended with exit code {explained.exit_code}.", fields=data)
    raise ToolError(
        f"`{target}` ended ({explained.outcome}, exit code {explained.exit_code}) without an exception to explain.",
        code=ErrorCode.EXECUTION_FAILED,
        instruction="Read the output. Where no test ran, check the name.",
        fields={**data, "output": explained.output[-1000:]},
    )
