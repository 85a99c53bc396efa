"""Variables in a configuration: filled in once, never sent as text, never shown with their values."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.gateway.config.variables import UnsetVariable, Variables, input_variable

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
PLAIN = st.text(max_size=8).filter(lambda text: "$" not in text)
VALUES = st.text(max_size=10)
"""Anything at all, also what looks like a variable."""


def variables(env: dict[str, str], secrets: dict[str, str] | None = None, **defaults: str) -> Variables:
    kept = secrets or {}
    return Variables(env=env, secrets=kept.get, workspace=Path("/home/ada/shop"), input_defaults=defaults)


@given(st.text())
def test_a_text_without_a_variable_stays_as_it_is(text: str) -> None:
    if "${" not in text:
        assert variables({}).fill(text) == text


@given(st.lists(st.tuples(PLAIN, NAMES, VALUES), max_size=5), PLAIN)
def test_every_variable_is_replaced_by_its_value_and_nothing_else_changes(
    pieces: list[tuple[str, str, str]], tail: str
) -> None:
    env = {name: value for _, name, value in pieces}
    text = "".join(f"{plain}${{{name}}}" for plain, name, _ in pieces) + tail
    assert variables(env).fill(text) == "".join(f"{plain}{env[name]}" for plain, name, _ in pieces) + tail
    assert variables(env).fill(text.replace("${", "${env:")) == variables(env).fill(text)


@given(st.lists(st.tuples(PLAIN, NAMES, PLAIN.filter(lambda text: "}" not in text and "{" not in text)), max_size=4))
def test_a_default_stands_in_for_what_is_unset_or_empty(pieces: list[tuple[str, str, str]]) -> None:
    text = "".join(f"{plain}${{{name}:-{default}}}" for plain, name, default in pieces)
    expected = "".join(f"{plain}{default}" for plain, _, default in pieces)
    assert variables({}).fill(text) == expected
    assert variables({name: "" for _, name, _ in pieces}).fill(text) == expected


@given(NAMES, VALUES)
def test_an_unset_variable_is_an_error_with_its_name_and_no_value(name: str, value: str) -> None:
    other = f"{name}_other"
    with pytest.raises(UnsetVariable) as caught:
        variables({other: f"s3cret{value}"}).fill(f"${{{other}}} ${{{name}}}")
    assert f"`${{{name}}}`" in str(caught.value)
    assert "s3cret" not in str(caught.value)


@given(st.text("${}:-/ abAB_env", max_size=24))
def test_any_text_is_filled_in_or_refused(text: str) -> None:
    with contextlib.suppress(UnsetVariable):
        assert isinstance(variables({"a": "1", "b": "2", "env": "3"}).fill(text), str)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${input:api-key}", "from the environment"),
        ("${input:kept}", "from the secrets"),
        ("${input:region}", "eu"),
        ("${input:nothing:-x}", "x"),
        ("${keyring:github}", "from the keyring"),
        ("${keyring:none:-x}", "x"),
        ("${userHome}/x", "/home/me/x"),
        ("${workspaceFolder}|${workspaceFolderBasename}", "/home/ada/shop|shop"),
        ("a${/}b${pathSeparator}c", "a/b/c"),
        ("$HOME $ {HOME} ${", "$HOME $ {HOME} ${"),
        ("$${HOME}", "${HOME}"),
        ("$$${HOME}", "$${HOME}"),
        ("${HOME", "${HOME"),
    ],
)
def test_every_kind_of_variable_is_filled_in(text: str, filled: str) -> None:
    env = {"HOME": "/home/me", input_variable("api-key"): "from the environment"}
    secrets = {"input:kept": "from the secrets", "github": "from the keyring"}
    assert variables(env, secrets, region="eu").fill(text) == filled


@pytest.mark.parametrize("text", ["${}", "${1}", "${a b}", "${cmd: whoami}", "${input:}", "${A:-${B}}", "${env:}"])
def test_what_cannot_be_filled_in_is_refused(text: str) -> None:
    with pytest.raises(UnsetVariable):
        variables({"A": "x"}).fill(text)


def test_a_default_is_not_shown_where_it_might_be_a_secret() -> None:
    for text in ("${a b:-s3cret}", "${A:-s3cret${B}}"):
        with pytest.raises(UnsetVariable) as caught:
            variables({}).fill(text)
        assert "s3cret" not in str(caught.value)


def test_the_values_are_not_in_the_repr() -> None:
    assert "s3cret" not in repr(variables({"A": "s3cret"}, {"B": "s3cret"}, c="s3cret"))
