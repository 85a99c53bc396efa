"""`trysquare run AGENT TASK`: let an agent work on the project, and watch it."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

from trysquare.agent.definition import built_in_names, built_in_text, load_definition
from trysquare.agent.loop import run_agent
from trysquare.agent.opening import AGENTS_FOLDER, opened_run
from trysquare.agent.request import AgentRequest
from trysquare.agent.run import AgentOutcome
from trysquare.app import agent_surroundings
from trysquare.cli.logs import start_logging
from trysquare.cli.options import add_shared_options, load
from trysquare.cli.output import count, print_json
from trysquare.cli.terminal import TerminalCaller, say
from trysquare.core.context import CallContext
from trysquare.core.errors import ConfigurationError
from trysquare.settings.load import Loaded


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of `run`."""
    parser.add_argument("agent", metavar="AGENT", help=f"{', '.join(built_in_names())}, or a TOML file of your own")
    parser.add_argument("task", metavar="TASK", nargs="?", help="what it is to do, or - to read it from stdin")
    parser.add_argument("--model", metavar="MODEL", help="such as openai:NAME@URL, anthropic:NAME or local:NAME")
    parser.add_argument("--steps", metavar="N", type=_positive(int), help="most steps it may take")
    parser.add_argument("--tokens", metavar="N", type=_positive(int), help="most tokens it may use")
    parser.add_argument("--seconds", metavar="N", type=_positive(float), help="most seconds it may take")
    parser.add_argument(
        "--cost", metavar="N", type=_positive(float), help="most it may cost, in the currency of the prices"
    )
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    parser.add_argument("--show", action="store_true", help="print the agent's definition, to be copied and changed")
    add_shared_options(parser)


def _positive(kind: type[int] | type[float]) -> Any:
    def read(text: str) -> float:
        number = kind(text)
        if not 0 < number < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return number

    read.__name__ = "number"
    return read


def run(arguments: argparse.Namespace) -> int:
    """Run the agent; 0 if it finished its work, 1 if it ended otherwise."""
    loaded = load(arguments)
    if arguments.show:
        return _show(arguments.agent, loaded)
    if not arguments.task:
        raise ConfigurationError("the task is missing.", where="TASK", hint="Say what it is to do, in quotation marks.")
    start_logging(loaded)
    outcome = asyncio.run(_run(_request(arguments), loaded))
    _print(outcome, as_json=arguments.json)
    return 0 if outcome.finished else 1


def _show(name: str, loaded: Loaded) -> int:
    if name in built_in_names():
        print(built_in_text(name), end="")
        return 0
    definition = load_definition(name, folder=loaded.settings.project / AGENTS_FOLDER)
    raise ConfigurationError(f"`{definition.name}` is a file of your own already.")


def _request(arguments: argparse.Namespace) -> AgentRequest:
    task = sys.stdin.read() if arguments.task == "-" else arguments.task
    return AgentRequest(
        agent=arguments.agent,
        task=task.strip(),
        model=arguments.model,
        steps=arguments.steps,
        tokens=arguments.tokens,
        seconds=arguments.seconds,
        cost=arguments.cost,
    )


async def _run(request: AgentRequest, loaded: Loaded) -> AgentOutcome:
    context = CallContext(caller=TerminalCaller(), client="trysquare run")
    with agent_surroundings(loaded.settings, loaded.origins) as around:
        async with opened_run(request, around, context) as opened:
            say(f"{opened.definition.name} works in {opened.root} with {opened.model.name}")
            return await run_agent(opened)


def _print(outcome: AgentOutcome, *, as_json: bool) -> None:
    if as_json:
        print_json(outcome.to_json())
        return
    print(f"{outcome.status.replace('_', ' ')}: {outcome.summary}")
    if outcome.modified_files:
        print(f"changed: {', '.join(outcome.modified_files)}")
    for name, reason in outcome.missing.items():
        print(f"not available: {name} ({reason})")
    for command in outcome.waiting:
        print(f"waits for a person: {command}")
    spent = outcome.spent
    print(
        f"{count(spent.steps, 'step')}, {count(outcome.calls, 'call')}, {spent.tokens:,} tokens, {spent.seconds:.1f} s"
    )
