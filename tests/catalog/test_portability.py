"""Portability: our rules find what the Inspector's own check finds, and nothing else."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.catalog.relevance import TOOLS
from tests.e2e.inspector import inspected
from tests.e2e.servers import served_over_http
from trysquare import StaticToolset
from trysquare.catalog.lint.engine import lint
from trysquare.core.signature import PassthroughArguments

RULES = {"schema-objects", "single-types", "local-references", "typed-values"}

# One property each, so that a finding belongs to one thing.
PROPERTIES: dict[str, dict[str, Any] | bool] = {
    "plain": {"type": "string"},
    "bare_true": True,
    "bare_false": False,
    "list_of_anything": {"type": "array", "items": True},
    "list_of_untyped": {"type": "array", "items": {"description": "any"}},
    "open_object": {"type": "object", "additionalProperties": True},
    "closed_object": {"type": "object", "additionalProperties": False},
    "typed_map": {"type": "object", "additionalProperties": {"type": "integer"}},
    "untyped_map": {"type": "object", "additionalProperties": {}},
    "nullable": {"type": ["string", "null"]},
    "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    "either_anything": {"anyOf": [{"type": "string"}, {}]},
    "either_true": {"anyOf": [{"type": "string"}, True]},
    "remote": {"$ref": "https://example.com/thing.json"},
    "untyped": {"description": "anything at all"},
    "only_a_default": {"default": 3},
    "chosen": {"enum": ["a", "b"]},
    "fixed": {"const": 1},
    "never": {"not": {}},
    "tuple": {"type": "array", "prefixItems": [{"type": "string"}, {}]},
    "nested": {"type": "object", "properties": {"inner": {"type": ["integer", "null"]}}},
    "deep": {"type": "array", "items": {"type": "array", "items": {"title": "Deep"}}},
    "bounded": {"minimum": 3},
    "named": {"type": "object", "propertyNames": True},
}


def _toolset() -> StaticToolset:
    def schema(part: dict[str, Any] | bool) -> dict[str, Any]:
        return {"type": "object", "properties": {"value": part}, "additionalProperties": False}

    return StaticToolset(
        replace(TOOLS[0], name=name, arguments=PassthroughArguments(wire=schema(part)))
        for name, part in PROPERTIES.items()
    )


@pytest.mark.node
async def test_the_rules_of_portability_agree_with_the_inspector() -> None:
    toolset = _toolset()
    async with served_over_http(toolset) as url:
        target = ["--transport", "http", "--server-url", url]
        seen = await inspected(target, "modern", "--strict", "--method", "tools/list")
    theirs = re.findall(r'^(Error|Warning): tool "(\w+)"', seen.errors, flags=re.MULTILINE)
    ours = [(one.severity.capitalize(), one.tool) for one in lint(toolset) if one.rule in RULES]
    assert len(theirs) >= 10, seen
    assert sorted(ours) == sorted(theirs)
