"""`trysquare run AGENT TASK`: run an agent on the project."""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from typing import Any

from trysquare.agents import AgentRequest
from trysquare.agents.definition import built_in_names, built_in_text, load_definition
from trysquare.agents.journal import KIND, NullJournal
from trysquare.agents.runner import AGENTS_FOLDER, configured_model, run_request
from trysquare.app import agent_environment
from trysquare.cli.command import Command, option
from trysquare.cli.jobs import agent_engine, watch
from trysquare.cli.options import add_shared_options, load, positive
from trysquare.cli.terminal import TerminalCaller, count, print_report, say, start_logging
from trysquare.core.context import CallContext
from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.text import truncate
from trysquare.jobs import JobStatus, available
from trysquare.settings.load import Loaded

_ABOUT_AGENT = f"{', '.join(built_in_names())}, or a TOML file of your own"
_ABOUT_JOB = "store the run as a job that can be resumed (default if dbos is installed)"
_OPTIONS = (
    option("agent", metavar="AGENT", help=_ABOUT_AGENT, complete=built_in_names()),
    option("task", metavar="TASK", nargs="?", help="the task, or - to read it from stdin"),
    option("--model", metavar="MODEL", help="model: openai:NAME@URL, anthropic:NAME or local:NAME"),
    option("--steps", metavar="N", type=positive(int), help="maximum number of steps"),
    option("--tokens", metavar="N", type=positive(int), help="maximum number of tokens"),
    option("--answer-tokens", metavar="N", type=positive(int), help="maximum number of tokens of one answer"),
    option("--seconds", metavar="N", type=positive(float), help="maximum time in seconds"),
    option("--cost", metavar="N", type=positive(float), help="maximum cost (in the currency of models.*_price)"),
    option("--job", action=argparse.BooleanOptionalAction, default=True, help=_ABOUT_JOB),
    option("--json", action="store_true", help="print the outcome as JSON"),
    option("--show", action="store_true", help="print the agent's definition, to copy and change"),
    add_shared_options,
)


async def run(arguments: argparse.Namespace) -> int:
    """Run the agent; 0 if it finished, 1 otherwise."""
    loaded = load(arguments)
    if arguments.show:
        return _show(arguments.agent, loaded)
    if not arguments.task:
        raise ConfigurationError("the task is missing.", where="TASK", hint="Write the task in quotation marks.")
    start_logging(loaded)
    request = _request(arguments)
    # What is wrong with the request is said before a job is made of it.
    load_definition(request.agent, folder=loaded.settings.project / AGENTS_FOLDER)
    configured_model(loaded.settings, request.model)
    durable = arguments.job and _can_keep()
    outcome = await (_run_as_job(request, loaded) if durable else _run_here(request, loaded))
    print_report(outcome, lambda: _print(outcome), json=arguments.json)
    return 0 if outcome["status"] == "finished" else 1


def _can_keep() -> bool:
    if available():
        return True
    say("This run cannot be resumed, because dbos is not installed. Run: pip install 'trysquare[jobs]'")
    return False


def _show(name: str, loaded: Loaded) -> int:
    if name in built_in_names():
        print(built_in_text(name), end="")
        return 0
    definition = load_definition(name, folder=loaded.settings.project / AGENTS_FOLDER)
    raise ConfigurationError(f"`{definition.name}` is not a built-in agent; its definition is in your own file.")


def _request(arguments: argparse.Namespace) -> AgentRequest:
    known = {field.name for field in fields(AgentRequest)}
    given: dict[str, Any] = {name: value for name, value in vars(arguments).items() if name in known}
    given["task"] = (sys.stdin.read() if arguments.task == "-" else arguments.task).strip()
    return AgentRequest(**given)


async def _run_here(request: AgentRequest, loaded: Loaded) -> JsonObject:
    """Run the agent in this process alone."""
    context = CallContext(caller=TerminalCaller(), client="trysquare run")
    with agent_environment(loaded.settings, loaded.origins) as around:
        outcome = await run_request(request, around, NullJournal(), context)
    return outcome.to_json()


async def _run_as_job(request: AgentRequest, loaded: Loaded) -> JsonObject:
    """Run the agent as a job, which can be taken up again if this process ends before it."""
    async with agent_engine(loaded) as engine:
        job = await engine.start(KIND, request.to_json(), title=f"{request.agent}: {truncate(request.task)}")
        say(f"Job {job}; if it is interrupted: trysquare jobs resume {job}")
        return _outcome(await watch(engine, job))


def _outcome(found: JobStatus) -> JsonObject:
    if found.state == "done" and found.result is not None:
        return found.result
    ended = "was cancelled" if found.state == "cancelled" else f"has failed: {found.error}"
    raise ToolError(
        f"Job {found.job} {ended}",
        code=ErrorCode.JOB_CANCELLED if found.state == "cancelled" else ErrorCode.TOOL_FAILED,
        instruction=f"Resume it with: trysquare jobs resume {found.job}",
    )


def _print(outcome: JsonObject) -> None:
    print(f"{outcome['status'].replace('_', ' ')}: {outcome['summary']}")
    if outcome["modified_files"]:
        print(f"changed: {', '.join(outcome['modified_files'])}")
    for name, reason in outcome["missing"].items():
        print(f"not available: {name} ({reason})")
    for command in outcome["waiting"]:
        print(f"pending approval: {command}")
    tokens = outcome["prompt_tokens"] + outcome["completion_tokens"]
    print(f"{count(outcome['steps'], 'step')}, {count(outcome['calls'], 'call')}, {tokens:,} tokens")


COMMAND = Command(
    run,
    _OPTIONS,
    examples=(
        'trysquare run reviewer "Review my commit" --model anthropic:claude-sonnet-4-5',
        "trysquare run builder - --workbench . --steps 30 < task.txt",
        "trysquare run reviewer --show",
    ),
)
