"""Constrained generation for the `logit` tool."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare import models
from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError, require_extra
from trysquare.core.json import JsonObject
from trysquare.core.result import dump_json
from trysquare.grammar import (
    bounded,
    fatal_errors,
    gbnf_text,
    grammar_of,
    read_gbnf,
    read_schema,
    schema_of,
    shape_rules,
)
from trysquare.grammar.calls.walk import Piece
from trysquare.models.local.install import find_language_model, weights_file
from trysquare.models.local.vocabulary import Vocabulary, read_gguf_header, read_vocabulary
from trysquare.models.sampling import Preset, SafetyFilter
from trysquare.settings.model import ModelsSettings

Prompt = Annotated[str, Field(min_length=1, max_length=100_000, description="What the model is asked")]
PresetName = Annotated[str, Field(max_length=40, description="How it samples; list_presets names them")]
Tokens = Annotated[int, Field(ge=1, le=8192, description="Most tokens of the answer")]
Grammar = Annotated[str | None, Field(max_length=100_000, description="GBNF grammar that constrains the text")]
Schema = Annotated[JsonObject, Field(description="JSON schema of the answer")]


class OfferedTool(ToolArguments):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$", description="Its name")]
    description: Annotated[str, Field(max_length=2000, description="What it does")] = ""
    parameters: Annotated[JsonObject, Field(description="JSON schema of its arguments")]


class Generate(ToolArguments):
    action: Literal["generate"]
    prompt: Prompt
    preset: PresetName = "deterministic"
    grammar: Grammar = None
    max_tokens: Tokens = 256


class GenerateStructured(ToolArguments):
    action: Literal["generate_structured"]
    prompt: Prompt
    json_schema: Schema
    preset: PresetName = "json_strict"
    max_tokens: Tokens = 512


class GenerateToolCall(ToolArguments):
    action: Literal["generate_tool_call"]
    prompt: Prompt
    available_tools: Annotated[list[OfferedTool], Field(min_length=1, max_length=100, description="To choose from")]
    preset: PresetName = "tool_call"
    max_tokens: Tokens = 512


class CheckConfiguration(ToolArguments):
    action: Literal["test_config"]
    test_prompts: Annotated[list[Prompt], Field(min_length=1, max_length=20, description="Each is tried")]
    preset: PresetName = "deterministic"
    grammar: Grammar = None
    json_schema: Annotated[JsonObject | None, Field(description="JSON schema of the answer")] = None
    iterations: Annotated[int, Field(ge=1, le=20, description="How often each is tried")] = 1
    max_tokens: Tokens = 256


class ListPresets(ToolArguments):
    action: Literal["list_presets"]


class AnalyzeVocabulary(ToolArguments):
    action: Literal["analyze_vocabulary"]
    contains: Annotated[str | None, Field(min_length=1, max_length=100, description="Count tokens that hold it")] = None


Constrained = Generate | GenerateStructured | GenerateToolCall | CheckConfiguration
Arguments = Constrained | ListPresets | AnalyzeVocabulary


@dataclass(frozen=True, kw_only=True, slots=True)
class LogitConfig:
    spec: str | None
    open_model: Callable[[str], AbstractAsyncContextManager[models.Model]]

    def require_spec(self) -> str:
        if self.spec is None:
            raise ToolError(
                "No model is configured.",
                code=ErrorCode.CONFIG_NOT_FOUND,
                instruction="Ask the user to set `model`, for example to local:smollm2-135m.",
            )
        return self.spec

    def opened(self) -> AbstractAsyncContextManager[models.Model]:
        return self.open_model(self.require_spec())


def logit_config(spec: str | None, options: ModelsSettings) -> LogitConfig:
    """The model of the settings, opened when a call needs it."""

    return LogitConfig(
        spec=spec, open_model=lambda name: models.open_model(name, models.model_options(**options.model_dump()))
    )


class OnePiece:
    """Walk with a single segment."""

    def __init__(self, piece: Callable[[int], models.Segment]) -> None:
        self._piece: Callable[[int], models.Segment] | None = piece

    def next(self, *, tokens_left: int) -> models.Segment | None:
        return None if self._piece is None else self._piece(tokens_left)

    def take(self, text: str) -> None:
        self._piece = None


class SchemaConstraint:
    """Constrains the answer to JSON that matches a schema."""

    def __init__(self, schema: JsonObject) -> None:
        self._tree = read_schema(schema)

    def lark(self, *, tokens: int | None = None) -> str:
        """Grammar for llguidance; `tokens` bounds the length, so that the text is never truncated."""
        return "%llguidance {}\n" + shape_rules(self._tree.root, self._tree.named, root="start", space=tokens)

    def gbnf(self, *, tokens: int | None = None) -> str:
        grammar = grammar_of(self._tree)
        return gbnf_text(grammar if tokens is None else bounded(grammar, tokens))

    def json_schema(self) -> JsonObject:
        return schema_of(self._tree)

    def walk(self) -> models.Walk:
        return OnePiece(lambda left: Piece(lark=self.lark(tokens=left), most_tokens=left))


class GrammarConstraint:
    """Constrains the answer to a GBNF grammar."""

    def __init__(self, text: str) -> None:
        grammar = read_gbnf(text)
        if errors := fatal_errors(grammar):
            raise ToolError(
                f"Invalid grammar: {errors}",
                code=ErrorCode.GRAMMAR_REFUSED,
                instruction="Fix these rules and send it again.",
            )
        self._text = text

    def lark(self, *, tokens: int | None = None) -> str:
        try:
            from llguidance.gbnf_to_lark import GbnfToLarkError, gbnf_to_lark
        except ImportError:
            raise ToolError(
                "Constraining a local model to GBNF requires llguidance.",
                code=ErrorCode.GRAMMAR_UNSUPPORTED,
                instruction="Install it with: pip install 'trysquare[local]'",
            ) from None
        try:
            return gbnf_to_lark(self._text)
        except GbnfToLarkError as error:
            raise ToolError(f"The grammar cannot be translated: {error}", code=ErrorCode.GRAMMAR_UNSUPPORTED) from None

    def gbnf(self, *, tokens: int | None = None) -> str:
        return self._text

    def json_schema(self) -> JsonObject:
        raise ToolError(
            "This model's server accepts JSON schemas, not grammars.",
            code=ErrorCode.GRAMMAR_UNSUPPORTED,
            instruction="Use generate_structured with a schema, or a model that accepts grammars.",
        )

    def walk(self) -> models.Walk:
        return OnePiece(lambda left: Piece(lark=self.lark(), most_tokens=left))


_CALL = 'Answer with one call of a tool, as {"name": "…", "args": {…}}. The tools:'


@dataclass(frozen=True, kw_only=True, slots=True)
class Generated:
    """A model's answer, parsed and validated."""

    answer: models.ModelResponse
    value: Any = None
    problem: str | None = None
    removed: tuple[str, ...] = ()
    """What the safety filter redacted."""

    @property
    def report(self) -> JsonObject:
        usage = self.answer.usage
        return {
            "held": self.answer.constrained_by,
            "stop": self.answer.stop,
            "completion_tokens": usage.completion_tokens,
            "forced_tokens": usage.forced_tokens,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerationRequest:
    """What an answer is constrained to and validated against."""

    preset: Preset
    max_tokens: int
    constraint: models.Constraint | None = None
    schema: JsonObject | None = None
    tools: tuple[models.ToolSpec, ...] = ()

    async def generated(self, model: models.Model, prompt: str, *, seed: int | None = None) -> Generated:
        sampling = self.preset.sampling if seed is None else replace(self.preset.sampling, seed=seed)
        request = models.ModelRequest(
            messages=self._messages(prompt),
            tools=self.tools,
            constraint=self.constraint,
            must_call=bool(self.tools),
            max_tokens=self.max_tokens,
            sampling=sampling,
        )
        answer = await model.answer(request)
        if self.tools:
            return _check_call(answer, self.tools)
        if self.schema is not None:
            return _check_value(answer, self.schema)
        if not self.preset.filtered:
            return Generated(answer=answer)
        safety = SafetyFilter()
        removed = tuple(dict.fromkeys(found.what for found in safety.find(answer.text)))
        return Generated(answer=replace(answer, text=safety.redact(answer.text)), removed=removed)

    def _messages(self, prompt: str) -> tuple[models.Message, ...]:
        user = models.Message(role="user", text=prompt)
        if self.tools:
            lines = [f"- {tool.name}: {tool.description} {dump_json(tool.flat)}" for tool in self.tools]
            return (models.Message(role="system", text="\n".join([_CALL, *lines])), user)
        if self.schema is None:
            return (user,)
        wanted = f"Answer with JSON that fits this schema: {dump_json(self.schema)}"
        return (models.Message(role="system", text=wanted), user)


def check_schema(schema: JsonObject) -> None:
    require_extra("models", "jsonschema", feature="`json_schema`", code=ErrorCode.MODEL_UNAVAILABLE)
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise InvalidArguments(f"`json_schema` is not a valid JSON schema: {error.message[:200]}.") from None


def _check_value(answer: models.ModelResponse, schema: JsonObject) -> Generated:
    try:
        value = json.loads(answer.text)
    except ValueError:
        return Generated(answer=answer, problem="it is not JSON")
    return Generated(answer=answer, value=value, problem=_problem(value, schema))


def _check_call(answer: models.ModelResponse, tools: Sequence[models.ToolSpec]) -> Generated:
    if len(answer.calls) != 1:
        return Generated(answer=answer, problem="it is not one call")
    [call] = answer.calls
    tool = next((each for each in tools if each.name == call.name), None)
    if tool is None:
        return Generated(answer=answer, problem=f"there is no tool `{call.name[:80]}`")
    value = {"name": call.name, "args": call.arguments}
    return Generated(answer=answer, value=value, problem=_problem(call.arguments, tool.schema))


def _problem(value: Any, schema: JsonObject) -> str | None:
    from jsonschema import Draft202012Validator

    validator: Any = Draft202012Validator(schema)
    found: Any = next(validator.iter_errors(value), None)
    return None if found is None else f"{found.json_path}: {found.message[:200]}"


_SHOWN = 30


def local_vocabulary(spec: str) -> Vocabulary:
    """Vocabulary of a local model."""
    kind, _, name = spec.partition(":")
    if kind != "local":
        raise ToolError(
            f"`{spec}` has no readable vocabulary: only a local model has one.",
            code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
            instruction="Set `model` to local:NAME.",
        )
    is_file = name.endswith(".gguf") or os.sep in name
    path = Path(name).expanduser() if is_file else weights_file(find_language_model(name).name)
    return read_vocabulary(read_gguf_header(path))


def analysed(vocabulary: Vocabulary, contains: str | None) -> JsonObject:
    """Figures about a vocabulary, and the tokens that contain a text."""
    control = frozenset(vocabulary.control)
    plain = [token for number, token in enumerate(vocabulary.tokens) if number not in control]
    figures: JsonObject = {
        "tokens": len(vocabulary.tokens),
        "control_tokens": len(control),
        "control_examples": list(vocabulary.control_texts[:_SHOWN]),
        "single_bytes": sum(len(token) == 1 for token in plain),
        "begin_with_space": sum(token.startswith(b" ") for token in plain),
        "not_whole_characters": sum(not _is_text(token) for token in plain),
        "longest_bytes": max((len(token) for token in plain), default=0),
    }
    if contains is None:
        return figures
    found = [token for token in plain if contains.encode() in token]
    shown = [token.decode("utf-8", errors="replace") for token in found[:_SHOWN]]
    return {**figures, "containing": len(found), "containing_examples": shown}


def _is_text(token: bytes) -> bool:
    try:
        token.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
