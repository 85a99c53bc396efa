"""git: what changed, commits and branches."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.metadata import Consent, Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.workbench.answers import answered
from trysquare.workbench.bench import Bench
from trysquare.workbench.kinds import Branch, ExistingFile
from trysquare.workbench.repository.git import git_job, run_git, succeeded
from trysquare.workbench.repository.references import checked_branch, checked_reference, checked_remote
from trysquare.workbench.tree import shown
from trysquare.workbench.watching import watched

_RUNS_PROGRAMS = re.compile(
    r"(credential\..*helper|core\.(sshcommand|askpass|gitproxy)|remote\..*\.(vcs|receivepack|uploadpack)"
    r"|include(if)?\..*|http\..*\.?(proxy|sslcert|sslkey))",
    re.IGNORECASE,
)
"""Settings of a repository by which a push would run a program, or go elsewhere than the person was told."""

_MOST_NAMES = 1_000
_NOTHING = ".git/no file is called so"
Files = Annotated[list[str], Field(description="Files, relative to the workspace")]
Base = Annotated[str, Field(description="Branch, tag or commit", min_length=1)]


class Status(ToolArguments):
    """Arguments of git status."""

    action: Literal["status"]


class Diff(ToolArguments):
    """Arguments of git diff."""

    action: Literal["diff"]
    base: Annotated[str | None, Field(description="Branch, tag or commit", min_length=1)] = None
    files: Files = Field(default_factory=list[str])


class Add(ToolArguments):
    """Arguments of git add."""

    action: Literal["add"]
    files: Annotated[list[str], Field(description="Files, relative to the workspace", min_length=1)]


class Commit(ToolArguments):
    """Arguments of git commit."""

    action: Literal["commit"]
    message: Annotated[str, Field(description="Subject, and why", min_length=1)]
    files: Files = Field(default_factory=list[str])


class Push(ToolArguments):
    """Arguments of git push."""

    action: Literal["push"]
    remote: Annotated[str, Field(description="Name of the remote")] = "origin"
    branch: Annotated[str | None, Field(description="Branch", min_length=1)] = None


class Checkout(ToolArguments):
    """Arguments of git checkout."""

    action: Literal["checkout"]
    branch: Branch


class CreateBranch(ToolArguments):
    """Arguments of git create_branch."""

    action: Literal["create_branch"]
    branch: Annotated[str, Field(description="Branch", min_length=1)]
    base: Annotated[str | None, Field(description="Branch, tag or commit", min_length=1)] = None


class Log(ToolArguments):
    """Arguments of git log."""

    action: Literal["log"]
    base: Base = "HEAD"
    count: Annotated[int, Field(description="Commits", ge=1, le=200)] = 20


class Show(ToolArguments):
    """Arguments of git show."""

    action: Literal["show"]
    base: Base = "HEAD"


class Blame(ToolArguments):
    """Arguments of git blame."""

    action: Literal["blame"]
    path: ExistingFile


GitArguments = Status | Diff | Add | Commit | Push | Checkout | CreateBranch | Log | Show | Blame


def git_tool(bench: Bench) -> Tool:
    """The tool for the repository."""

    async def git(args: GitArguments) -> Result[Any]:
        """See what changed; commit, branch and push."""
        return await _done(bench, args)

    return tool(
        git,
        room="workbench",
        category="vcs",
        requirement="required",
        needs=("git",),
        use_when="you look at changes or history, commit, or change the branch",
        avoid_when="you want the contents of a file: file reads it",
        limits="Hooks do not run; push asks a person",
        read_only=False,
        destructive=True,
        open_world=True,
        result_limit=None,
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


async def _done(bench: Bench, args: GitArguments) -> Result[Any]:
    match args:
        case Status():
            return await _status(bench)
        case Diff() | Log() | Show() | Blame():
            outcome = await run_git(bench, *await _reading(bench, args))
            return answered(outcome.output or "Nothing differs.")
        case Add():
            await run_git(bench, "add", "--", *await _shown_files(bench, args.files))
            return await _status(bench)
        case Commit():
            return await _commit(bench, args)
        case Push():
            return await _push(bench, args)
        case Checkout():
            return await _switch(bench, checked_branch(args.branch))
        case CreateBranch():
            base = [] if args.base is None else [checked_reference(args.base)]
            return await _switch(bench, "--create", checked_branch(args.branch), *base)


async def _reading(bench: Bench, args: Diff | Log | Show | Blame) -> list[str]:
    plain = ["--no-ext-diff", "--no-textconv", "--no-color"]
    match args:
        case Diff():
            base = [] if args.base is None else [_commits(bench, args.base)]
            listing = ["diff", *plain, *base]
            return [*listing, "--", *await _shown_names(bench, listing, _paths(bench, args.files))]
        case Log():
            form = "--format=%h %ad %an: %s"
            return ["log", f"--max-count={args.count}", form, "--date=short", checked_reference(args.base), "--"]
        case Show():
            listing = ["show", *plain, _commits(bench, args.base)]
            names = await _shown_names(bench, [*listing, "--format="], [])
            return [*listing, "--stat", "--patch", "--", *names]
        case Blame():
            return ["blame", "--date=short", "--", *_paths(bench, [args.path])]


def _commits(bench: Bench, given: str) -> str:
    """A reference, or a range of them. Where something is hidden they are commits: a file could be named by its id."""
    reference = checked_reference(given)
    if not bench.workspace.hidden:
        return reference
    return re.sub(r"[^.]+(?:\.[^.]+)*", lambda name: f"{name[0]}^{{commit}}", reference)


async def _shown_names(bench: Bench, listing: list[str], paths: list[str]) -> list[str]:
    """The paths to look at: as asked, or, where something is hidden, every name of the answer that is not."""
    if not bench.workspace.hidden:
        return paths
    listed = await run_git(bench, *listing, "--name-only", "--no-renames", "-z", "--", *paths)
    return _seen(bench, listed.output)


async def _shown_files(bench: Bench, files: list[str]) -> list[str]:
    """The files to add: as asked, or, where something is hidden, every file among them that is not."""
    paths = _paths(bench, files)
    if not bench.workspace.hidden:
        return paths
    kinds = ("--cached", "--others", "--exclude-standard", "--deduplicate")
    names = _seen(bench, (await run_git(bench, "ls-files", *kinds, "-z", "--", *paths)).output)
    if names == [_NOTHING]:
        raise ToolError("There is nothing of that to add.", code=ErrorCode.FILE_NOT_FOUND)
    return names


def _seen(bench: Bench, listed: str) -> list[str]:
    names = [name for name in listed.strip("\n").split("\0") if name and not bench.workspace.is_hidden(name)]
    if len(names) > _MOST_NAMES:
        raise ToolError(
            f"More than {_MOST_NAMES} files differ.",
            code=ErrorCode.COMMAND_FAILED,
            instruction="Name some of them in `files`, or a nearer `base`.",
        )
    # Without any name git would show everything.
    return names or [_NOTHING]


def _paths(bench: Bench, files: list[str]) -> list[str]:
    return [bench.workspace.path(file) for file in files]


async def _status(bench: Bench) -> Result[Any]:
    outcome = await run_git(bench, "status", "--porcelain=v1", "--branch", "--no-renames", "-z")
    head, *entries = outcome.output.rstrip("\0").split("\0")
    seen = (entry for entry in entries if not bench.workspace.is_hidden(entry[3:].rstrip("/")))
    lines = [f"{entry[:2]} {shown(entry[3:])}" for entry in seen]
    branch = head.removeprefix("## ").removeprefix("No commits yet on ").split("...")[0]
    data: JsonObject = {"branch": branch, "clean": not lines}
    return answered("\n".join([head, *lines]) if lines else f"{head}\nNothing to commit.", data=data)


async def _commit(bench: Bench, args: Commit) -> Result[Any]:
    paths = await _shown_files(bench, args.files) if args.files else []
    if paths:
        await run_git(bench, "add", "--", *paths)
    # The files are named again, so that what somebody else staged stays out of the commit.
    only = ["--only", "--", *paths] if paths else []
    outcome = await run_git(bench, "commit", "--no-verify", f"--message={args.message}", *only)
    commit = (await run_git(bench, "rev-parse", "HEAD")).output.strip()
    return answered(outcome.output.strip(), data={"commit": commit})


async def _switch(bench: Bench, *arguments: str) -> Result[Any]:
    outcome, modified = await watched(bench, git_job(bench, "switch", *arguments))
    succeeded(outcome)
    return answered((outcome.errors or outcome.output).strip(), modified_files=modified or [])


async def _push(bench: Bench, args: Push) -> Result[Any]:
    remote = checked_remote(args.remote)
    branch = checked_branch(args.branch or (await run_git(bench, "branch", "--show-current")).output.strip())
    await _refuse_programs(bench)
    address = (await run_git(bench, "remote", "get-url", "--push", remote)).output.strip()
    reference = f"refs/heads/{branch}"
    options = ("--no-verify", "--no-recurse-submodules", "--receive-pack=git-receive-pack")
    outcome = await run_git(bench, "push", *options, "--", remote, f"{reference}:{reference}", network=True)
    said = (outcome.errors or outcome.output).strip()
    return answered(said, data={"remote": remote, "address": _without_password(address), "branch": branch})


async def _refuse_programs(bench: Bench) -> None:
    listed = await run_git(bench, "config", "--local", "--name-only", "--list")
    found = [name for name in listed.output.splitlines() if _RUNS_PROGRAMS.fullmatch(name)]
    if found:
        raise ToolError(
            f"The repository's own settings name programs or other ways for a push ({', '.join(found[:5])}).",
            code=ErrorCode.COMMAND_NOT_ALLOWED,
            instruction="Ask the person to push in their own terminal.",
        )


def _without_password(address: str) -> str:
    return re.sub(r"(?<=://)[^/@\s]*@", "", address)
