"""context, config, adapter: the state of a session in one call, settings, and the installed debug adapters."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from trysquare.core.approvals import arguments_digest
from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ConsentNeeded, ErrorCode, InvalidArguments, ToolError
from trysquare.core.host_paths import value_without_host_paths
from trysquare.core.json import JsonObject
from trysquare.core.redaction import MASK, is_secret_name
from trysquare.core.result import Result
from trysquare.core.text import closest_names
from trysquare.debug.adapters.base import AdapterPackage, AdapterStatus
from trysquare.debug.adapters.launch_json import find_configuration, read_configurations
from trysquare.debug.adapters.registry import check_packages, find_language, packages
from trysquare.debug.debugger import Stopped
from trysquare.debug.responses import answer, execution_state, next_steps_of, seen_at
from trysquare.debug.service import DEFAULTS, ActionArguments, DebugService, debug_tool, require_argument
from trysquare.debug.sessions.session import DebugSession
from trysquare.debug.snapshot import LONGEST, take_snapshot
from trysquare.debug.tools.breakpoints import stops_json
from trysquare.debug.tools.inspection import stack_of

_MINIMUM = {"budget": 50, "frames": 1, "timing": 0, "timeout": 0.1}


class ContextArguments(ToolArguments):
    detail_level: Literal["brief", "detailed", "full"] = "detailed"
    include_suggestions: Annotated[bool, Field(description="What to do next")] = True
    session_id: str | None = None
    budget: Annotated[int, Field(description="Tokens for values", ge=50)] = 800


# Documented as in guide/tools/README.md.
@debug_tool(read_only=True)
async def context(service: DebugService, args: ContextArguments, context: CallContext) -> Result[Any]:
    """Show where a session stands, how it got there and what to do next."""
    async with service.session(args.session_id, context) as session:
        data: JsonObject = {
            "execution_state": execution_state(session),
            "history": list(session.history)[-5 if args.detail_level == "brief" else -20 :],
        }
        if session.stop is not None:
            data |= await _stop_context(service, session, session.stop, args)
        if args.detail_level != "brief":
            data |= stops_json(session)
        if args.detail_level == "full":
            data["output"] = session.output.tail(1500)
        steps = next_steps_of(session) if args.include_suggestions else ()
        return answer(session, f"{session.title}: {data['execution_state']['status']}", data, next_steps=steps)


async def _stop_context(
    service: DebugService, session: DebugSession, stop: Stopped, args: ContextArguments
) -> JsonObject:
    watched = service.watches.get(session.key, ())
    snapshot = await take_snapshot(session.debugger, stop, budget=args.budget, root=session.root, watched=watched)
    if snapshot is None:
        return {}
    if args.detail_level == "brief":
        return {"location": snapshot.location}
    stack = await stack_of(session, service.frames(session)) if args.detail_level == "full" else {}
    return seen_at(snapshot) | stack


class ConfigArguments(ActionArguments):
    also: ClassVar = {
        "show": "list", "display": "list", "view": "list", "cap": "capabilities", "environment": "env",
    }  # fmt: skip

    action: Literal["list", "get", "set", "env", "capabilities", "launch", "adapters"] = "list"
    key: Annotated[str | None, Field(description="For get and set")] = None
    value: Annotated[float | None, Field(description="For set")] = None
    language: Annotated[str | None, Field(description="For adapters")] = None
    config_name: Annotated[str | None, Field(description="For launch")] = None
    session_id: str | None = None


@debug_tool()
async def config(service: DebugService, args: ConfigArguments, context: CallContext) -> Result[Any]:
    """Show or change limits; show capabilities and launch configurations."""
    principal = context.principal.subject
    match args.action:
        case "list" | "get" | "set":
            return _settings(service, principal, args)
        case "env":
            own = {name: value for name, value in os.environ.items() if name.startswith("TRYSQUARE_")}
            shown = {name: MASK if is_secret_name(name) else value[:LONGEST] for name, value in own.items()}
            env = value_without_host_paths(shown) if context.is_remote else shown
            return answer(None, f"{len(shown)} variables", {"env": env})
        case "adapters":
            wanted = packages() if args.language is None else [find_language(args.language).package]
            return answer(
                None,
                "Debuggers",
                {"adapters": _statuses(await check_packages(wanted, service.config.adapters), context)},
            )
        case "launch":
            return _launch_configurations(service, args)
        case "capabilities":
            session = service.sessions.find(args.session_id, principal=principal)
            able = {name: value for name, value in asdict(session.debugger.capabilities).items() if value}
            return answer(session, f"Capabilities of the {session.language} debugger", {"capabilities": able})


def _settings(service: DebugService, principal: str, args: ConfigArguments) -> Result[Any]:
    if args.action == "list":
        return answer(None, "Settings", {"settings": dict(service.settings_of(principal))})
    if args.key not in DEFAULTS:
        near = closest_names(args.key or "", DEFAULTS) or tuple(DEFAULTS)
        raise InvalidArguments(f"Unknown setting `{args.key}`.", instruction=f"Use one of: {', '.join(near)}.")
    if args.action == "set":
        if args.value is None:
            raise InvalidArguments("`value` is missing.", code=ErrorCode.VALIDATION_MISSING_PARAM)
        if args.value < _MINIMUM[args.key]:
            raise InvalidArguments(f"`{args.key}` must be at least {_MINIMUM[args.key]:g}.")
        value = args.value if args.key == "timeout" else int(args.value)
        service.overrides.setdefault(principal, {})[args.key] = value
    return answer(None, f"{args.key} = {service.settings_of(principal)[args.key]:g}", {})


def _launch_configurations(service: DebugService, args: ConfigArguments) -> Result[Any]:
    root = service.workspace(None)
    if args.config_name is None:
        names = [str(each.get("name")) for each in read_configurations(root)]
        return answer(None, f"{len(names)} launch configurations", {"configurations": names})
    found = find_configuration(root, args.config_name, os.environ)
    data: JsonObject = {"language": found.language, "request": found.request, "target": found.target, "cwd": found.cwd}
    return answer(None, f"`{found.name}`", {name: value for name, value in data.items() if value})


class AdapterArguments(ActionArguments):
    also: ClassVar = {"install": "download", "install_all": "download_all", "status": "list", "show": "list"}

    action: Literal["list", "download", "download_all"] = "list"
    language: Annotated[str | None, Field(description="For download")] = None
    version: str | None = None
    force: Annotated[bool, Field(description="Reinstall")] = False


@debug_tool(open_world=True)
async def adapter(service: DebugService, args: AdapterArguments, context: CallContext) -> Result[Any]:
    """List debuggers, or install one after consent."""
    if args.action == "list":
        found = await check_packages(packages(), service.config.adapters)
        count = sum(each.path is not None for each in found)
        return answer(
            None, f"{count} of {len(found)} debuggers are installed.", {"adapters": _statuses(found, context)}
        )
    if args.action == "download_all":
        wanted = list(packages())
    else:
        wanted = [find_language(require_argument(args.language, "language")).package]
    if args.version is not None:
        version = args.version
        wanted = [each.install_of(version) for each in wanted]
    return await _install(wanted, force=args.force or args.version is not None, context=context)


def _statuses(found: Iterable[AdapterStatus], context: CallContext) -> list[JsonObject]:
    """The debuggers, for callers on other machines without their paths."""
    statuses = [each.to_json() for each in found]
    return [value_without_host_paths(each) for each in statuses] if context.is_remote else statuses


async def _install(wanted: list[AdapterPackage], *, force: bool, context: CallContext) -> Result[Any]:
    found = await check_packages(wanted)
    missing = [each.package for each in found if force or each.path is None]
    if not missing:
        return answer(None, "Already installed.", {"adapters": _statuses(found, context)})
    await _require_consent(missing, context)
    for each in missing:
        code, output = await each.run_install()
        if code:
            raise ToolError(
                f"`{each.install_command}` failed with exit code {code}.",
                code=ErrorCode.ADAPTER_INSTALL_FAILED,
                instruction="Ask the user to run it, with the permissions that it needs.",
                fields={"output": output},
            )
    names = ", ".join(each.name for each in missing)
    return answer(None, f"Installed {names}.", {"adapters": _statuses(await check_packages(wanted), context)})


async def _require_consent(missing: list[AdapterPackage], context: CallContext) -> None:
    """Require the user's consent to exactly these commands, since installing changes the machine."""
    commands = "\n".join(each.install_command for each in missing)
    if not context.can_ask():
        raise ConsentNeeded(
            f"The user must run these commands, or agree to them:\n{commands}",
            instruction="Show the user these commands; this client cannot ask for consent.",
        )
    schema = {"type": "object", "properties": {"install": {"type": "boolean"}}, "required": ["install"]}
    # The key stands for these very commands: a yes to others does not count.
    key = "install-" + arguments_digest({"commands": commands})[:32]
    reply = await context.ask(f"Run these commands on this machine?\n{commands}", schema, key=key)
    if reply.action != "accept" or reply.content.get("install") is not True:
        raise ToolError("The user did not agree to the installation.", code=ErrorCode.CONSENT_REFUSED)
