"""OpenAI-compatible: any server of the chat completions API, held in the best way that it honours."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import anyio

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.models.counting import estimate_tokens
from trysquare.models.endpoint import Endpoint, Refusal, Refused, read_refusal
from trysquare.models.held_calls import read_held_calls
from trysquare.models.model import ModelAnswer, ModelRequest
from trysquare.models.openai_bodies import has_tool_calls, plain_body, read_answer
from trysquare.models.openai_ways import KINDS, Way
from trysquare.models.options import ModelOptions

DEFAULT_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"
MOST_MISSED = 2
_DEFAULT_CONTEXT = 32_768
_LEFT_OUT = re.compile(r"\b(temperature|top_p|seed|parallel_tool_calls)\b")

_log = logging.getLogger(__name__)


class OpenAICompatibleModel:
    """A model behind a chat completions API. What its server honours is found out once and remembered."""

    def __init__(self, name: str, endpoint: Endpoint, options: ModelOptions) -> None:
        self._name = name
        self._endpoint = endpoint
        self._options = options
        self._context = options.context_tokens or _DEFAULT_CONTEXT
        self._honoured: dict[str, bool] = {}
        self._missed: dict[str, int] = {}
        """How often in a row a way brought plain text where a call was required."""
        self._looking = anyio.Lock()
        self._asked_length = options.context_tokens is not None
        self._left_out: set[str] = set()
        self._renamed: dict[str, str] = {}

    @property
    def name(self) -> str:
        """The model's name at its server."""
        return self._name

    @property
    def context_tokens(self) -> int:
        """How many tokens a dialogue may have, as set or as the server says."""
        return self._context

    def count(self, text: str) -> int:
        """About how many tokens a text has."""
        return estimate_tokens(text)

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Answer in the best way that the server honours and that fits the request."""
        await self._ask_length()
        for way in self._fitting(request):
            if await self._honours(way) and (answer := await self._held_answer(way, request)) is not None:
                return answer
        found = await self._complete(plain_body(request))
        return read_answer(found, request, self._options, "free")

    def _fitting(self, request: ModelRequest) -> Iterator[Way]:
        return (way for way in KINDS[self._options.hold] if way.fits(request))

    async def _held_answer(self, way: Way, request: ModelRequest) -> ModelAnswer | None:
        """The answer, or None where this way failed although its probe had worked."""
        try:
            found = await self._complete(way.body(request), may_refuse=True)
        except Refused as refused:
            # Servers refuse some schemas and grammars that others take; the next way is tried for this request.
            _log.info("%s refused the way %s: %s", self._name, way.name, refused.refusal.message)
            return None
        answer = read_answer(found, request, self._options, way.held)
        if way.held == "native":
            if answer.calls or not request.must_call or answer.stop != "text" or has_tool_calls(found):
                self._missed.pop(way.name, None)
                return answer
            return answer if self._trusts(way) else None
        calls = read_held_calls(answer.text, request.messages)
        return replace(answer, calls=calls, stop="calls") if calls else answer

    def _trusts(self, way: Way) -> bool:
        """Whether tools are still offered natively after an answer with plain text where a call was required.

        Small models often write a call as text although the server takes tools. One such answer tells nothing, and one
        that was cut or refused even less; it takes several in a row.
        """
        self._missed[way.name] = self._missed.get(way.name, 0) + 1
        if self._missed[way.name] < MOST_MISSED:
            return True
        _log.warning(
            "%s answered %d times in a row with text where a call was required; tools are not offered natively to it "
            "any more",
            self._name,
            MOST_MISSED,
        )
        self._honoured[way.name] = False
        return False

    async def _honours(self, way: Way) -> bool:
        async with self._looking:
            if way.name not in self._honoured:
                self._honoured[way.name] = await self._probe(way)
        return self._honoured[way.name]

    async def _probe(self, way: Way) -> bool:
        try:
            found = await self._complete(way.probe_body(), may_refuse=True)
        except Refused as refused:
            if refused.refusal.status in (401, 403, 404):
                raise read_refusal(refused.refusal, self._name, key_variable=self._key_variable) from refused
            return False
        return way.honoured(found)

    async def _complete(self, body: JsonObject, *, may_refuse: bool = False) -> JsonObject:
        for _ in range(4):
            try:
                return await self._endpoint.post("/chat/completions", self._adapted(body))
            except Refused as refused:
                if self._adapt(refused.refusal, body):
                    continue
                if may_refuse and not refused.refusal.about_length:
                    raise
                raise read_refusal(refused.refusal, self._name, key_variable=self._key_variable) from refused
        raise ToolError(f"{self._name} refuses every form of the request.", code=ErrorCode.MODEL_REFUSED)

    def _adapted(self, body: JsonObject) -> JsonObject:
        kept = {self._renamed.get(key, key): value for key, value in body.items() if key not in self._left_out}
        return {"model": self._name, **kept}

    def _adapt(self, refusal: Refusal, body: JsonObject) -> bool:
        """Learn from a refusal which field this server wants otherwise; whether there was something to learn."""
        if refusal.status not in (400, 422):
            return False
        if "max_completion_tokens" in refusal.message and "max_tokens" not in self._renamed:
            self._renamed["max_tokens"] = "max_completion_tokens"
            return True
        named = set(_LEFT_OUT.findall(refusal.message)) & body.keys() - self._left_out
        self._left_out |= named
        return bool(named)

    async def _ask_length(self) -> None:
        """Ask the server once how long a dialogue may be; many do not say."""
        if self._asked_length:
            return
        self._asked_length = True
        try:
            listed = await self._endpoint.get("/models")
        except Refused:
            return
        self._context = _stated_length(listed, self._name) or self._context

    @property
    def _key_variable(self) -> str:
        return self._options.key_variable or KEY_VARIABLE


def _stated_length(listed: JsonObject, name: str) -> int | None:
    entries: Any = listed.get("data")
    found = [cast(JsonObject, entry) for entry in entries if isinstance(entry, dict)] if entries else []
    named = [entry for entry in found if entry.get("id") == name] or (found if len(found) == 1 else [])
    for entry in named:
        meta: Any = entry.get("meta")
        stated = [entry.get("max_model_len"), cast(JsonObject, meta).get("n_ctx") if isinstance(meta, dict) else None]
        for length in stated:
            if isinstance(length, int) and length > 0:
                return length
    return None


@asynccontextmanager
async def open_openai_compatible(
    name: str, url: str, options: ModelOptions, env: Mapping[str, str]
) -> AsyncGenerator[OpenAICompatibleModel]:
    """A model behind a chat completions API; nothing is sent before the first request."""
    key = env.get(options.key_variable or KEY_VARIABLE, "")
    headers = {"authorization": f"Bearer {key}"} if key else {}
    endpoint = Endpoint(url, headers, timeout=options.timeout, retries=options.retries)
    try:
        yield OpenAICompatibleModel(name, endpoint, options)
    finally:
        await endpoint.close()
