"""Ways: how a model can be asked for calls. All get the same question, tools, weights and number of tokens."""

from __future__ import annotations

import importlib
import json
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio.to_thread

from evals.questions import Question
from trysquare.agents.parsing import KnownNames, parse_calls
from trysquare.core.json import JsonObject
from trysquare.grammar import CallGrammar
from trysquare.models import CallRequest, Message, Model, ModelOptions, ModelRequest, open_model
from trysquare.models.openai import native_body, read_answer

OURS = "Trysquare: grammar and prompt"
PROMPT = "Trysquare: prompt alone"
NATIVE = "llama.cpp's own tool calling"
PYDANTIC_AI = "pydantic-ai, over llama.cpp's server"
MOST_TOKENS = 256
CONTEXT = 4096
STOP = ["\n" * 6]
"""Ends an answer over llama.cpp's server. The larger model writes line breaks behind its call up to the last token."""
_SYSTEM = """\
You answer with calls of tools, as a JSON array without line breaks: [{"name":"…","args":{…}},{"name":"…","args":{…}}]
A call has one value for each argument. Where the request names several values or things, write a call for each of them.
Request: Add 1 and 2. Answer: [{"name":"add","args":{"a":1,"b":2}}]
Request: Add 1 and 2, and 3 and 4. Answer: [{"name":"add","args":{"a":1,"b":2}},{"name":"add","args":{"a":3,"b":4}}]
Take the values of arguments from the request. Leave out optional arguments of which it says nothing.
The tools, one a line:"""


class AnswerLost(Exception):
    """Why a way gave no calls back."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """What came back: calls, and the text beside them or instead of them."""

    calls: tuple[CallRequest, ...]
    text: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """One way of asking."""

    name: str
    plan: Callable[[Question], JsonObject]
    """All that is sent for a question, and the version of what sends it."""
    ask: Callable[[Question], Awaitable[Answered]]
    """What comes back. `AnswerLost` or a `ToolError` where the way fails."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """The model that is asked, and with how many threads."""

    file: Path
    threads: int


@asynccontextmanager
async def open_ways(weights: Weights) -> AsyncGenerator[list[Way]]:
    """Every way, over the same weights."""
    server = await anyio.to_thread.run_sync(_Server, weights)
    options = ModelOptions(threads=weights.threads, context_tokens=CONTEXT)
    async with open_model(f"local:{weights.file}", options) as model:
        yield [*_our_ways(model), _native_way(server), _pydantic_ai_way(server)]


def _our_ways(model: Model) -> list[Way]:
    async def held(question: Question) -> Answered:
        answer = await model.answer(our_request(question, held=True))
        return Answered(calls=answer.calls, text=answer.text)

    async def free(question: Question) -> Answered:
        answer = await model.answer(our_request(question, held=False))
        return Answered(calls=read_calls(question, answer.text), text=answer.text)

    def plan(question: Question) -> JsonObject:
        texts = [message.text for message in our_request(question, held=False).messages]
        return {"messages": texts, "trysquare": version("trysquare"), **_runtime()}

    return [Way(name=OURS, plan=plan, ask=held), Way(name=PROMPT, plan=plan, ask=free)]


def read_calls(question: Question, text: str) -> tuple[CallRequest, ...]:
    """The calls that stand in a text, as the agents read them."""
    return parse_calls(text, KnownNames.of_offers(question.offers)).calls


def our_request(question: Question, *, held: bool) -> ModelRequest:
    """The request as we send it: the tools in words, and the grammar where the answer is held."""
    offers = question.offers
    tools = [json.dumps({"name": o.name, "description": o.description, "args": o.schema}) for o in offers]
    return ModelRequest(
        messages=(
            Message(role="system", text="\n".join([_SYSTEM, *tools])),
            Message(role="user", text=question.text),
        ),
        tools=offers,
        constraint=CallGrammar(offers, parallel=True) if held else None,
        must_call=True,
        parallel=True,
        max_tokens=MOST_TOKENS,
    )


def _runtime() -> JsonObject:
    return {"max_tokens": MOST_TOKENS, "context": CONTEXT, "xllamacpp": version("xllamacpp")}


class _Server:
    """llama.cpp's server with its own templates, on a port of this machine and behind a key."""

    def __init__(self, weights: Weights) -> None:
        xllamacpp: Any = importlib.import_module("xllamacpp")
        self.key = secrets.token_urlsafe(32)
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(weights.file)
        parameters.n_ctx, parameters.n_parallel, parameters.verbosity, parameters.use_jinja = CONTEXT, 1, -1, True
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = weights.threads
        parameters.hostnames, parameters.api_keys = ["127.0.0.1"], [self.key]
        self._server: Any = xllamacpp.Server(parameters)
        self.address = str(self._server.listening_address)

    def complete(self, body: JsonObject) -> JsonObject:
        """A chat completion."""
        return self._server.handle_chat_completions(body)


def _native_request(question: Question) -> ModelRequest:
    return ModelRequest(
        messages=(Message(role="user", text=question.text),),
        tools=question.offers,
        must_call=True,
        parallel=True,
        max_tokens=MOST_TOKENS,
    )


def _native_body(question: Question) -> JsonObject:
    return {**native_body(_native_request(question)), "stop": STOP}


def _native_way(server: _Server) -> Way:
    def plan(question: Question) -> JsonObject:
        return {**_native_body(question), **_runtime()}

    async def ask(question: Question) -> Answered:
        found = await anyio.to_thread.run_sync(server.complete, _native_body(question))
        answer = read_answer(found, _native_request(question), ModelOptions(), "native")
        return Answered(calls=answer.calls, text=answer.text)

    return Way(name=NATIVE, plan=plan, ask=ask)


def _pydantic_ai_way(server: _Server) -> Way:
    ai: Any = importlib.import_module("pydantic_ai")
    direct: Any = importlib.import_module("pydantic_ai.direct")
    parameters: Any = importlib.import_module("pydantic_ai.models")
    models: Any = importlib.import_module("pydantic_ai.models.openai")
    providers: Any = importlib.import_module("pydantic_ai.providers.openai")
    provider = providers.OpenAIProvider(base_url=f"{server.address}/v1", api_key=server.key)
    model = models.OpenAIChatModel("local", provider=provider)
    settings = {
        "temperature": 0.0,
        "max_tokens": MOST_TOKENS,
        "parallel_tool_calls": True,
        "stop_sequences": STOP,
        "timeout": 600.0,
    }

    def plan(question: Question) -> JsonObject:
        return {**_native_body(question), **_runtime(), "pydantic-ai": version("pydantic-ai-slim")}

    async def ask(question: Question) -> Answered:
        try:
            return await run(question)
        except (ai.exceptions.AgentRunError, ValueError) as error:
            raise AnswerLost(str(error)) from error

    async def run(question: Question) -> Answered:
        tools = [
            ai.ToolDefinition(name=offer.name, description=offer.description, parameters_json_schema=offer.schema)
            for offer in question.offers
        ]
        wanted = parameters.ModelRequestParameters(function_tools=tools, allow_text_output=False)
        said = [ai.ModelRequest.user_text_prompt(question.text)]
        found = await direct.model_request(model, said, model_settings=settings, model_request_parameters=wanted)
        calls = tuple(
            CallRequest(id=part.tool_call_id, name=part.tool_name, arguments=part.args_as_dict())
            for part in found.parts
            if isinstance(part, ai.ToolCallPart)
        )
        return Answered(calls=calls, text=found.text or "")

    return Way(name=PYDANTIC_AI, plan=plan, ask=ask)
