"""config: what is set, what a debugger can do, and which launch configurations there are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.nearest import nearest
from trysquare.core.result import Result
from trysquare.core.secrets import MASK, is_secret_name
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.debug.adapters import adapter_for, installed
from trysquare.debug.arguments import ActionArguments
from trysquare.debug.desk import DEFAULTS, Desk
from trysquare.debug.languages import ALIASES
from trysquare.debug.launch_json import find_configuration, read_configurations
from trysquare.debug.names import ToolName
from trysquare.debug.rendering import LONGEST
from trysquare.debug.responses import answer


class ConfigArguments(ActionArguments):
    """Arguments of config."""

    also: ClassVar = {
        "show": "list", "display": "list", "view": "list", "cap": "capabilities", "environment": "env",
    }  # fmt: skip

    action: Literal["list", "get", "set", "env", "capabilities", "launch", "adapters"] = "list"
    key: Annotated[str | None, Field(description="For get and set")] = None
    value: Annotated[float | None, Field(description="For set")] = None
    language: Annotated[str | None, Field(description="For adapters: only this one's")] = None
    config_name: Annotated[str | None, Field(description="For launch: one configuration")] = None
    session_id: str | None = None


def config_tool(desk: Desk) -> Tool:
    """The tool for settings."""

    async def config(args: ConfigArguments, context: CallContext) -> Result[Any]:
        """Show or change limits; show capabilities and launch configurations."""
        principal = context.principal.subject
        match args.action:
            case "list" | "get" | "set":
                return _settings(desk, principal, args)
            case "env":
                found = _environment(os.environ)
                return answer(None, f"{len(found)} variables", {"env": found})
            case "adapters":
                return await _adapters(args.language)
            case "launch":
                return _launch(desk, args)
            case "capabilities":
                session = desk.sessions.find(args.session_id, principal=principal)
                told = {name: value for name, value in asdict(session.debugger.abilities).items() if value}
                return answer(session, f"What the debugger of {session.language} can do", {"capabilities": told})

    return tool(config, name=ToolName.CONFIG, room="debug", category="debug", result_limit=None)


def _settings(desk: Desk, principal: str, args: ConfigArguments) -> Result[Any]:
    values = desk.settings_of(principal)
    if args.action == "list":
        return answer(None, "Settings", {"settings": dict(values)})
    if args.key not in DEFAULTS:
        near = nearest(args.key or "", DEFAULTS) or tuple(DEFAULTS)
        raise InvalidArguments(f"There is no setting `{args.key}`.", instruction=f"Settings are {', '.join(near)}.")
    if args.action == "set":
        desk.set(principal, args.key, _checked(args.key, args.value))
    return answer(None, f"{args.key} = {desk.settings_of(principal)[args.key]:g}", {})


def _checked(key: str, value: float | None) -> float:
    """A value that the setting can have."""
    least = {"budget": 50, "frames": 1, "timing": 0, "timeout": 0.1}[key]
    if value is None:
        raise InvalidArguments("`value` is missing.", code=ErrorCode.VALIDATION_MISSING_PARAM)
    if value < least:
        raise InvalidArguments(f"`{key}` cannot be less than {least:g}.")
    return value if key == "timeout" else int(value)


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What is set of ours; a secret is told to be there, and no more."""
    own = {name: value for name, value in environment.items() if name.startswith("TRYSQUARE_")}
    return {name: MASK if is_secret_name(name) else value[:LONGEST] for name, value in own.items()}


async def _adapters(language: str | None) -> Result[Any]:
    wanted = None if language is None else adapter_for(ALIASES.get(language.lower(), language.lower()))
    if language is not None and wanted is None:
        raise InvalidArguments(f"There is no debugger for `{language}`.")
    found = await installed() if wanted is None else await installed([wanted])
    return answer(None, "Debuggers", {"adapters": [each.to_json() for each in found]})


def _launch(desk: Desk, args: ConfigArguments) -> Result[Any]:
    root = desk.workspace(None)
    if args.config_name is None:
        names = [str(each.get("name")) for each in read_configurations(root)]
        return answer(None, f"{len(names)} launch configurations", {"configurations": names})
    found = find_configuration(root, args.config_name, os.environ)
    data: JsonObject = {"language": found.language, "request": found.request, "target": found.target, "cwd": found.cwd}
    return answer(None, f"`{found.name}`", {name: value for name, value in data.items() if value})
