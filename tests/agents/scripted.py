"""A model that says what it was told to say, and what it takes to run an agent with it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from trysquare import StaticToolset, Tool, Toolset
from trysquare.agents import AgentDefinition, run_agent
from trysquare.agents.definition import parse_definition
from trysquare.agents.journal import Journal
from trysquare.agents.run import AgentOutcome, AgentRun
from trysquare.core.json import JsonObject
from trysquare.core.tokens import count_tokens
from trysquare.models import CallRequest, Message, Model, ModelRequest, ModelResponse, Usage
from trysquare.workbench import WorkbenchConfig, open_workbench

Said = str | JsonObject | list[JsonObject] | ModelResponse | Callable[[ModelRequest], Any]


class ScriptedModel:
    """Says one thing after the other, and remembers what it was asked."""

    name = "scripted"

    def __init__(self, said: Sequence[Said], *, context_tokens: int = 32_768) -> None:
        self._said = list(said)
        self.context_tokens = context_tokens
        self.requests: list[ModelRequest] = []

    async def answer(self, request: ModelRequest) -> ModelResponse:
        self.requests.append(request)
        if not self._said:
            raise AssertionError(f"the script is over; the model was told: {request.messages[-1].text}")
        return _answered(self._said.pop(0), request, len(self.requests))

    def count(self, text: str) -> int:
        return count_tokens(text)

    def told(self, number: int = -1) -> str:
        """The last turn of a request."""
        return self.requests[number].messages[-1].text

    def offered(self, number: int = -1) -> list[str]:
        """The tools of a request."""
        return [offer.name for offer in self.requests[number].tools]

    def messages(self, number: int = -1) -> tuple[Message, ...]:
        return self.requests[number].messages


def call(name: str, /, **arguments: Any) -> JsonObject:
    """A call as a model writes it."""
    return {"name": name, "args": arguments}


def _answered(said: Said, request: ModelRequest, number: int) -> ModelResponse:
    if callable(said):
        return _answered(said(request), request, number)
    if isinstance(said, ModelResponse):
        return said
    usage = Usage(prompt_tokens=100, completion_tokens=10)
    if isinstance(said, str):
        return ModelResponse(text=said, usage=usage)
    calls = said if isinstance(said, list) else [said]
    made = tuple(
        CallRequest(id=f"c{number}-{place}", name=one["name"], arguments=one["args"]) for place, one in enumerate(calls)
    )
    return ModelResponse(text=json.dumps(said), calls=made, stop="calls", constrained_by="native", usage=usage)


ANYTHING = """
name = "worker"
description = "Does anything."
instructions = "Do the task."
[tools]
optional = ["*"]
[policy]
default = "allow"
"""


def definition(text: str = ANYTHING, **changes: Any) -> AgentDefinition:
    return replace(parse_definition(text, where="a test"), **changes)


async def run_script(
    said: Sequence[Said] | Model,
    tools: Sequence[Tool] | Toolset = (),
    *,
    agent: AgentDefinition | None = None,
    task: str = "Do it.",
    journal: Journal | None = None,
    **options: Any,
) -> AgentOutcome:
    """Run an agent with what a model says, or with a model."""
    model = ScriptedModel(said) if isinstance(said, Sequence) else said
    toolset = StaticToolset(tools) if isinstance(tools, Sequence) else tools
    run = AgentRun(definition=agent or definition(), task=task, model=model, toolset=toolset, **options)
    return await run_agent(run, journal)


@asynccontextmanager
async def workbench(root: Path) -> AsyncGenerator[Toolset]:
    async with open_workbench(WorkbenchConfig(root=root)) as toolset:
        yield toolset


FINISH = call("finish", summary="Done.")
GIVE_UP = call("give_up", reason="Enough.")
