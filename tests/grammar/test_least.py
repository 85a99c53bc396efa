from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.grammar.generated import cases
from tests.grammar.tools_for_calls import closed
from tests.support import size
from trysquare import ToolError
from trysquare.core.json import JsonObject
from trysquare.grammar import read_schema
from trysquare.grammar.dialects.bounds import NEVER_ENDS, Lengths, common_beginning


def least(schema: JsonObject) -> int:
    tree = read_schema(schema)
    return Lengths(tree.named).least(tree.root)


@pytest.mark.parametrize(
    ("schema", "shortest"),
    [
        ({"type": "string"}, '""'),
        ({"type": "string", "minLength": 3}, '"aaa"'),
        ({"enum": ["long", "ä", 12345]}, '"ä"'),
        ({"type": "boolean"}, "true"),
        ({"type": "array", "items": {"type": "null"}, "minItems": 2}, "[null,null]"),
        (closed(), "{}"),
        (closed(a={"type": "integer"}, b={"type": "string"}), '{"a":0,"b":""}'),
        (closed([], a={"type": "integer"}), "{}"),
        ({"anyOf": [closed(a={"type": "string"}), {"type": "null"}]}, "null"),
    ],
)
def test_the_shortest_text_is_known(schema: JsonObject, shortest: str):
    assert least(schema) == len(shortest.encode())


def test_a_shape_that_contains_itself_has_a_shortest_text():
    tree = {"$ref": "#/$defs/t", "$defs": {"t": closed(["v"], v={"type": "integer"}, next={"$ref": "#/$defs/t"})}}
    assert least(tree) == len('{"v":0}')
    assert least(tree) < NEVER_ENDS


@pytest.mark.parametrize("seed", range(size(5, 100)))
def test_no_instance_without_a_pattern_is_shorter_than_the_shortest_text(seed: int):
    """Patterns and bounds are counted generously, so that enough is kept; what they hold is left out here."""
    import jsonschema

    for case in cases(seed, 20):
        if any(word in json.dumps(case.schema) for word in ("pattern", "format", "inimum", "aximum", "minProperties")):
            continue
        try:
            shortest = least(case.schema)
        except ToolError:
            continue
        for value in case.instances:
            if jsonschema.Draft202012Validator(case.schema).is_valid(value):
                text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
                assert len(text.encode()) >= shortest


@given(st.lists(st.text(alphabet="ab", max_size=5), min_size=1), st.text(alphabet="ab", max_size=4))
def test_the_common_beginning_is_the_longest_that_all_texts_have(texts: list[str], beginning: str):
    texts = [beginning + text for text in texts]
    common = common_beginning(texts)
    assert all(text.startswith(common) for text in texts)
    longer = {text[: len(common) + 1] for text in texts}
    assert len(longer) > 1 or longer == {common}
