"""init: what can be debugged here, and the call that starts it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.debug.adapters import adapter_for, look_for
from trysquare.debug.desk import Desk
from trysquare.debug.frameworks import FRAMEWORKS, framework
from trysquare.debug.languages import ALIASES
from trysquare.debug.launch_json import find_configuration, read_configurations
from trysquare.debug.names import ToolName
from trysquare.debug.responses import answer, next_step


class Init(ToolArguments):
    """Arguments of init."""

    language: Annotated[str, Field(description="python, javascript, typescript, c, cpp, rust, go, java, ruby")]
    mode: Annotated[Literal["launch", "attach", "remote_attach"], Field(description="How to begin")] = "launch"
    framework: Annotated[str | None, Field(description="pytest, django, flask, jest …")] = None
    workspace_root: str | None = None
    workspace_roots: list[str] | None = None
    launch_config_name: str | None = None
    verbose: Annotated[bool, Field(description="Also frameworks")] = False


def init_tool(desk: Desk) -> Tool:
    """The tool that says how to begin."""

    async def init(args: Init, context: CallContext) -> Result[Any]:
        """Check a language's debugger and tell the call that starts a session."""
        language = ALIASES.get(args.language.lower(), args.language.lower())
        roots = [desk.workspace(given) for given in (args.workspace_roots or [args.workspace_root])]
        adapter = adapter_for(language)
        if adapter is None:
            raise InvalidArguments(f"There is no debugger for `{args.language}`.")
        found = await look_for(adapter)
        if found.path is None:
            raise ToolError(
                f"The debugger of {language} is not installed.",
                code=ErrorCode.ADAPTER_NOT_FOUND,
                instruction=f"Ask the person to run: {' '.join(adapter.install)}; or use adapter download.",
            )
        data: JsonObject = {"language": language, "adapter": found.to_json(), "workspace_root": str(roots[0])}
        if names := [str(each.get("name")) for root in roots for each in read_configurations(root)]:
            data["launch_configurations"] = names
        if args.verbose:
            data["frameworks"] = {each.name: each.target for each in FRAMEWORKS if each.language == language}
        call = _call(language, args) if args.launch_config_name is None else _configured(args.launch_config_name, roots)
        known = framework(args.framework or "")
        note = f"; {known.note}" if known is not None and known.note else ""
        steps = [next_step(ToolName.SESSION_START, call, f"start a session in mode {args.mode}{note}")]
        return answer(None, f"{language} can be debugged with {adapter.name}.", data, next_steps=steps)

    return tool(init, name=ToolName.INIT, room="debug", category="debug", read_only=True, result_limit=None)


def _configured(name: str, roots: list[Path]) -> JsonObject:
    """The call that starts a launch configuration of one of the workspaces, once it is seen to hold."""
    root = next((root for root in roots if any(each.get("name") == name for each in read_configurations(root))), None)
    find_configuration(root or roots[0], name, os.environ)
    return {"launch_config_name": name, "workspace_root": str(root)}


def _call(language: str, args: Init) -> JsonObject:
    if args.mode == "attach":
        return {"pid": 12345, "language": language}
    if args.mode == "remote_attach":
        return {"host": "127.0.0.1", "port": 5678, "language": language}
    if args.framework is None:
        return {
            "target": _TARGETS.get(language, "…"),
            "breakpoints": [{"file": _TARGETS.get(language, "…"), "line": 1}],
        }
    known = framework(args.framework)
    if known is None or known.language != language:
        names = ", ".join(each.name for each in FRAMEWORKS if each.language == language)
        raise InvalidArguments(f"`{args.framework}` is not known for {language}.", instruction=f"Known are: {names}.")
    return known.call()


_TARGETS = {
    "python": "app.py", "javascript": "app.js", "typescript": "app.ts", "c": "app.c", "cpp": "app.cpp",
    "rust": "app.rs", "go": "main.go", "java": "Main.java", "ruby": "app.rb",
}  # fmt: skip
