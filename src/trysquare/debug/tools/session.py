"""init, session_start, session: start programs under the debugger, attach to them, list and end sessions."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.host_paths import value_without_host_paths
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.core.text import closest_names
from trysquare.debug.adapters import registry
from trysquare.debug.adapters.launch_json import find_configuration, read_configurations
from trysquare.debug.debugger import BreakpointSpec
from trysquare.debug.responses import answer, execution_state, next_step
from trysquare.debug.service import ActionArguments, DebugService, debug_tool
from trysquare.debug.sessions.launch import AttachSpec, LaunchSpec, SessionSpec, Target, read_location, read_target
from trysquare.debug.sessions.session import ALWAYS, DebugSession, EventKind, Status
from trysquare.debug.tools.breakpoints import breakpoint_spec


class Init(ToolArguments):
    language: Annotated[str, Field(description=", ".join(registry.NAMES))]
    mode: Literal["launch", "attach", "remote_attach"] = "launch"
    framework: Annotated[str | None, Field(description="pytest, django, flask, jest …")] = None
    workspace_root: str | None = None
    workspace_roots: list[str] | None = None
    launch_config_name: str | None = None
    verbose: Annotated[bool, Field(description="Also frameworks")] = False


# Documented as in guide/tools/README.md.
@debug_tool(read_only=True)
async def init(service: DebugService, args: Init, context: CallContext) -> Result[Any]:
    """Check a language's debugger and return the call that starts a session."""
    language = registry.find_language(args.language)
    roots = [service.workspace(given) for given in (args.workspace_roots or [args.workspace_root])]
    package = language.package
    [found] = await registry.check_packages([package], service.config.adapters)
    if found.path is None:
        raise ToolError(
            f"The {language.name} debugger is not installed.",
            code=ErrorCode.ADAPTER_NOT_FOUND,
            instruction=f"Ask the user to run: {package.install_command}; or use adapter download.",
        )
    status, shown = found.to_json(), [str(root) for root in roots]
    if context.is_remote:
        status = value_without_host_paths(status)
        shown = [service.relative_workspace(root) for root in roots]
    data: JsonObject = {"language": language.name, "adapter": status, "workspace_root": shown[0]}
    if names := [str(each.get("name")) for root in roots for each in read_configurations(root)]:
        data["launch_configurations"] = names
    if args.verbose:
        data["frameworks"] = {each.name: each.target for each in language.frameworks}
    framework = None if args.framework is None else _framework(language, args.framework)
    if args.launch_config_name is not None:
        call = _configuration_call(args.launch_config_name, roots, shown)
    else:
        call = _start_call(language, framework, args)
    note = f"; {framework.note}" if framework is not None and framework.note else ""
    steps = [next_step("session_start", call, f"start a session in mode {args.mode}{note}")]
    return answer(None, f"{language.name} can be debugged with {package.name}.", data, next_steps=steps)


def _configuration_call(name: str, roots: list[Path], shown: list[str]) -> JsonObject:
    having = (
        at for at, root in enumerate(roots) if any(each.get("name") == name for each in read_configurations(root))
    )
    at = next(having, None)
    # Raises where the configuration is unknown or cannot be used.
    find_configuration(roots[at or 0], name, os.environ)
    return {"launch_config_name": name, "workspace_root": shown[at or 0]}


def _start_call(language: registry.Language, framework: registry.Framework | None, args: Init) -> JsonObject:
    match args.mode:
        case "attach":
            return {"pid": 12345, "language": language.name}
        case "remote_attach":
            return {"host": "127.0.0.1", "port": 5678, "language": language.name}
        case "launch" if framework is not None:
            return {"target": framework.target}
        case "launch":
            return {"target": language.sample, "breakpoints": [{"file": language.sample, "line": 1}]}


def _framework(language: registry.Language, name: str) -> registry.Framework:
    for each in language.frameworks:
        if each.name == name.lower():
            return each
    known = ", ".join(each.name for each in language.frameworks)
    raise InvalidArguments(f"Unknown framework `{name}` for {language.name}.", instruction=f"Use one of: {known}.")


class BreakpointArgument(ToolArguments):
    """A breakpoint to set before the program runs."""

    file: str
    line: int
    condition: str | None = None
    hit_condition: str | None = None
    log_message: str | None = None


class SessionStart(ToolArguments):
    target: Annotated[str | None, Field(description="A file, a pytest node id or a command")] = None
    module: Annotated[str | None, Field(description="Instead of target")] = None
    pid: Annotated[int | None, Field(description="Attach to this process", ge=1)] = None
    host: Annotated[str | None, Field(description="Attach to a debugger there")] = None
    port: Annotated[int | None, Field(ge=1, le=65535)] = None
    breakpoints: Annotated[list[BreakpointArgument] | None, Field(description="Where to stop")] = None
    workspace_root: Annotated[str | None, Field(description="The project's directory")] = None
    cwd: Annotated[str | None, Field(description="Directory to run in")] = None
    args: list[str] | None = None
    env: dict[str, str] | None = None
    stdin: Annotated[str | None, Field(description="Its whole input")] = None
    stop_on_entry: bool = False
    exceptions: Annotated[list[str] | None, Field(description="Stop at: raised, uncaught …; [] at none")] = None
    language: Annotated[str | None, Field(description="If the target does not tell")] = None
    runtime_path: Annotated[str | None, Field(description="The interpreter to use")] = None
    launch_config_name: Annotated[str | None, Field(description="From .vscode/launch.json")] = None
    source_paths: Annotated[list[str] | None, Field(description="More directories with sources")] = None
    session_id: Annotated[str | None, Field(description="A name for it")] = None
    subscribe_events: Annotated[list[EventKind] | None, Field(description=", ".join(get_args(EventKind)))] = None
    just_my_code: bool = False
    allow_side_effects: Annotated[bool, Field(description="Let expressions call and assign")] = False
    timeout: Annotated[float, Field(description="Seconds to wait for a stop", gt=0, le=600)] = 30.0
    budget: Annotated[int, Field(description="Tokens for values", ge=50)] = 800


@debug_tool()
async def session_start(service: DebugService, args: SessionStart, context: CallContext) -> Result[Any]:
    """Start a program under the debugger, or attach to one, and run it to its first stop."""
    root = service.workspace(args.workspace_root)
    wanted, warnings = _with_configuration(args, root)
    language, spec = _spec(wanted, root)
    roots = (root, *(service.workspace(folder) for folder in args.source_paths or ()))
    breakpoints: list[BreakpointSpec] = []
    for each in args.breakpoints or ():
        folder = next((folder for folder in roots if (folder / each.file).exists()), root)
        location = read_location(f"{each.file}:{each.line}", folder)
        breakpoints.append(breakpoint_spec(each, location, language=language, allowed=args.allow_side_effects))
    session = await service.sessions.start(
        language, spec, principal=context.principal.subject, breakpoints=breakpoints, session_id=args.session_id,
        exceptions=args.exceptions,
    )  # fmt: skip
    session.allows_side_effects = args.allow_side_effects
    session.root = root
    session.subscribed = ALWAYS | frozenset(args.subscribe_events or ())
    return await _run_to_first_stop(
        service, session, context, timeout=args.timeout, budget=args.budget, warnings=warnings
    )


async def _run_to_first_stop(
    service: DebugService, session: DebugSession, context: CallContext, *, timeout: float, budget: int,
    warnings: tuple[str, ...] = (),
) -> Result[Any]:  # fmt: skip
    async with service.session(session.id, context, operation=f"session_start {session.title}"):
        # A program that was attached to may run for long without a stop; the call returns at once.
        waits = not service.sessions.is_attached(session) or bool(session.breakpoints)
        outcome = await session.go(timeout=timeout if waits else 0.2)
        return await service.report(session, outcome, budget=budget, warnings=warnings)


def _with_configuration(args: SessionStart, root: Path) -> tuple[SessionStart, tuple[str, ...]]:
    """Fill missing arguments from a launch configuration, and warn of what is ignored in it."""
    if args.launch_config_name is None:
        return args, ()
    found = find_configuration(root, args.launch_config_name, os.environ)
    from_file = {
        "target": found.target or None,
        "language": found.language,
        "cwd": found.cwd,
        "env": dict(found.env) or None,
        "runtime_path": found.runtime,
        "host": found.host,
        "port": found.port if found.request == "attach" else None,
        "just_my_code": found.just_my_code,
        "stop_on_entry": found.stop_on_entry,
    }
    made = args.model_copy(update={name: value for name, value in from_file.items() if not getattr(args, name)})
    return made, tuple(f"`{name}` of the launch configuration is ignored." for name in found.left_out)


def _spec(args: SessionStart, root: Path) -> tuple[str, SessionSpec]:
    """The language, and what to start or attach to."""
    sources = tuple(args.source_paths or ())
    if args.pid is not None or args.port is not None or args.host is not None:
        if args.stdin is not None or args.stop_on_entry:
            raise InvalidArguments(
                "`stdin` and `stop_on_entry` are for programs that are started; this one is running.",
                instruction="Omit them, or send `target` instead of `pid` and `port`.",
            )
        spec = AttachSpec(
            root=root, pid=args.pid, host=args.host or "127.0.0.1", port=args.port, source_paths=sources,
            just_my_code=args.just_my_code, timeout=args.timeout,
        )  # fmt: skip
        return registry.normalize_language(args.language) if args.language else "python", spec
    folder = (root / (args.cwd or "")).resolve()
    target = read_target(_target(args), folder, runtime=args.runtime_path)
    target = replace(target, words=(*target.words, *(args.args or ())))
    _require_file(target, folder)
    if target.kind == "code":
        raise InvalidArguments(
            "`python -c` has no file to stop in.", instruction="Write the code to a file, and start that."
        )
    language = registry.language_of(target, given="python" if args.module else args.language)
    if not folder.is_dir():
        raise InvalidArguments(f"`cwd` is not a directory: {folder}.")
    return language, LaunchSpec(
        target=target, root=folder, env=args.env or {}, source_paths=sources, just_my_code=args.just_my_code,
        timeout=args.timeout, stdin=args.stdin, stop_on_entry=args.stop_on_entry,
    )  # fmt: skip


def _target(args: SessionStart) -> str:
    if args.module and not args.target:
        return f"python -m {shlex.quote(args.module)}"
    if args.target and not args.module:
        return args.target
    raise InvalidArguments(
        "Exactly one of `target`, `module`, `pid`, `port` and `launch_config_name` is required.",
        code=ErrorCode.VALIDATION_MISSING_PARAM,
        instruction="Send `target` to start a program, or `pid` to attach to a process.",
    )


def _require_file(target: Target, folder: Path) -> None:
    """Refuse a missing program or test file, which its debugger would report as a crash of the program."""
    name = target.words[0].partition("::")[0] if target.words else ""
    is_file = target.kind in ("program", "pytest") and name.endswith(".py")
    is_source = target.kind == "command" and len(target.words) > 0 and Path(name).suffix in registry.SUFFIXES
    if (is_file or is_source) and not (folder / name).exists():
        near = closest_names(name, [str(each.relative_to(folder)) for each in folder.glob(f"*{Path(name).suffix}")])
        raise InvalidArguments(
            f"File `{name}` not found in {folder}.",
            instruction=f"Did you mean {', '.join(f'`{each}`' for each in near)}?"
            if near
            else "Send a path relative to workspace_root, or to cwd if that is set.",
        )


class SessionArguments(ActionArguments):
    also: ClassVar = {
        "begin": "start", "end": "stop", "terminate": "stop", "kill": "stop", "ls": "list", "clean": "cleanup",
    }  # fmt: skip

    action: Literal["status", "start", "stop", "restart", "list", "cleanup", "switch", "subscribe"] = "status"
    session_id: str | None = None
    keep_breakpoints: Annotated[bool, Field(description="For restart")] = True
    events: Annotated[list[EventKind] | None, Field(description="For subscribe")] = None
    timeout: Annotated[float, Field(description="Seconds to wait for a stop", gt=0, le=600)] = 30.0


@debug_tool()
async def session(service: DebugService, args: SessionArguments, context: CallContext) -> Result[Any]:
    """Show sessions, switch between them, restart one or end one."""
    principal = context.principal.subject
    if args.action == "list":
        default = service.sessions.defaults.get(principal)
        listed = [{**_describe(each), "default": each.id == default} for each in service.sessions.of(principal)]
        return answer(None, f"{len(listed)} sessions", {"sessions": listed})
    if args.action == "cleanup":
        gone = service.sessions.cleanup(principal)
        return answer(None, f"Removed {len(gone)} ended sessions.", {})
    session = service.sessions.find(args.session_id, principal=principal)
    match args.action:
        case "start" | "restart":
            return await _restart(service, session, args, context)
        case "stop":
            attached = service.sessions.is_attached(session)
            await service.sessions.stop(session)
            program = "its program still runs" if attached else "and its program with it"
            return answer(None, f"Session `{session.id}` has ended, {program}.", {})
        case "status" | "switch" | "subscribe":
            return _status(service, session, args)


def _status(service: DebugService, session: DebugSession, args: SessionArguments) -> Result[Any]:
    data = _describe(session)
    if args.action == "switch":
        service.sessions.defaults[session.principal] = session.id
    if args.action == "subscribe":
        session.subscribed = ALWAYS | frozenset(args.events or ("exception",))
        data["subscribed"] = sorted(session.subscribed)
    if events := session.take_events():
        data["events"] = events
    return answer(session, f"Session `{session.id}`: {session.title}", data)


async def _restart(
    service: DebugService, session: DebugSession, args: SessionArguments, context: CallContext
) -> Result[Any]:
    """Run a program from its beginning; `start` only one that has ended."""
    if args.action == "start" and session.status is not Status.TERMINATED:
        raise ToolError(
            f"Session `{session.id}` has not ended.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Use `session restart` to begin again, or session_start for another program.",
        )
    fresh = await service.sessions.restart(session, keep_breakpoints=args.keep_breakpoints)
    return await _run_to_first_stop(service, fresh, context, timeout=args.timeout, budget=800)


def _describe(session: DebugSession) -> JsonObject:
    found: JsonObject = {
        "session_id": session.id, "title": session.title, "language": session.language, **execution_state(session),
    }  # fmt: skip
    if session.parent is not None:
        found["started_by"] = session.parent
    if session.ended is not None:
        found["ended"] = str(session.ended)
    return found
