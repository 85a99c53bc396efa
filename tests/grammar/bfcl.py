"""The function schemas and answers of the Berkeley function-calling leaderboard, from the wheel of `bfcl-eval`.

The data is not part of this repository. `pip download --no-deps bfcl-eval` fetches the wheel; the variable
TRYSQUARE_BFCL names it or its folder.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.grammar.generated import Case
from tests.support import missing_component
from trysquare.core.json import JsonObject

FOLDER = "bfcl_eval/data/"
SETS = (
    "simple_python", "simple_java", "simple_javascript", "multiple", "parallel", "parallel_multiple", "irrelevance",
    "live_simple", "live_multiple", "live_parallel", "live_parallel_multiple", "live_relevance", "live_irrelevance",
)  # fmt: skip
TYPES = {
    "dict": "object", "hashmap": "object", "hashtable": "object", "float": "number", "double": "number",
    "tuple": "array", "list": "array", "arraylist": "array", "queue": "array", "stack": "array", "set": "array",
    "string": "string", "char": "string", "bool": "boolean", "byte": "integer", "short": "integer", "long": "integer",
    "bigint": "integer", "array": "array",
}  # fmt: skip
"""Their names of types, in lower case, as JSON Schema's. `any` says nothing."""


def find_wheel() -> Path:
    """The wheel; the test ends where it is missing."""
    place = Path(os.environ.get("TRYSQUARE_BFCL", "bfcl"))
    found = [place] if place.is_file() else sorted(place.glob("bfcl_eval-*.whl"))
    if not found:
        missing_component("the wheel of bfcl-eval", "`pip download --no-deps bfcl-eval` and set TRYSQUARE_BFCL to it")
    return found[-1]


@cache
def bfcl_cases() -> list[Case]:
    """Every function once, with the arguments that answers give it."""
    schemas: dict[str, JsonObject] = {}
    instances: dict[str, list[Any]] = {}
    with zipfile.ZipFile(find_wheel()) as wheel:
        for name in SETS:
            answers = dict(_answers(wheel, name))
            for question in _lines(wheel, f"{FOLDER}BFCL_v4_{name}.json"):
                _add(question, answers.get(question["id"], []), schemas, instances)
    return [Case(schema=schema, instances=tuple(instances[key])) for key, schema in schemas.items()]


def _add(
    question: JsonObject, answers: list[JsonObject], schemas: dict[str, JsonObject], instances: dict[str, list[Any]]
) -> None:
    for function in question["function"]:
        schema = _as_schema(function["parameters"])
        key = json.dumps([function["name"], schema], sort_keys=True)
        schemas.setdefault(key, schema)
        known = instances.setdefault(key, [])
        known += [_arguments(answer[function["name"]]) for answer in answers if function["name"] in answer]


def _lines(wheel: zipfile.ZipFile, name: str) -> Iterator[JsonObject]:
    for line in wheel.read(name).decode("utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


def _answers(wheel: zipfile.ZipFile, name: str) -> Iterator[tuple[str, list[JsonObject]]]:
    path = f"{FOLDER}possible_answer/BFCL_v4_{name}.json"
    if path in wheel.namelist():
        for line in _lines(wheel, path):
            yield line["id"], line["ground_truth"]


def _arguments(possible: JsonObject) -> JsonObject:
    """The first of the values that are right for each argument; an empty one says that it may be left out."""
    return {name: _value(values[0]) for name, values in possible.items() if values and "" not in values}


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _value(inner[0] if isinstance(inner, list) and inner else inner) for name, inner in value.items()}
    return [_value(inner) for inner in value] if isinstance(value, list) else value


def _as_schema(given: Any) -> Any:
    """Their schema as JSON Schema."""
    if isinstance(given, list):
        return [_as_schema(inner) for inner in given]
    if not isinstance(given, dict):
        return given
    schema = {key: _as_schema(inner) for key, inner in given.items() if key not in ("type", "properties", "format")}
    if isinstance(kind := given.get("type"), str) and kind.lower() != "any":
        schema["type"] = TYPES.get(kind.lower(), kind.lower())
    if isinstance(given.get("properties"), dict):
        schema["properties"] = {name: _as_schema(inner) for name, inner in given["properties"].items()}
    return schema
