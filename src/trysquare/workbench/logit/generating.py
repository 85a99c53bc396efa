"""Generating: one text of a model under a preset and a constraint, and whether it fits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError

from trysquare.core.errors import InvalidArguments
from trysquare.core.result import dump_json
from trysquare.core.types import JsonObject
from trysquare.grammar.call_grammar import CallGrammar
from trysquare.models.messages import Message
from trysquare.models.model import Constraint, Model, ModelAnswer, ModelRequest, ToolOffer
from trysquare.models.safety import SafetyFilter
from trysquare.models.sampling import Preset

_CALL = 'Answer with one call of a tool, as {"name": "…", "args": {…}}. The tools:'


@dataclass(frozen=True, kw_only=True, slots=True)
class Generated:
    """A text, and what is wrong with it."""

    answer: ModelAnswer
    value: Any = None
    """The JSON value, where one was asked for and came."""
    problem: str | None = None
    removed: tuple[str, ...] = ()
    """What the safety filter took out of the text."""

    @property
    def report(self) -> JsonObject:
        """How it came about."""
        usage = self.answer.usage
        return {
            "held": self.answer.held,
            "stop": self.answer.stop,
            "completion_tokens": usage.completion_tokens,
            "forced_tokens": usage.forced_tokens,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What a text is held to, and judged by."""

    preset: Preset
    max_tokens: int
    constraint: Constraint | None = None
    schema: JsonObject | None = None
    tools: tuple[ToolOffer, ...] = ()

    async def generated(self, model: Model, prompt: str, *, seed: int | None = None) -> Generated:
        """What the model writes."""
        sampling = self.preset.sampling if seed is None else replace(self.preset.sampling, seed=seed)
        request = ModelRequest(
            messages=self._messages(prompt),
            tools=self.tools,
            constraint=self.constraint,
            must_call=bool(self.tools),
            max_tokens=self.max_tokens,
            sampling=sampling,
        )
        answer = await model.answer(request)
        if self.tools:
            return _judged_call(answer, self.tools)
        if self.schema is not None:
            return _judged_value(answer, self.schema)
        return _filtered(answer) if self.preset.filtered else Generated(answer=answer)

    def _messages(self, prompt: str) -> tuple[Message, ...]:
        said = Message(role="user", text=prompt)
        if self.tools:
            lines = [f"- {tool.name}: {tool.description} {dump_json(tool.flat)}" for tool in self.tools]
            return (Message(role="system", text="\n".join([_CALL, *lines])), said)
        if self.schema is None:
            return (said,)
        return (Message(role="system", text=f"Answer with JSON that fits this schema: {dump_json(self.schema)}"), said)


def call_constraint(tools: Sequence[ToolOffer]) -> Constraint:
    """One call of one of some tools."""
    return CallGrammar(tools)


def check_schema(schema: JsonObject) -> None:
    """Refuse what is no JSON schema, before anything is asked of a model."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise InvalidArguments(f"`json_schema` is no JSON schema: {error.message[:200]}.") from None


def _filtered(answer: ModelAnswer) -> Generated:
    """The text without what the safety filter covers, and no more than that."""
    safety = SafetyFilter()
    removed = tuple(dict.fromkeys(found.what for found in safety.find(answer.text)))
    return Generated(answer=replace(answer, text=safety.redact(answer.text)), removed=removed)


def _judged_value(answer: ModelAnswer, schema: JsonObject) -> Generated:
    try:
        value = json.loads(answer.text)
    except ValueError:
        return Generated(answer=answer, problem="it is no JSON")
    return Generated(answer=answer, value=value, problem=_problem(value, schema))


def _judged_call(answer: ModelAnswer, tools: Sequence[ToolOffer]) -> Generated:
    if len(answer.calls) != 1:
        return Generated(answer=answer, problem="it is not one call")
    [call] = answer.calls
    tool = next((each for each in tools if each.name == call.name), None)
    if tool is None:
        return Generated(answer=answer, problem=f"there is no tool `{call.name[:80]}`")
    value = {"name": call.name, "args": call.arguments}
    return Generated(answer=answer, value=value, problem=_problem(call.arguments, tool.schema))


def _problem(value: Any, schema: JsonObject) -> str | None:
    validator: Any = Draft202012Validator(schema)
    found: ValidationError | None = next(validator.iter_errors(value), None)
    return None if found is None else f"{found.json_path}: {found.message[:200]}"
