"""session_start: a program under the debugger, up to its first stop."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.nearest import nearest
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.debug.debugger import BreakpointSpec
from trysquare.debug.desk import Desk
from trysquare.debug.guarding import require_parts
from trysquare.debug.languages import ALIASES, language_of
from trysquare.debug.launch_json import find_configuration
from trysquare.debug.launching import AttachSpec, LaunchSpec, SessionSpec
from trysquare.debug.locations import read_location
from trysquare.debug.names import ToolName
from trysquare.debug.session import ALWAYS, EventKind, Session
from trysquare.debug.targets import Target, read_target

_SOURCES = (".js", ".mjs", ".cjs", ".ts", ".c", ".cc", ".cpp", ".cxx", ".rs", ".go", ".rb", ".java")


class BreakpointArgument(ToolArguments):
    """A breakpoint to set before the program runs."""

    file: str
    line: int
    condition: str | None = None
    hit_condition: str | None = None
    log_message: str | None = None


class SessionStart(ToolArguments):
    """Arguments of session_start."""

    target: Annotated[str | None, Field(description="A file, a pytest node id or a command")] = None
    module: Annotated[str | None, Field(description="A Python module, instead of target")] = None
    pid: Annotated[int | None, Field(description="Attach to this process", ge=1)] = None
    host: Annotated[str | None, Field(description="Attach to a debugger that listens there")] = None
    port: Annotated[int | None, Field(ge=1, le=65535)] = None
    breakpoints: Annotated[list[BreakpointArgument] | None, Field(description="Where to stop")] = None
    workspace_root: Annotated[str | None, Field(description="The project's folder")] = None
    cwd: Annotated[str | None, Field(description="Folder to run in")] = None
    args: list[str] | None = None
    env: dict[str, str] | None = None
    language: Annotated[str | None, Field(description="Where the target does not tell it")] = None
    runtime_path: Annotated[str | None, Field(description="The interpreter to use")] = None
    launch_config_name: Annotated[str | None, Field(description="From .vscode/launch.json")] = None
    source_paths: Annotated[list[str] | None, Field(description="More folders with sources")] = None
    session_id: Annotated[str | None, Field(description="A name for it")] = None
    subscribe_events: list[Literal["breakpoint", "exception", "stopped", "terminated"]] | None = None
    just_my_code: bool = False
    allow_side_effects: Annotated[bool, Field(description="Let expressions call and assign")] = False
    timeout: Annotated[float, Field(description="Seconds to wait for a stop", gt=0, le=600)] = 30.0
    budget: Annotated[int, Field(description="Tokens for values", ge=50)] = 800


def start_tool(desk: Desk) -> Tool:
    """The tool that starts a program."""

    async def session_start(args: SessionStart, context: CallContext) -> Result[Any]:
        """Start a program under the debugger, or attach to one, and run it to its first stop."""
        root = desk.workspace(args.workspace_root)
        wanted, warnings = _configured(args, root)
        language, spec = _spec(wanted, root)
        roots = (root, *(desk.workspace(folder) for folder in args.source_paths or ()))
        breakpoints = [
            spec_of(each, roots, language=language, allowed=args.allow_side_effects) for each in args.breakpoints or ()
        ]
        session = await desk.sessions.start(
            language, spec, principal=context.principal.subject, breakpoints=breakpoints, session_id=args.session_id
        )
        session.allows_side_effects = args.allow_side_effects
        session.root = root
        session.subscribed = ALWAYS | {EventKind(each) for each in args.subscribe_events or ()}
        return await let_go(desk, session, context, timeout=args.timeout, budget=args.budget, warnings=warnings)

    return tool(
        session_start,
        name=ToolName.SESSION_START,
        room="debug",
        category="debug",
        result_limit=None,
    )


async def let_go(
    desk: Desk,
    session: Session,
    context: CallContext,
    *,
    timeout: float,
    budget: int,
    warnings: tuple[str, ...] = (),
) -> Result[Any]:
    """Let a program begin whose breakpoints are set, and answer what came of it."""
    async with desk.session(session.id, context, operation=f"session_start {session.title}"):
        # A program that was running already may well run on for long, and is the caller's again at once.
        waits = not desk.sessions.is_attached(session) or bool(session.breakpoints)
        outcome = await session.go(timeout=timeout if waits else 0.2)
        return await desk.report(session, outcome, budget=budget, warnings=warnings)


def _configured(args: SessionStart, root: Path) -> tuple[SessionStart, tuple[str, ...]]:
    """The arguments with what a launch configuration says, and what of it is not done. The call counts more."""
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
    }
    made = args.model_copy(update={name: value for name, value in from_file.items() if not getattr(args, name)})
    return made, tuple(f"`{name}` of the launch configuration is not done here." for name in found.left_out)


def _spec(args: SessionStart, root: Path) -> tuple[str, SessionSpec]:
    """What to start or attach to, and its language."""
    sources = tuple(args.source_paths or ())
    if args.pid is not None or args.port is not None or args.host is not None:
        spec = AttachSpec(
            root=root,
            pid=args.pid,
            host=args.host or "127.0.0.1",
            port=args.port,
            source_paths=sources,
            just_my_code=args.just_my_code,
            timeout=args.timeout,
        )
        return _language(args.language), spec
    folder = (root / (args.cwd or "")).resolve()
    target = read_target(_target(args), folder, runtime=args.runtime_path).with_words(args.args or ())
    _require_file(target, folder)
    if target.kind == "code":
        raise InvalidArguments(
            "`python -c` has no file to stop in.", instruction="Write the text to a file, and start that."
        )
    language = language_of(target, given="python" if args.module else args.language)
    return language, LaunchSpec(
        target=target,
        root=_folder(folder),
        env=args.env or {},
        source_paths=sources,
        just_my_code=args.just_my_code,
        timeout=args.timeout,
    )


def _language(given: str | None) -> str:
    return ALIASES.get(given.lower(), given.lower()) if given else "python"


def _target(args: SessionStart) -> str:
    if args.module and not args.target:
        return f"python -m {shlex.quote(args.module)}"
    if args.target and not args.module:
        return args.target
    raise InvalidArguments(
        "There has to be one of `target`, `module`, `pid`, `port` and `launch_config_name`.",
        code=ErrorCode.VALIDATION_MISSING_PARAM,
        instruction="Name a program to start, or a process to attach to.",
    )


def _require_file(target: Target, folder: Path) -> None:
    """Refuse a program or a test file that is not there: its debugger would tell it as a crash of the program's."""
    name = target.words[0].partition("::")[0] if target.words else ""
    is_file = target.kind in ("program", "pytest") and name.endswith(".py")
    is_source = target.kind == "command" and len(target.words) > 0 and Path(name).suffix in _SOURCES
    if (is_file or is_source) and not (folder / name).exists():
        near = nearest(name, [str(each.relative_to(folder)) for each in folder.glob(f"*{Path(name).suffix}")])
        raise InvalidArguments(
            f"There is no file `{name}` in {folder}.",
            instruction=f"Did you mean {', '.join(f'`{each}`' for each in near)}?"
            if near
            else "Write the path from workspace_root, or from cwd where that is given.",
        )


def _folder(path: Path) -> Path:
    if path.is_dir():
        return path
    raise InvalidArguments(f"`cwd` is no folder: {path}.")


def spec_of(given: BreakpointArgument, roots: Sequence[Path], *, language: str, allowed: bool) -> BreakpointSpec:
    """A breakpoint as the debugger takes it, checked: its place exists, its expressions only read."""
    root = next((each for each in roots if (each / given.file).exists()), roots[0])
    place = read_location(f"{given.file}:{given.line}", root)
    require_parts(language, given.condition, given.hit_condition, given.log_message, allowed=allowed, file=place.file)
    return BreakpointSpec(
        file=place.file,
        line=place.line,
        condition=given.condition,
        hit_condition=given.hit_condition,
        log_message=given.log_message,
        guarded=not allowed,
    )
