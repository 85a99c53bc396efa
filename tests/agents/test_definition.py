"""Definitions: agents are files that a user can copy and change, and a wrong one says where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from trysquare import ConfigurationError
from trysquare.agents.definition import (
    built_in_names,
    built_in_text,
    known_definitions,
    load_definition,
    parse_definition,
)

LEAST = 'name = "mine"\ndescription = "Mine."\ninstructions = "Work."\n'


def test_the_built_in_agents_are_all_there() -> None:
    assert {"builder", "reviewer", "debugger", "triager"} <= set(built_in_names())


@pytest.mark.parametrize("name", built_in_names())
def test_a_built_in_agent_can_be_copied_under_another_name(name: str, tmp_path: Path) -> None:
    text = built_in_text(name).replace(f'name = "{name}"', 'name = "mine"', 1)
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    assert load_definition(str(tmp_path / "mine.toml")).instructions == load_definition(name).instructions
    assert load_definition("mine", folder=tmp_path).name == "mine"
    assert [found.name for found in known_definitions(tmp_path)] == [*built_in_names(), "mine"]


def test_the_least_definition_allows_nothing() -> None:
    mine = parse_definition(LEAST, where="here")
    assert mine.policy.default == "deny"
    assert mine.workspace == "project"


@pytest.mark.parametrize("key", ["toolsets", "rooms"])
def test_toolsets_are_named_by_their_key_or_the_old_one(key: str) -> None:
    assert parse_definition(LEAST + f'[tools]\n{key} = ["debug"]', where="here").toolsets == ("debug",)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name = ", "invalid TOML"),
        ('name = "mine"', "description: field required"),
        (LEAST + "[budget]\nsteps = 0", "budget.steps"),
        (LEAST + 'colour = "red"', "colour: extra inputs are not permitted"),
        (LEAST + '[policy]\ndefault = "maybe"', "policy.default"),
        (LEAST + '[tools]\nbundles = ["cod"]', "`code`"),
        (LEAST.replace("mine", "Mine Own", 1), "name"),
    ],
)
def test_a_wrong_definition_says_where_it_is_wrong(text: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match="here") as raised:
        parse_definition(text, where="here")
    assert told in str(raised.value)


def test_a_name_that_nobody_knows_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="`builder`"):
        load_definition("bulider", folder=tmp_path)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * 300_000, None])
def test_a_file_that_cannot_be_read_is_refused(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"mine\.toml"):
        load_definition(str(path))


def test_the_name_of_a_file_is_the_name_of_its_agent(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(LEAST, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="same name"):
        load_definition(str(tmp_path / "other.toml"))
