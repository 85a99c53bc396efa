"""Questions: those of the Berkeley Function Calling Leaderboard that run offline, read from the package `bfcl-eval`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, cast

from trysquare.core.json import JsonObject
from trysquare.models import ToolSpec

SETS = {"simple": "simple_python", "multiple": "multiple", "parallel": "parallel"}
"""The sets that are measured, and what their files are called."""
_TYPES = {
    "any": "string",
    "boolean": "boolean",
    "dict": "object",
    "float": "number",
    "integer": "integer",
    "string": "string",
    "array": "array",
    "tuple": "array",
}
_KEPT = ("description", "enum", "default", "maximum")


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One question: what a user says, the functions that there are, and the calls that answer it."""

    id: str
    set: str
    text: str
    functions: tuple[JsonObject, ...]
    """As the checker knows them, with their own types."""
    right: tuple[JsonObject, ...]
    """For each call that is wanted, the values that each argument may have."""

    @property
    def offers(self) -> tuple[ToolSpec, ...]:
        """The functions as tools. A dot in a name becomes `_`, since most servers refuse it; the checker knows that."""
        return tuple(_offer(function) for function in self.functions)


def read_questions(most: int, *, sets: Iterable[str] = tuple(SETS)) -> list[Question]:
    """The first questions of each set, one set after the other by turns, so that a part of a run has some of each."""
    folder = files("bfcl_eval") / "data"
    columns = [list(_read_set(folder, name, most)) for name in sets]
    return [column[row] for row in range(most) for column in columns if row < len(column)]


def _read_set(folder: Traversable, name: str, most: int) -> Iterator[Question]:
    file = f"BFCL_v4_{SETS[name]}.json"
    answers = {each["id"]: each["ground_truth"] for each in _lines(folder / "possible_answer" / file)}
    for each in _lines(folder / file)[:most]:
        yield Question(
            id=each["id"],
            set=name,
            text="\n\n".join(turn["content"] for turn in each["question"][0]),
            functions=tuple(each["function"]),
            right=tuple(answers[each["id"]]),
        )


def _lines(file: Traversable) -> list[Any]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def _offer(function: JsonObject) -> ToolSpec:
    schema = closed_schema(cast(JsonObject, function["parameters"]))
    name = str(function["name"]).replace(".", "_")
    return ToolSpec(name=name, description=str(function["description"]), schema=schema, flat=schema)


def closed_schema(declared: JsonObject) -> JsonObject:
    """A parameter as JSON schema has it. Objects whose properties are listed have no others."""
    schema: JsonObject = {"type": _TYPES[str(declared.get("type", "string"))]}
    schema.update({key: declared[key] for key in _KEPT if key in declared})
    if schema["type"] == "object" and "properties" in declared:
        properties = cast(dict[str, JsonObject], declared["properties"])
        schema["properties"] = {name: closed_schema(part) for name, part in properties.items()}
        schema["required"] = [name for name in cast(list[str], declared.get("required", [])) if name in properties]
        schema["additionalProperties"] = False
    if schema["type"] == "array" and "items" in declared:
        schema["items"] = closed_schema(cast(JsonObject, declared["items"]))
    return schema
