"""Local model: a GGUF file in this process, constrained by the grammar of the calls."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from trysquare.core.concurrency import shielded
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.threads import run_in_thread
from trysquare.models.base import ModelOptions, ModelRequest, ModelResponse, Walk, plain_turns, read_constrained_calls
from trysquare.models.local.decoding import Decoder, Rollback
from trysquare.models.local.install import find_language_model, weights_file
from trysquare.models.local.runtime import Runtime, give_back, load

_LLGUIDANCE = "%llguidance {}\n"


class LocalModel:
    """A model in this process. It answers one request at a time; a cancelled one ends soon."""

    def __init__(self, name: str, runtime: Runtime, options: ModelOptions) -> None:
        self.name, self._runtime, self._options = name, runtime, options
        self.context_tokens = runtime.context_tokens

    def count(self, text: str) -> int:
        """Exact number of tokens of a text."""
        return len(self._runtime.tokenize(text))

    async def answer(self, request: ModelRequest) -> ModelResponse:
        """Answer in a thread, constrained where the request has a constraint."""
        cancelled = threading.Event()
        try:
            return await run_in_thread(lambda: self._answer(request, cancelled))
        except asyncio.CancelledError:
            cancelled.set()
            raise

    def _answer(self, request: ModelRequest, cancelled: threading.Event) -> ModelResponse:
        with self._runtime.lock:
            prompt = self._runtime.write_prompt(plain_turns(request.messages))
            request = self._fitted(request, len(prompt))
            if not self._runtime.read(prompt, cancelled.is_set):
                raise Rollback
            if request.constraint is None:
                return self._generate(prompt, request, cancelled, {})
            if self._options.hold == "grammar":
                # The runtime applies the whole grammar, and samples also what is forced.
                grammar = {"grammar": _LLGUIDANCE + request.constraint.lark(tokens=request.max_tokens)}
                answer = replace(self._generate(prompt, request, cancelled, grammar), constrained_by="grammar")
            else:
                answer = self._follow(prompt, request, request.constraint.walk(), cancelled)
            calls = read_constrained_calls(answer.text, request.messages)
            return replace(answer, calls=calls, stop="calls") if calls else answer

    def _fitted(self, request: ModelRequest, used: int) -> ModelRequest:
        """The request limited to the tokens that the context has left."""
        left = self.context_tokens - used - 1
        if left < 1:
            raise ToolError(
                f"The conversation has {used} tokens; the context of {self.name} is {self.context_tokens}.",
                code=ErrorCode.MODEL_CONTEXT_FULL,
                instruction="Compact the conversation, or set a longer context.",
            )
        return replace(request, max_tokens=min(request.max_tokens, left))

    def _follow(
        self, prompt: list[int], request: ModelRequest, walk: Walk, cancelled: threading.Event
    ) -> ModelResponse:
        tools, fast_forward = frozenset(tool.name for tool in request.tools), self._options.fast_forward
        decoder = Decoder(
            self._runtime, prompt, request.sampling, cancelled.is_set, tools=tools, fast_forward=fast_forward
        )
        decoded = decoder.follow(walk, request.max_tokens)
        return ModelResponse(
            text=decoded.text,
            stop="text" if decoded.whole else "length",
            constrained_by="grammar",
            usage=self._options.usage(len(prompt), decoded.tokens, decoded.forced),
            choice=decoded.choice,
        )

    def _generate(
        self, prompt: list[int], request: ModelRequest, cancelled: threading.Event, fields: JsonObject
    ) -> ModelResponse:
        """The response that the runtime samples token by token."""
        text: list[str] = []
        last: JsonObject = {}

        def receive(piece: JsonObject) -> bool:
            choice: JsonObject = piece["choices"][0]
            text.append(str(choice.get("text") or ""))
            last.update({key: value for key, value in {**piece, **choice}.items() if value is not None})
            return cancelled.is_set()

        body = {"prompt": prompt, "n_predict": request.max_tokens, **_sampling(request), **fields}
        self._runtime.stream(body, receive)
        if cancelled.is_set():
            raise Rollback
        timings: Any = last.get("timings") or {}
        return ModelResponse(
            text="".join(text),
            stop="length" if last.get("finish_reason") == "length" else "text",
            usage=self._options.usage(len(prompt), int(timings.get("predicted_n", 0))),
        )


def _sampling(request: ModelRequest) -> JsonObject:
    sampling = request.sampling
    fields: JsonObject = {"temperature": sampling.temperature, "top_k": sampling.top_k, "top_p": sampling.top_p}
    return fields if sampling.seed is None else {**fields, "seed": sampling.seed}


@asynccontextmanager
async def open_local(
    name: str, options: ModelOptions, env: Mapping[str, str] = os.environ
) -> AsyncGenerator[LocalModel]:
    """An installed model by name, or a GGUF file by path."""
    path, longest = _locate(name, env)
    tokens = options.context_tokens or longest
    runtime = await run_in_thread(lambda: load(path, context_tokens=tokens, threads=options.threads))
    try:
        yield LocalModel(name, runtime, options)
    finally:
        await shielded(run_in_thread(lambda: give_back(runtime)))


def _locate(name: str, env: Mapping[str, str]) -> tuple[Path, int | None]:
    """The weights file, and the context length where it is known."""
    if name.endswith(".gguf") or os.sep in name:
        return Path(name).expanduser(), None
    known = find_language_model(name)
    return weights_file(known.name, env), known.context_tokens
