from __future__ import annotations

import json
import re

from tests.grammar.generated import PATTERNS
from tests.grammar.tools_for_calls import closed
from trysquare.grammar.pattern_examples import pattern_examples
from trysquare.grammar.schema_reading import read_schema


def test_every_example_fits_its_pattern():
    for pattern in PATTERNS:
        [text] = pattern_examples(read_schema({"type": "string", "pattern": pattern}))
        assert re.search(pattern, json.loads(f'"{text}"'))


def test_patterns_are_found_wherever_they_stand():
    part = {"type": "string", "pattern": "^a$"}
    schema = closed(
        ["list"], list={"type": "array", "items": {"$ref": "#/$defs/b"}}, either={"anyOf": [part, {"type": "null"}]}
    )
    tree = read_schema(schema | {"$defs": {"b": {"type": "string", "pattern": '^"$'}}})
    assert set(pattern_examples(tree)) == {"a", '\\"'}
