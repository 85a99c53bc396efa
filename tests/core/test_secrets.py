"""Secret arguments: which are recognised, and that texts lose them whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr

from trysquare import ToolArguments, tool
from trysquare.core.redaction import MASK, redact, redact_text


class Login(BaseModel):
    user: str
    pin: SecretStr
    backup: Login | None = None


class Connect(ToolArguments):
    host: str
    pin: SecretStr | None = None
    logins: list[Login] = Field(default_factory=list[Login])
    by_name: dict[str, Login] = Field(default_factory=dict[str, Login])
    codes: list[SecretStr] = Field(default_factory=list[SecretStr])


async def connect(args: Connect) -> None: ...


SCHEMA = tool(connect).input_schema


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"host": "a", "pin": "1234"}, {"host": "a", "pin": MASK}),
        ({"logins": [{"user": "ada", "pin": "1234"}]}, {"logins": [{"user": "ada", "pin": MASK}]}),
        ({"by_name": {"x": {"user": "ada", "pin": "1"}}}, {"by_name": {"x": {"user": "ada", "pin": MASK}}}),
        (
            {"logins": [{"user": "a", "pin": "1", "backup": {"user": "b", "pin": "2"}}]},
            {"logins": [{"user": "a", "pin": MASK, "backup": {"user": "b", "pin": MASK}}]},
        ),
        ({"codes": ["1", "2"]}, {"codes": [MASK, MASK]}),
        ({"unknown": {"api_key": "k", "deep": [{"Authorization": "b"}]}},
         {"unknown": {"api_key": MASK, "deep": [{"Authorization": MASK}]}}),
    ],
)  # fmt: skip
def test_secrets_are_recognised_by_schema_and_by_name_at_every_depth(arguments: Any, expected: Any) -> None:
    assert redact(arguments, SCHEMA) == expected


def test_a_schema_of_any_shape_is_read_without_complaint() -> None:
    shapes: list[dict[str, Any]] = [
        {},
        {"properties": {"a": True}},
        {"properties": {"a": {"items": False}}},
        {"$ref": "#/$defs/x"},
        {"$ref": "#/$defs/x", "$defs": {"x": {"anyOf": [{"$ref": "#/$defs/y"}]}, "y": {"$ref": "#/$defs/x"}}},
    ]
    for schema in shapes:
        assert redact({"a": [1, {"b": None}]}, schema) == {"a": [1, {"b": None}]}


@given(st.text(min_size=1, max_size=60), st.text(max_size=30), st.text(max_size=30))
def test_a_text_around_a_secret_keeps_nothing_of_it(secret: str, before: str, after: str) -> None:
    assume(secret not in MASK and secret not in before + MASK and secret not in MASK + after)
    assume(secret not in before + MASK + after)
    for form in (secret, repr(secret), f"{secret} and {secret!r}"):
        assert secret not in redact_text(before + form + after, {"password": secret}, {})


def test_numbers_count_as_secrets_too() -> None:
    assert redact_text("the token 4711 is wrong", {"token": 4711}, {}) == "the token *** is wrong"


def test_other_values_stay() -> None:
    assert redact_text("no file /tmp/a", {"path": "/tmp/a", "token": ""}, {}) == "no file /tmp/a"
