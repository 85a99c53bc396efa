"""Redaction: what the ledger holds of a call's inputs."""

from __future__ import annotations

import json
from typing import Any

from trysquare.core.redaction import MAX_CHARACTERS, redacted_json

OPEN: dict[str, Any] = {"type": "object"}


def kept(inputs: dict[str, Any], schema: dict[str, Any] = OPEN, names: frozenset[str] = frozenset()) -> Any:
    return json.loads(redacted_json(inputs, json.dumps(inputs), schema, names, is_marked=schema is not OPEN))


def test_inputs_without_secrets_are_kept_as_they_were_written() -> None:
    assert redacted_json({"a": 1}, '{"a": 1}', OPEN, frozenset(), is_marked=False) == '{"a": 1}'


def test_secrets_by_name_by_schema_and_by_policy_are_masked_at_every_depth() -> None:
    schema = {"type": "object", "properties": {"pin": {"type": "string", "format": "password"}}}
    inputs = {"pin": "1234", "auth": [{"api_key": "k"}], "patient": {"name": "Ann"}, "path": "/x"}
    assert kept(inputs, schema, frozenset({"patient"})) == {
        "pin": "***", "auth": [{"api_key": "***"}], "patient": "***", "path": "/x"
    }  # fmt: skip


def test_long_inputs_are_shortened_and_say_how_long_they_were() -> None:
    text = redacted_json({"text": "x" * 10_000}, json.dumps({"text": "x" * 10_000}), OPEN, frozenset(), is_marked=False)
    assert len(text) <= MAX_CHARACTERS
    assert json.loads(text)["characters"] == 10_012


def test_secrets_are_masked_by_their_looks_wherever_they_stand() -> None:
    inputs = {
        "text": "use sk-proj-abcdef123456789 please",
        "url": "postgres://ada:s3cret@db/x?sslmode=on",
        "list": ["https://h/p?a=1&access_token=abc&b=2", "curl -H 'X: ghp_abcdefghij1234567890'"],
        "plain": "see task-list-of-things-2, a@b.c, http://h:80/x?page=2 and sk-learn-tutorial-page",
    }
    assert kept(inputs) == {
        "text": "use *** please",
        "url": "postgres://***@db/x?sslmode=on",
        "list": ["https://h/p?a=1&access_token=***&b=2", "curl -H 'X: ***'"],
        "plain": inputs["plain"],
    }


def test_a_key_is_masked_also_where_the_text_is_cut() -> None:
    inputs = {"text": "x " * 1_010 + "sk-proj-" + "abcdef123456789" * 200}
    assert "abcdef123456789" not in redacted_json(inputs, json.dumps(inputs), OPEN, frozenset(), is_marked=False)
