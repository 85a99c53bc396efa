"""Local: a GGUF file in this process, held to the grammar of the calls."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.models.decoding import Decoder, TakenBack
from trysquare.models.held_calls import read_held_calls
from trysquare.models.known import find_known
from trysquare.models.model import Constraint, ModelAnswer, ModelRequest
from trysquare.models.options import ModelOptions
from trysquare.models.places import weights_file
from trysquare.models.runtime import Runtime, give_back, load
from trysquare.models.transcript import plain_turns

_LLGUIDANCE = "%llguidance {}\n"


class LocalModel:
    """A model in this process. Its answers come one after another; one that nobody wants any more ends soon."""

    def __init__(self, name: str, runtime: Runtime, options: ModelOptions) -> None:
        self._name = name
        self._runtime = runtime
        self._options = options

    @property
    def name(self) -> str:
        """The model's name, or its file."""
        return self._name

    @property
    def context_tokens(self) -> int:
        """How many tokens a dialogue may have."""
        return self._runtime.context_tokens

    def count(self, text: str) -> int:
        """How many tokens a text has, exactly."""
        return len(self._runtime.tokenize(text))

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Answer in a thread, held to the constraint where there is one."""
        gone = threading.Event()
        try:
            return await run_in_thread(lambda: self._answer(request, gone))
        except anyio.get_cancelled_exc_class():
            gone.set()
            raise

    def _answer(self, request: ModelRequest, gone: threading.Event) -> ModelAnswer:
        with self._runtime.lock:
            prompt = self._runtime.write_prompt(plain_turns(request.messages))
            request = self._fitted(request, len(prompt))
            if not self._runtime.read(prompt, gone.is_set):
                raise TakenBack
            if request.constraint is None:
                return self._free(prompt, request, gone)
            if self._options.hold == "grammar":
                return self._held(prompt, request, request.constraint, gone)
            return self._walked(prompt, request, request.constraint, gone)

    def _fitted(self, request: ModelRequest, used: int) -> ModelRequest:
        """The request with no more tokens than the context has left for an answer."""
        left = self.context_tokens - used - 1
        if left < 1:
            raise ToolError(
                f"The dialogue has {used} tokens, and {self._name} takes {self.context_tokens} with the answer.",
                code=ErrorCode.MODEL_CONTEXT_FULL,
                instruction="Compact the dialogue, or set a longer context.",
            )
        return replace(request, max_tokens=min(request.max_tokens, left))

    def _walked(
        self, prompt: list[int], request: ModelRequest, constraint: Constraint, gone: threading.Event
    ) -> ModelAnswer:
        tools = frozenset(tool.name for tool in request.tools)
        decoder = Decoder(
            self._runtime, prompt, request.sampling, gone.is_set, tools=tools, fast_forward=self._options.fast_forward
        )
        decoded = decoder.follow(constraint.walk(), request.max_tokens)
        answer = ModelAnswer(
            text=decoded.text,
            stop="text" if decoded.whole else "length",
            held="grammar",
            usage=self._options.usage(len(prompt), decoded.tokens, decoded.forced),
            choice=decoded.choice,
        )
        return _with_calls(answer, request)

    def _held(
        self, prompt: list[int], request: ModelRequest, constraint: Constraint, gone: threading.Event
    ) -> ModelAnswer:
        """Held by the whole grammar in the runtime, which samples also what is forced."""
        lark = constraint.lark(tokens=request.max_tokens)
        answer = self._generated(prompt, request, gone, {"grammar": _LLGUIDANCE + lark})
        return _with_calls(replace(answer, held="grammar"), request)

    def _free(self, prompt: list[int], request: ModelRequest, gone: threading.Event) -> ModelAnswer:
        return self._generated(prompt, request, gone, {})

    def _generated(
        self, prompt: list[int], request: ModelRequest, gone: threading.Event, fields: JsonObject
    ) -> ModelAnswer:
        """What the runtime writes by itself, token by token."""
        text: list[str] = []
        last: JsonObject = {}

        def hear(piece: JsonObject) -> bool:
            choice: JsonObject = piece["choices"][0]
            text.append(str(choice.get("text") or ""))
            last.update({key: value for key, value in {**piece, **choice}.items() if value is not None})
            return gone.is_set()

        body = {"prompt": prompt, "n_predict": request.max_tokens, **_sampling(request), **fields}
        self._runtime.stream(body, hear)
        if gone.is_set():
            raise TakenBack
        timings: Any = last.get("timings") or {}
        return ModelAnswer(
            text="".join(text),
            stop="length" if last.get("finish_reason") == "length" else "text",
            usage=self._options.usage(len(prompt), int(timings.get("predicted_n", 0))),
        )


def _sampling(request: ModelRequest) -> JsonObject:
    sampling = request.sampling
    fields: JsonObject = {"temperature": sampling.temperature, "top_k": sampling.top_k, "top_p": sampling.top_p}
    return fields if sampling.seed is None else {**fields, "seed": sampling.seed}


def _with_calls(answer: ModelAnswer, request: ModelRequest) -> ModelAnswer:
    calls = read_held_calls(answer.text, request.messages)
    return replace(answer, calls=calls, stop="calls") if calls else answer


@asynccontextmanager
async def open_local(
    name: str, options: ModelOptions, env: Mapping[str, str] = os.environ
) -> AsyncGenerator[LocalModel]:
    """An installed model by its name, or a GGUF file by its path."""
    path, longest = _placed(name, env)
    tokens = options.context_tokens or longest
    runtime = await run_in_thread(lambda: load(path, context_tokens=tokens, threads=options.threads))
    try:
        yield LocalModel(name, runtime, options)
    finally:
        with anyio.CancelScope(shield=True):
            await run_in_thread(lambda: give_back(runtime))


def _placed(name: str, env: Mapping[str, str]) -> tuple[Path, int | None]:
    """Where the weights lie, and how long a dialogue may be where that is known."""
    if name.endswith(".gguf") or os.sep in name:
        return Path(name).expanduser(), None
    known = find_known(name)
    return weights_file(known.name, env), known.context_tokens
