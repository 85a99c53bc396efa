"""Recorded conversations: JSON Lines files, written while a model answers and replayed as a model.

The first line is a header; each other line is a request with its response. A request has the number of messages it
shares with the one before, its new messages, and its tools where they changed.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO, TypeAlias, cast

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject, one_line_json
from trysquare.core.tokens import estimate_tokens
from trysquare.models.base import CallRequest, Message, Model, ModelRequest, ModelResponse, Usage


def request_json(request: ModelRequest) -> JsonObject:
    """A request as JSON; of its constraint, which follows from the tools, only whether there was one."""
    return {
        "messages": [_message_json(message) for message in request.messages],
        "tools": [
            {"name": tool.name, "description": tool.description, "schema": tool.schema} for tool in request.tools
        ],
        "held": request.constraint is not None,
        "must_call": request.must_call,
        "parallel": request.parallel,
        "max_tokens": request.max_tokens,
        "sampling": asdict(request.sampling),
    }


def _message_json(message: Message) -> JsonObject:
    """A message without the fields that say nothing."""
    fields = asdict(message)
    fields["calls"] = list(fields["calls"])
    return {key: value for key, value in fields.items() if key in ("role", "text") or value not in ([], None, False)}


def answer_json(answer: ModelResponse) -> JsonObject:
    """A response as JSON."""
    return {
        "text": answer.text,
        "calls": [asdict(call) for call in answer.calls],
        "stop": answer.stop,
        "held": answer.constrained_by,
        "usage": asdict(answer.usage),
        "choice": dict(answer.choice),
    }


def read_answer_json(found: JsonObject) -> ModelResponse:
    """A response from its JSON; `KeyError`, `TypeError` or `ValueError` where it is malformed."""
    calls = cast(list[Any], found.get("calls", []))
    return ModelResponse(
        text=found["text"],
        calls=tuple(CallRequest(id=call["id"], name=call["name"], arguments=call["arguments"]) for call in calls),
        stop=found.get("stop", "calls" if calls else "text"),
        constrained_by=found.get("held", "free"),
        usage=Usage(**found.get("usage", {})),
        choice=found.get("choice", {}),
    )


def _respell(value: Any, spelling: Mapping[str, str]) -> Any:
    """A JSON value with strings replaced, such as a placeholder for this machine's directory."""
    if isinstance(value, str):
        for text, instead in spelling.items():
            value = value.replace(text, instead)
        return value
    if isinstance(value, list):
        return [_respell(item, spelling) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {key: _respell(item, spelling) for key, item in cast(JsonObject, value).items()}
    return value


_NO_SPELLING: Mapping[str, str] = MappingProxyType({})
_SHOWN_LINES = 40
_EMPTY: JsonObject = {"messages": [], "tools": []}
_Exchange: TypeAlias = tuple[JsonObject, ModelResponse]


class RecordingModel:
    """A model whose conversation is recorded as it runs."""

    def __init__(self, model: Model, file: TextIO, spelling: Mapping[str, str]) -> None:
        self._model, self._file, self._spelling = model, file, spelling
        self.name, self.count, self.context_tokens = model.name, model.count, model.context_tokens
        self._last = _EMPTY
        self._write({"dialogue": 1, "model": model.name, "context_tokens": model.context_tokens})

    async def answer(self, request: ModelRequest) -> ModelResponse:
        answer = await self._model.answer(request)
        asked = _respell(request_json(request), self._spelling)
        self._write({"request": _shorten(asked, self._last), "answer": _respell(answer_json(answer), self._spelling)})
        self._last = asked
        return answer

    def _write(self, line: JsonObject) -> None:
        self._file.write(one_line_json(line) + "\n")
        self._file.flush()


class ReplayModel:
    """A recorded conversation as a model: it answers only the recorded requests."""

    count = staticmethod(estimate_tokens)

    def __init__(self, path: Path, spelling: Mapping[str, str] = _NO_SPELLING) -> None:
        self._path, self._spelling = path, spelling
        head, self._exchanges = _read(path)
        self.name = str(head.get("model", path.name))
        self.context_tokens = int(head.get("context_tokens", 32_768))
        self._played: set[int] = set()

    async def answer(self, request: ModelRequest) -> ModelResponse:
        """The recorded response to exactly this request."""
        asked = _respell(request_json(request), self._spelling)
        waiting = [number for number in range(len(self._exchanges)) if number not in self._played]
        for number in waiting:
            recorded, answer = self._exchanges[number]
            if recorded == asked:
                self._played.add(number)
                back = {instead: text for text, instead in self._spelling.items()}
                return read_answer_json(_respell(answer_json(answer), back)) if back else answer
        raise self._mismatch(asked, waiting)

    def _mismatch(self, asked: JsonObject, waiting: list[int]) -> ToolError:
        if not waiting:
            return ToolError(
                f"All {len(self._exchanges)} responses of {self._path} were used.",
                code=ErrorCode.MODEL_REFUSED,
                instruction="Record the conversation again, to its end.",
            )
        difference = _difference(self._exchanges[waiting[0]][0], asked)
        return ToolError(
            f"The request differs from request {waiting[0] + 1} of {self._path}:\n{difference}",
            code=ErrorCode.MODEL_REFUSED,
            instruction="Record the conversation again if the difference is intended.",
        )


def _difference(recorded: JsonObject, asked: JsonObject) -> str:
    before, now = (json.dumps(each, ensure_ascii=False, indent=1).splitlines() for each in (recorded, asked))
    lines = list(difflib.unified_diff(before, now, "recorded", "asked now", lineterm="", n=1))
    more = [f"… and {len(lines) - _SHOWN_LINES} more lines"] if len(lines) > _SHOWN_LINES else []
    return "\n".join(lines[:_SHOWN_LINES] + more)


def _shorten(request: JsonObject, last: JsonObject) -> JsonObject:
    before, now = last["messages"], request["messages"]
    kept = next((i for i, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), min(len(before), len(now)))
    short = {**request, "kept": kept, "messages": now[kept:]}
    if request["tools"] == last["tools"]:
        del short["tools"]
    return short


def _lengthen(short: JsonObject, last: JsonObject) -> JsonObject:
    whole = {"tools": last["tools"], **short, "messages": last["messages"][: short["kept"]] + short["messages"]}
    del whole["kept"]
    return whole


def _read(path: Path) -> tuple[JsonObject, list[_Exchange]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ToolError(
            f"Cannot read the recording {path}: {error.strerror}.", code=ErrorCode.MODEL_NOT_INSTALLED
        ) from error
    number, last, exchanges = 1, _EMPTY, list[_Exchange]()
    try:
        head: JsonObject = {**json.loads(lines[0] if lines else "")}
        if head.get("dialogue") != 1:
            raise ValueError
        for line in lines[1:]:
            number += 1
            found: JsonObject = {**json.loads(line)}
            last = _lengthen(found["request"], last)
            exchanges.append((last, read_answer_json(found["answer"])))
    except (KeyError, TypeError, ValueError) as error:
        raise ToolError(
            f"{path}:{number} is not part of a recorded conversation.",
            code=ErrorCode.MODEL_NOT_INSTALLED,
            instruction="Record it again.",
        ) from error
    return head, exchanges


@asynccontextmanager
async def recording(
    model: Model, path: Path, spelling: Mapping[str, str] = _NO_SPELLING
) -> AsyncGenerator[RecordingModel]:
    """The model, recorded to a file; `spelling` maps strings of this machine to placeholders."""
    with path.open("w", encoding="utf-8") as file:
        yield RecordingModel(model, file, spelling)


@asynccontextmanager
async def open_replay(path: Path) -> AsyncGenerator[ReplayModel]:
    yield ReplayModel(path)
