"""OpenAI-compatible chat completions and their output modes."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.core.tokens import estimate_tokens
from trysquare.models import base
from trysquare.net.http import HttpRefused, JsonClient

DEFAULT_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"
MAX_MISSED = 2
_DEFAULT_CONTEXT = 32_768
_OPTIONAL_FIELD = re.compile(r"\b(temperature|top_p|seed|parallel_tool_calls)\b")
_PROBE = {"probe": "trysquare"}
_PROBE_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"probe": {"type": "string", "enum": ["trysquare"]}},
    "required": ["probe"],
    "additionalProperties": False,
}
_PROBE_GBNF = 'root ::= "{\\"probe\\":\\"trysquare\\"}"'
# No model writes the probe's value by itself in reply to a greeting: if it comes back, the server constrained it.
_PROBE_BODY: JsonObject = {
    "messages": [{"role": "user", "content": "Good morning!"}],
    "max_tokens": 48,
    "temperature": 0,
}

_log = logging.getLogger(__name__)


def plain_body(request: base.ModelRequest) -> JsonObject:
    """A request whose conversation is plain text."""
    return {"messages": base.plain_turns(request.messages), **_limits(request)}


def native_body(request: base.ModelRequest) -> JsonObject:
    """A request that offers the tools as the API's own `tools`."""
    return {
        "messages": [_native_message(message) for message in request.messages],
        **_limits(request),
        "tools": [_function(name=t.name, description=t.description, parameters=t.flat) for t in request.tools],
        "tool_choice": "required" if request.must_call else "auto",
        "parallel_tool_calls": request.parallel,
    }


def _limits(request: base.ModelRequest) -> JsonObject:
    """Token limit and sampling parameters; defaults are left to the server."""
    sampling = request.sampling
    optional = {"top_p": sampling.top_p if sampling.top_p < 1.0 else None, "seed": sampling.seed}
    given = {name: value for name, value in optional.items() if value is not None}
    return {"max_tokens": request.max_tokens, "temperature": sampling.temperature, **given}


def _function(**fields: Any) -> JsonObject:
    return {"type": "function", "function": fields}


def _native_message(message: base.Message) -> JsonObject:
    if message.role == "tool":
        text = f"FAILED: {message.text}" if message.failed else message.text
        return {"role": "tool", "tool_call_id": message.answers, "content": text}
    if not message.calls:
        return {"role": message.role, "content": message.text}
    calls = [
        {"id": call.id, **_function(name=call.name, arguments=json.dumps(call.arguments, ensure_ascii=False))}
        for call in message.calls
    ]
    text = None if base.holds_calls(message) else message.text or None
    return {"role": "assistant", "content": text, "tool_calls": calls}


def read_answer(
    found: JsonObject, request: base.ModelRequest, options: base.ModelOptions, constrained_by: base.ConstrainedBy
) -> base.ModelResponse:
    """The response in a completion."""
    if not as_list(found.get("choices")):
        raise ToolError(
            f"The model's server sent a response without choices: {json.dumps(found)[:200]}",
            code=ErrorCode.MODEL_UNAVAILABLE,
            instruction="Check that the URL is that of a chat completions API.",
        )
    choice, message = _first_choice(found)
    calls, unread = _calls(message.get("tool_calls"), request.messages)
    text = "\n".join(part for part in (_text(message.get("content")), *unread) if part)
    usage, reason = as_object(found.get("usage")), choice.get("finish_reason")
    stop: base.StopReason = "length" if reason == "length" else "calls" if calls else "text"
    return base.ModelResponse(
        text=text or _text(message.get("refusal")),
        calls=calls,
        stop="refused" if message.get("refusal") or reason == "content_filter" else stop,
        constrained_by=constrained_by,
        usage=options.usage(*(base.token_count(usage, key) for key in ("prompt_tokens", "completion_tokens"))),
    )


def _first_choice(found: JsonObject) -> tuple[JsonObject, JsonObject]:
    """The first choice of a completion, and its message."""
    choice = as_object(next(iter(as_list(found.get("choices"))), None))
    return choice, as_object(choice.get("message"))


def _calls(found: Any, messages: Sequence[base.Message]) -> tuple[tuple[base.CallRequest, ...], list[str]]:
    """The calls, and those with unreadable arguments as text."""
    calls: list[base.CallRequest] = []
    unread: list[str] = []
    ids = base.new_ids(messages)
    for entry in map(as_object, as_list(found)):
        function = as_object(entry.get("function"))
        name, arguments = str(function.get("name", "")), _arguments(function.get("arguments"))
        if arguments is None:
            unread.append(f'{{"name":{json.dumps(name)},"args":{function.get("arguments")}}}')
        else:
            calls.append(base.CallRequest(id=_text(entry.get("id")) or next(ids), name=name, arguments=arguments))
    return tuple(calls), unread


def _arguments(found: Any) -> JsonObject | None:
    """The arguments, which the API sends as a JSON string and some servers as an object."""
    found = _parse_json(found or "{}") if isinstance(found, str) else found
    return as_object(found) if isinstance(found, dict) else None


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _text(found: Any) -> str:
    """A string, or the strings among the parts that some servers send; reasoning is left out."""
    if isinstance(found, list):
        parts = map(as_object, as_list(found))
        return "".join(_text(part.get("text")) for part in parts if part.get("type") in ("text", "output_text"))
    return found if isinstance(found, str) else ""


@dataclass(frozen=True, slots=True)
class OutputMode:
    """A way to constrain a response."""

    name: str
    kind: base.Hold
    constrained_by: base.ConstrainedBy
    probe: JsonObject
    fields: Callable[[base.Constraint, int], JsonObject] | None = None
    """Request fields for a constraint; None for the server's own tool calling, which has no constraint."""

    def body(self, request: base.ModelRequest) -> JsonObject:
        if self.fields is None:
            return native_body(request)
        more = {} if request.constraint is None else self.fields(request.constraint, request.max_tokens)
        return {**plain_body(request), **more}

    def fits(self, request: base.ModelRequest) -> bool:
        """Whether the request has what this mode requires."""
        return bool(request.tools) if self.fields is None else request.constraint is not None

    def honoured(self, found: JsonObject) -> bool:
        """Whether the completion of a probe shows that the server supports this mode."""
        _, message = _first_choice(found)
        if self.fields is None:
            call = as_object(next(iter(as_list(message.get("tool_calls"))), None))
            function = as_object(call.get("function"))
            arguments = function.get("arguments")
            return function.get("name") == "probe" and arguments != "" and _arguments(arguments) is not None
        content = message.get("content")
        return isinstance(content, str) and _parse_json(content) == _PROBE


def _schema_format(schema: JsonObject) -> JsonObject:
    calls = {"name": "calls", "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": calls}}


def _in_object(schema: JsonObject) -> JsonObject:
    """The schema of the calls inside an object, since OpenAI and others take nothing else at the top level."""
    inner = dict(schema)
    shared = {"$defs": inner.pop("$defs")} if "$defs" in inner else {}
    closed: JsonObject = {"required": ["calls"], "additionalProperties": False}
    return {"type": "object", "properties": {"calls": inner}, **closed, **shared}


_NATIVE_PROBE: JsonObject = {
    "tools": [_function(name="probe", description="Greets back.", parameters=_PROBE_SCHEMA)],
    "tool_choice": "required",
}
# Best first: exact grammars, then what models were trained for, then the rest. `grammar` is the field of llama.cpp's
# server, `ebnf` that of SGLang, `structured_outputs` that of vLLM, `guided_json` that of older vLLM.
MODES: tuple[OutputMode, ...] = (
    OutputMode("grammar", "grammar", "grammar", {"grammar": _PROBE_GBNF},
               lambda constraint, tokens: {"grammar": constraint.gbnf(tokens=tokens)}),
    OutputMode("ebnf", "guided", "grammar", {"ebnf": _PROBE_GBNF},
               lambda constraint, tokens: {"ebnf": constraint.gbnf(tokens=tokens)}),
    OutputMode("structured_outputs", "guided", "schema", {"structured_outputs": {"json": _PROBE_SCHEMA}},
               lambda constraint, _: {"structured_outputs": {"json": constraint.json_schema()}}),
    OutputMode("guided_json", "guided", "schema", {"guided_json": _PROBE_SCHEMA},
               lambda constraint, _: {"guided_json": constraint.json_schema()}),
    OutputMode("native", "native", "native", _NATIVE_PROBE),
    OutputMode("response_format", "schema", "schema", _schema_format(_PROBE_SCHEMA),
               lambda constraint, _: _schema_format(_in_object(constraint.json_schema()))),
)  # fmt: skip


class OpenAICompatibleModel:
    """A model behind a chat completions API. What its server supports is probed once."""

    count = staticmethod(estimate_tokens)

    def __init__(self, name: str, client: JsonClient, options: base.ModelOptions) -> None:
        self.name, self._client, self._options = name, client, options
        self.context_tokens = options.context_tokens or _DEFAULT_CONTEXT
        self._honoured: dict[str, bool] = {}
        self._missed = 0
        """Consecutive plain-text responses to native tools where a call was required."""
        self._probing = asyncio.Lock()
        self._asked_length = options.context_tokens is not None
        self._dropped: set[str] = set()
        self._renamed: dict[str, str] = {}

    async def answer(self, request: base.ModelRequest) -> base.ModelResponse:
        """Answer in the best mode that the server supports and that fits the request."""
        await self._ask_length()
        for mode in MODES:
            wanted = self._options.hold in ("auto", mode.kind) and mode.fits(request)
            if wanted and await self._honours(mode) and (answer := await self._try(mode, request)) is not None:
                return answer
        found = await self._complete(plain_body(request))
        return read_answer(found, request, self._options, "free")

    async def _try(self, mode: OutputMode, request: base.ModelRequest) -> base.ModelResponse | None:
        """The response; None where the mode failed although its probe had worked."""
        try:
            found = await self._complete(mode.body(request), may_refuse=True)
        except HttpRefused as refused:
            # Servers reject some schemas and grammars that others take; the next mode is tried for this request.
            _log.info("request rejected, trying the next mode: model=%s mode=%s %s", self.name, mode.name, refused)
            return None
        answer = read_answer(found, request, self._options, mode.constrained_by)
        if mode.constrained_by == "native":
            sent_calls = bool(_first_choice(found)[1].get("tool_calls"))
            if sent_calls or not request.must_call or answer.stop != "text":
                self._missed = 0
                return answer
            return answer if self._still_trusts(mode) else None
        calls = base.read_constrained_calls(answer.text, request.messages)
        return replace(answer, calls=calls, stop="calls") if calls else answer

    def _still_trusts(self, mode: OutputMode) -> bool:
        """Whether tools are still offered natively after plain text where a call was required.

        Small models often write a call as text although the server takes tools, so it takes several in a row.
        """
        self._missed += 1
        if self._missed < MAX_MISSED:
            return True
        _log.warning("native tools disabled: no call where one was required: model=%s times=%d", self.name, MAX_MISSED)
        self._honoured[mode.name] = False
        return False

    async def _honours(self, mode: OutputMode) -> bool:
        async with self._probing:
            if mode.name not in self._honoured:
                self._honoured[mode.name] = await self._probe(mode)
        return self._honoured[mode.name]

    async def _probe(self, mode: OutputMode) -> bool:
        try:
            found = await self._complete({**_PROBE_BODY, **mode.probe}, may_refuse=True)
        except HttpRefused as refused:
            if refused.status in (401, 403, 404):
                raise self._refusal(refused) from refused
            return False
        return mode.honoured(found)

    async def _complete(self, body: JsonObject, *, may_refuse: bool = False) -> JsonObject:
        for _ in range(4):
            fields = {self._renamed.get(key, key): value for key, value in body.items() if key not in self._dropped}
            try:
                return await self._client.post("/chat/completions", {"model": self.name, **fields})
            except HttpRefused as refused:
                if self._adapt(refused, body):
                    continue
                if may_refuse and not base.is_about_length(refused):
                    raise
                raise self._refusal(refused) from refused
        raise ToolError(f"{self.name} rejected every form of the request.", code=ErrorCode.MODEL_REFUSED)

    def _refusal(self, refused: HttpRefused) -> ToolError:
        return base.read_refusal(refused, self.name, key_variable=self._options.key_variable or KEY_VARIABLE)

    def _adapt(self, refused: HttpRefused, body: JsonObject) -> bool:
        """Rename or drop the field that a server rejected; whether anything changed."""
        if refused.status not in (400, 422):
            return False
        if "max_completion_tokens" in refused.message and "max_tokens" not in self._renamed:
            self._renamed["max_tokens"] = "max_completion_tokens"
            return True
        named = set(_OPTIONAL_FIELD.findall(refused.message)) & body.keys() - self._dropped
        self._dropped |= named
        return bool(named)

    async def _ask_length(self) -> None:
        """Ask the server once for the context length; many do not report it."""
        if self._asked_length:
            return
        self._asked_length = True
        try:
            listed = await self._client.get("/models")
        except HttpRefused:
            return
        self.context_tokens = _stated_length(listed, self.name) or self.context_tokens


def _stated_length(listed: JsonObject, name: str) -> int | None:
    entries = [as_object(entry) for entry in as_list(listed.get("data"))]
    matching = [entry for entry in entries if entry.get("id") == name] or (entries if len(entries) == 1 else [])
    stated = [length for e in matching for length in (e.get("max_model_len"), as_object(e.get("meta")).get("n_ctx"))]
    return next((length for length in stated if isinstance(length, int) and length > 0), None)


@asynccontextmanager
async def open_openai_compatible(
    name: str, url: str, options: base.ModelOptions, env: Mapping[str, str]
) -> AsyncGenerator[OpenAICompatibleModel]:
    """A model behind a chat completions API."""
    key = env.get(options.key_variable or KEY_VARIABLE, "")
    async with options.client(url, {"authorization": f"Bearer {key}"} if key else {}) as client:
        yield OpenAICompatibleModel(name, client, options)
