"""The `git` tool: status, diffs, commits, branches."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.metadata import Consent, Example
from trysquare.core.result import Result, answered
from trysquare.core.tool import Tool
from trysquare.workbench.context import Branch, ExistingFile, WorkspaceContext, run_tracked, workbench_tool
from trysquare.workbench.git import checked_name, git_job, run_git, succeeded
from trysquare.workbench.workspace import display_path

_RUNS_PROGRAMS = re.compile(
    r"(credential\..*helper|core\.(sshcommand|askpass|gitproxy)|remote\..*\.(vcs|receivepack|uploadpack)"
    r"|include(if)?\..*|http\..*\.?(proxy|sslcert|sslkey))",
    re.IGNORECASE,
)
"""Repository settings by which a push runs a program or goes to another address than approved."""

_MAX_NAMES = 1_000
_NOTHING = ".git/no file has this name"
Files = Annotated[list[str], Field(description="Files, relative to the workspace")]
Base = Annotated[str, Field(description="Branch, tag or commit", min_length=1)]
OptionalBase = Annotated[str | None, Field(description="Branch, tag or commit", min_length=1)]


class Status(ToolArguments):
    action: Literal["status"]


class Diff(ToolArguments):
    action: Literal["diff"]
    base: OptionalBase = None
    files: Files = Field(default_factory=list[str])


class Add(ToolArguments):
    action: Literal["add"]
    files: Annotated[list[str], Field(description="Files, relative to the workspace", min_length=1)]


class Commit(ToolArguments):
    action: Literal["commit"]
    message: Annotated[str, Field(description="Subject, and why", min_length=1)]
    files: Files = Field(default_factory=list[str])


class Push(ToolArguments):
    action: Literal["push"]
    remote: Annotated[str, Field(description="Name of the remote")] = "origin"
    branch: Annotated[str | None, Field(description="Branch", min_length=1)] = None


class Checkout(ToolArguments):
    action: Literal["checkout"]
    branch: Branch


class CreateBranch(ToolArguments):
    action: Literal["create_branch"]
    branch: Annotated[str, Field(description="Branch", min_length=1)]
    base: OptionalBase = None


class Log(ToolArguments):
    action: Literal["log"]
    base: Base = "HEAD"
    count: Annotated[int, Field(description="Commits", ge=1, le=200)] = 20


class Show(ToolArguments):
    action: Literal["show"]
    base: Base = "HEAD"


class Blame(ToolArguments):
    action: Literal["blame"]
    path: ExistingFile


GitArguments = Status | Diff | Add | Commit | Push | Checkout | CreateBranch | Log | Show | Blame


# Documented as in guide/tools/README.md.
def git_tool(ctx: WorkspaceContext) -> Tool:
    async def git(args: GitArguments) -> Result[Any]:
        """See what changed; commit, branch and push."""
        match args:
            case Status():
                return await _status(ctx)
            case Diff() | Log() | Show() | Blame():
                outcome = await run_git(ctx, *await _read_arguments(ctx, args))
                return answered(outcome.output or "Nothing differs.")
            case Add():
                await run_git(ctx, "add", "--", *await _visible_files(ctx, args.files))
                return await _status(ctx)
            case Commit():
                return await _commit(ctx, args)
            case Push():
                return await _push(ctx, args)
            case Checkout():
                return await _switch(ctx, checked_name(args.branch, "a branch"))
            case CreateBranch():
                base = [] if args.base is None else [checked_name(args.base, "a branch, tag or commit")]
                return await _switch(ctx, "--create", checked_name(args.branch, "a branch"), *base)

    return workbench_tool(
        git,
        category="vcs",
        needs=("git",),
        use_when="you look at changes or history, commit, or change the branch",
        avoid_when="you want the contents of a file: file reads it",
        limits="Hooks do not run; push asks the user",
        read_only=False,
        destructive=True,
        open_world=True,
        consent=Consent(question="Push commits to a remote repository?", actions=frozenset({"push"})),
        meta={"trysquare/read_only_actions": ("status", "diff", "log", "show", "blame")},
        examples=(
            Example(arguments={"action": "diff", "base": "main"}, explanation="All that differs from main."),
            Example(
                arguments={"action": "commit", "message": "Retry three times", "files": ["src/app.py"]},
                explanation="One file, committed.",
            ),
        ),
    )


async def _read_arguments(ctx: WorkspaceContext, args: Diff | Log | Show | Blame) -> list[str]:
    plain = ["--no-ext-diff", "--no-textconv", "--no-color"]
    match args:
        case Diff():
            base = [] if args.base is None else [_commits(ctx, args.base)]
            listing = ["diff", *plain, *base]
            return [*listing, "--", *await _visible_changes(ctx, listing, _paths(ctx, args.files))]
        case Log():
            options = [f"--max-count={args.count}", "--format=%h %ad %an: %s", "--date=short"]
            return ["log", *options, checked_name(args.base, "a branch, tag or commit"), "--"]
        case Show():
            listing = ["show", *plain, _commits(ctx, args.base)]
            names = await _visible_changes(ctx, [*listing, "--format="], [])
            return [*listing, "--stat", "--patch", "--", *names]
        case Blame():
            return ["blame", "--date=short", "--", *_paths(ctx, [args.path])]


def _commits(ctx: WorkspaceContext, given: str) -> str:
    """A ref or range; with hidden paths only commits, since a blob could be named by its id."""
    reference = checked_name(given, "a branch, tag or commit")
    if not ctx.workspace.hidden:
        return reference
    return re.sub(r"[^.]+(?:\.[^.]+)*", lambda name: f"{name[0]}^{{commit}}", reference)


async def _visible_changes(ctx: WorkspaceContext, listing: list[str], paths: list[str]) -> list[str]:
    """The paths as given; with hidden paths, every name of the output that is visible."""
    if not ctx.workspace.hidden:
        return paths
    listed = await run_git(ctx, *listing, "--name-only", "--no-renames", "-z", "--", *paths)
    return _visible_names(ctx, listed.output)


async def _visible_files(ctx: WorkspaceContext, files: list[str]) -> list[str]:
    """The files as given; with hidden paths, every visible file among them."""
    paths = _paths(ctx, files)
    if not ctx.workspace.hidden:
        return paths
    kinds = ("--cached", "--others", "--exclude-standard", "--deduplicate")
    names = _visible_names(ctx, (await run_git(ctx, "ls-files", *kinds, "-z", "--", *paths)).output)
    if names == [_NOTHING]:
        raise ToolError("None of these files can be added.", code=ErrorCode.FILE_NOT_FOUND)
    return names


def _visible_names(ctx: WorkspaceContext, listed: str) -> list[str]:
    names = [name for name in listed.strip("\n").split("\0") if name and not ctx.workspace.is_hidden(name)]
    if len(names) > _MAX_NAMES:
        raise ToolError(
            f"More than {_MAX_NAMES} files differ.",
            code=ErrorCode.COMMAND_FAILED,
            instruction="Name some of them in `files`, or a nearer `base`.",
        )
    # Without any name git would list everything.
    return names or [_NOTHING]


def _paths(ctx: WorkspaceContext, files: list[str]) -> list[str]:
    return [ctx.workspace.path(file) for file in files]


async def _status(ctx: WorkspaceContext) -> Result[Any]:
    outcome = await run_git(ctx, "status", "--porcelain=v1", "--branch", "--no-renames", "-z")
    head, *entries = outcome.output.rstrip("\0").split("\0")
    visible = (entry for entry in entries if not ctx.workspace.is_hidden(entry[3:].rstrip("/")))
    lines = [f"{entry[:2]} {display_path(entry[3:])}" for entry in visible]
    branch = head.removeprefix("## ").removeprefix("No commits yet on ").split("...")[0]
    data: JsonObject = {"branch": branch, "clean": not lines}
    return answered("\n".join([head, *lines]) if lines else f"{head}\nNothing to commit.", data=data)


async def _commit(ctx: WorkspaceContext, args: Commit) -> Result[Any]:
    paths = await _visible_files(ctx, args.files) if args.files else []
    if paths:
        await run_git(ctx, "add", "--", *paths)
    # Naming the files again keeps what others staged out of the commit.
    only = ["--only", "--", *paths] if paths else []
    outcome = await run_git(ctx, "commit", "--no-verify", f"--message={args.message}", *only)
    commit = (await run_git(ctx, "rev-parse", "HEAD")).output.strip()
    return answered(outcome.output.strip(), data={"commit": commit})


async def _switch(ctx: WorkspaceContext, *arguments: str) -> Result[Any]:
    outcome, modified = await run_tracked(ctx, git_job(ctx, "switch", *arguments))
    succeeded(outcome)
    return answered((outcome.errors or outcome.output).strip(), modified_files=modified or [])


async def _push(ctx: WorkspaceContext, args: Push) -> Result[Any]:
    remote = checked_name(args.remote, "a remote")
    branch = args.branch or (await run_git(ctx, "branch", "--show-current")).output.strip()
    reference = f"refs/heads/{checked_name(branch, 'a branch')}"
    await _refuse_programs(ctx)
    address = (await run_git(ctx, "remote", "get-url", "--push", remote)).output.strip()
    options = ("--no-verify", "--no-recurse-submodules", "--receive-pack=git-receive-pack")
    outcome = await run_git(ctx, "push", *options, "--", remote, f"{reference}:{reference}", network=True)
    message = (outcome.errors or outcome.output).strip()
    address = re.sub(r"(?<=://)[^/@\s]*@", "", address)  # without a password
    return answered(message, data={"remote": remote, "address": address, "branch": branch})


async def _refuse_programs(ctx: WorkspaceContext) -> None:
    listed = await run_git(ctx, "config", "--local", "--name-only", "--list")
    found = [name for name in listed.output.splitlines() if _RUNS_PROGRAMS.fullmatch(name)]
    if found:
        raise ToolError(
            f"The repository's own settings make a push run programs or change its target ({', '.join(found[:5])}).",
            code=ErrorCode.COMMAND_NOT_ALLOWED,
            instruction="Ask the user to push in their own terminal.",
        )
