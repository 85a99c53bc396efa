"""Steps of a local model: the grammar that constrains its calls, and an agent that works with the smallest one."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import jsonschema
import mcp_types as types

from examples.demo.conversation import converse
from examples.demo.stage import Stage, envelope_of
from trysquare.agents import AgentRequest
from trysquare.agents.journal import NullJournal
from trysquare.agents.runner import AGENTS_FOLDER, AgentEnvironment, run_request
from trysquare.app import agent_environment
from trysquare.grammar import CallGrammar
from trysquare.models import Message, Model, ModelRequest, ModelResponse, ToolSpec, open_model
from trysquare.models.local.install import weights_file
from trysquare.settings import Settings

SMALLEST = "smollm2-135m"
STEPS = 3
_SCOUT = """\
name = "scout"
description = "Looks around in a project."
instructions = "Look at the files, and say what you find."
workspace = "copy"

[tools]
required = ["file", "search"]
parallel = false

[policy]
rules = [{ effect = "allow", tool = "search" }, { effect = "allow", tool = "file", actions = ["read"] }]
"""
_TASK, _OFFERED = "Divide 6 by 4.", ("greet", "divide", "read_note")
_FILES = {"shop.py": "RATE = 2\n\n\ndef total(prices):\n    return sum(prices) * RATE\n", "notes.md": "# A shop\n"}


def missing(env: Mapping[str, str] = os.environ) -> str | None:
    """Why no local model can be shown here; None where one can."""
    if find_spec("xllamacpp") is None or find_spec("llguidance") is None:
        return "it needs llama.cpp; run: pip install 'trysquare[local]'"
    if not weights_file(SMALLEST, env).exists():
        return f"it needs a model of 98 MB; run: trysquare models install {SMALLEST}"
    return None


async def write_valid_calls(stage: Stage) -> None:
    """A grammar made of the schema stops a wrong call at its first wrong character, so that no model can write it."""
    await apply_grammar(stage)
    if lacking := missing():
        stage.transcript.lacking(lacking)
        return
    async with converse(stage) as talk:
        listed = [tool for tool in (await talk.client.list_tools()).tools if tool.name in _OFFERED]
        offered = tuple(_offer(tool) for tool in listed)
        stage.transcript.sent(f"{SMALLEST}:", _TASK)
        message = Message(role="user", text=_TASK)
        async with open_model(f"local:{SMALLEST}") as model:
            answer = await model.answer(
                ModelRequest(messages=(message,), tools=offered, constraint=CallGrammar(offered))
            )
        stage.transcript.received(answer.text)
        stage.transcript.note(f"135 million parameters; {_odds(answer)}")
        [call] = answer.calls
        result = envelope_of(await talk.call(call.name, call.arguments, lines=1))
        code = str(result.get("code", ""))
        stage.transcript.expect(not code.startswith("VALIDATION"), "the server accepts the arguments")


def _offer(tool: types.Tool) -> ToolSpec:
    """A listed tool as a model is offered it."""
    schema: dict[str, Any] = tool.input_schema
    return ToolSpec(name=tool.name, description=tool.description or "", schema=schema, flat=schema)


async def apply_grammar(stage: Stage) -> None:
    """The grammar of a tool's calls lets a right call pass, and stops a wrong one at its first wrong character."""
    grammar = await _trysquare(stage, "grammar", "--tool", "divide")
    stage.transcript.received(grammar.stdout, lines=2)
    file = "calls.gbnf"
    (stage.project / file).write_text(grammar.stdout, encoding="utf-8")
    right = '{"name":"divide","args":{"dividend":6,"divisor":4}}'
    wrong = '{"name":"divide","args":{"dividend":6,"diviser":4}}'
    passed = await _trysquare(stage, "grammar", "--check", file, "--text", right)
    stage.transcript.received(passed.stdout.splitlines()[-1])
    stopped = await _trysquare(stage, "grammar", "--check", file, "--text", wrong)
    stage.transcript.received("\n".join((stopped.stdout + stopped.stderr).splitlines()[-2:]))
    stage.transcript.expect(passed.returncode == 0, "the right call fits")
    stage.transcript.expect(stopped.returncode != 0, "the wrong one does not")


async def _trysquare(stage: Stage, *words: str) -> subprocess.CompletedProcess[str]:
    stage.transcript.sent("trysquare", *words)
    return await asyncio.to_thread(
        subprocess.run,
        stage.command(*words),
        env=stage.environment(),
        cwd=stage.project,
        capture_output=True,
        text=True,
        check=False,
    )


@dataclass(kw_only=True)
class _Watched:
    """A model whose requests and answers are kept."""

    model: Model
    exchanges: list[tuple[ModelRequest, ModelResponse]] = field(
        default_factory=list[tuple[ModelRequest, ModelResponse]]
    )

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def context_tokens(self) -> int:
        return self.model.context_tokens

    async def answer(self, request: ModelRequest) -> ModelResponse:
        answer = await self.model.answer(request)
        self.exchanges.append((request, answer))
        return answer

    def count(self, text: str) -> int:
        return self.model.count(text)


async def work_with_smallest(stage: Stage) -> None:
    """A model of 135 million parameters chooses the tools, and each call that it writes is valid."""
    exchanges = await _run_scout(stage)
    for _, answer in exchanges:
        stage.transcript.received(answer.text)
        usage = answer.usage
        stage.transcript.note(
            f"{usage.completion_tokens} tokens, of which the grammar forced {usage.forced_tokens}; {_odds(answer)}"
        )
    calls = [(request, call) for request, answer in exchanges for call in answer.calls]
    stage.transcript.expect(len(calls) >= STEPS, f"it made {STEPS} calls")
    stage.transcript.expect(
        all(answer.constrained_by == "grammar" for _, answer in exchanges), "a grammar constrained each"
    )
    schemas = [{offer.name: offer.schema for offer in request.tools}[call.name] for request, call in calls]
    for schema, (_, call) in zip(schemas, calls, strict=True):
        jsonschema.validate(call.arguments, schema)
    stage.transcript.expect(True, "each fits its tool's schema, as another validator says")


async def _run_scout(stage: Stage) -> list[tuple[ModelRequest, ModelResponse]]:
    project = stage.project / "scouted"
    (project / AGENTS_FOLDER).mkdir(parents=True)
    (project / AGENTS_FOLDER / "scout.toml").write_text(_SCOUT, encoding="utf-8")
    for name, text in _FILES.items():
        (project / name).write_text(text, encoding="utf-8")
    settings = Settings(project=project)
    exchanges: list[tuple[ModelRequest, ModelResponse]] = []
    request = AgentRequest(agent="scout", task="Find the rate.", model=f"local:{SMALLEST}", steps=STEPS)
    stage.transcript.sent("run scout", f'"{request.task}"', f"--model {request.model}", f"--steps {STEPS}")
    with agent_environment(settings, {}) as around:
        await run_request(request, _watching(around, exchanges), NullJournal())
    return exchanges


def _watching(around: AgentEnvironment, exchanges: list[tuple[ModelRequest, ModelResponse]]) -> AgentEnvironment:
    @asynccontextmanager
    async def opened(spec: str | None) -> AsyncGenerator[Model]:
        async with around.open_model(spec) as model:
            yield _Watched(model=model, exchanges=exchanges)

    return replace(around, open_model=opened)


def _odds(answer: ModelResponse) -> str:
    """How likely the model took each tool to be."""
    return json.dumps({name: round(share, 2) for name, share in answer.choice.items()})
