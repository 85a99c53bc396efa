"""Replay: a dialogue with a model, kept in a file and played again without it.

The file is JSON Lines. The first line says whose dialogue it is; each other is a request with its answer. A request's
messages are told as how many it shares with the one before and those that are new, its tools only where they changed.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO, cast

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.models.counting import estimate_tokens
from trysquare.models.model import Model, ModelAnswer, ModelRequest
from trysquare.models.recorded import answer_json, read_answer_json, request_json, respelled

_NO_SPELLING: Mapping[str, str] = MappingProxyType({})
_SHOWN_LINES = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class _Exchange:
    request: JsonObject
    answer: ModelAnswer


class RecordingModel:
    """A model whose dialogue is written down as it goes on."""

    def __init__(self, model: Model, file: TextIO, spelling: Mapping[str, str]) -> None:
        self._model = model
        self._file = file
        self._spelling = spelling
        self._last: JsonObject = {"messages": [], "tools": []}
        self._write({"dialogue": 1, "model": model.name, "context_tokens": model.context_tokens})

    @property
    def name(self) -> str:
        """The name of the model that answers."""
        return self._model.name

    @property
    def context_tokens(self) -> int:
        """How many tokens a dialogue may have."""
        return self._model.context_tokens

    def count(self, text: str) -> int:
        """How many tokens a text has, as the model counts."""
        return self._model.count(text)

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Let the model answer, and write both down."""
        answer = await self._model.answer(request)
        asked = respelled(request_json(request), self._spelling)
        told = respelled(answer_json(answer), self._spelling)
        self._write({"request": _shortened(asked, self._last), "answer": told})
        self._last = asked
        return answer

    def _write(self, line: JsonObject) -> None:
        self._file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
        self._file.flush()


class ReplayModel:
    """A recorded dialogue as a model: what it was not asked then, it does not answer now."""

    def __init__(self, path: Path, spelling: Mapping[str, str] = _NO_SPELLING) -> None:
        self._path = path
        self._spelling = spelling
        self._head, self._exchanges = _read(path)
        self._played: set[int] = set()

    @property
    def name(self) -> str:
        """The name of the model that was recorded."""
        return str(self._head.get("model", self._path.name))

    @property
    def context_tokens(self) -> int:
        """How many tokens a dialogue with that model may have."""
        return int(self._head.get("context_tokens", 32_768))

    def count(self, text: str) -> int:
        """About how many tokens a text has."""
        return estimate_tokens(text)

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """The recorded answer to this very request."""
        asked = respelled(request_json(request), self._spelling)
        waiting = [number for number in range(len(self._exchanges)) if number not in self._played]
        for number in waiting:
            if self._exchanges[number].request == asked:
                self._played.add(number)
                return self._spelt_here(self._exchanges[number].answer)
        raise self._differs(asked, waiting)

    def _spelt_here(self, answer: ModelAnswer) -> ModelAnswer:
        back = {instead: text for text, instead in self._spelling.items()}
        return read_answer_json(respelled(answer_json(answer), back)) if back else answer

    def _differs(self, asked: JsonObject, waiting: list[int]) -> ToolError:
        if not waiting:
            return ToolError(
                f"{self._path} has {len(self._exchanges)} answers, and all of them were given.",
                code=ErrorCode.MODEL_REFUSED,
                instruction="Record the dialogue again, to its end.",
            )
        number = waiting[0]
        return ToolError(
            f"The request differs from request {number + 1} of {self._path}:\n"
            + _difference(self._exchanges[number].request, asked),
            code=ErrorCode.MODEL_REFUSED,
            instruction="Record the dialogue again if the difference is meant.",
        )


def _difference(recorded: JsonObject, asked: JsonObject) -> str:
    """What was asked otherwise, as lines of both."""
    lines = list(
        difflib.unified_diff(_lines(recorded), _lines(asked), "recorded", "asked now", lineterm="", n=1)
    )  # fmt: skip
    more = [f"… and {len(lines) - _SHOWN_LINES} lines more"] if len(lines) > _SHOWN_LINES else []
    return "\n".join(lines[:_SHOWN_LINES] + more)


def _lines(value: JsonObject) -> list[str]:
    return json.dumps(value, ensure_ascii=False, indent=1).splitlines()


def _shortened(request: JsonObject, last: JsonObject) -> JsonObject:
    before, now = last["messages"], request["messages"]
    kept = next((i for i, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), min(len(before), len(now)))
    short = {**request, "kept": kept, "messages": now[kept:]}
    if request["tools"] == last["tools"]:
        del short["tools"]
    return short


def _lengthened(short: JsonObject, last: JsonObject) -> JsonObject:
    whole = {"tools": last["tools"], **short, "messages": last["messages"][: short["kept"]] + short["messages"]}
    del whole["kept"]
    return whole


def _read(path: Path) -> tuple[JsonObject, list[_Exchange]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ToolError(
            f"The recorded dialogue {path} cannot be read: {error.strerror}.", code=ErrorCode.MODEL_NOT_INSTALLED
        ) from error
    if not lines:
        raise _not_a_recording(path, 1)
    return _head(path, lines[0]), list(_exchanges(path, lines[1:]))


def _head(path: Path, line: str) -> JsonObject:
    found = _object(path, line, 1)
    if found.get("dialogue") != 1:
        raise _not_a_recording(path, 1)
    return found


def _exchanges(path: Path, lines: list[str]) -> Iterator[_Exchange]:
    last: JsonObject = {"messages": [], "tools": []}
    for number, line in enumerate(lines, start=2):
        found = _object(path, line, number)
        try:
            last = _lengthened(found["request"], last)
            yield _Exchange(request=last, answer=read_answer_json(found["answer"]))
        except (KeyError, TypeError, ValueError) as error:
            raise _not_a_recording(path, number) from error


def _object(path: Path, line: str, number: int) -> JsonObject:
    try:
        found: Any = json.loads(line)
    except ValueError as error:
        raise _not_a_recording(path, number) from error
    if not isinstance(found, dict):
        raise _not_a_recording(path, number)
    return cast(JsonObject, found)


def _not_a_recording(path: Path, line: int) -> ToolError:
    return ToolError(
        f"{path}, line {line}, is no part of a recorded dialogue.",
        code=ErrorCode.MODEL_NOT_INSTALLED,
        instruction="Record it again.",
    )


@asynccontextmanager
async def recording(
    model: Model, path: Path, spelling: Mapping[str, str] = _NO_SPELLING
) -> AsyncGenerator[RecordingModel]:
    """The model, with its dialogue written to a file. `spelling` puts words in place of texts of this machine."""
    with path.open("w", encoding="utf-8") as file:
        yield RecordingModel(model, file, spelling)


@asynccontextmanager
async def open_replay(path: Path, spelling: Mapping[str, str] = _NO_SPELLING) -> AsyncGenerator[ReplayModel]:
    """A recorded dialogue as a model."""
    yield ReplayModel(path, spelling)
