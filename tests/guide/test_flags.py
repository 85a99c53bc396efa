"""Flags: types, scopes, and which value holds."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.core.errors import InvalidArguments
from trysquare.guide.flags import KNOWN, MAX_CHARACTERS, FlagValue, checked, holds, resolve


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("content-style", "plain"),
        ("content-style", "full"),
        ("content-budget", 0),
        ("content-budget", 2000),
        ("startup-instruction", "lang/python"),
        ("report-conflicts", False),
        ("anything", True),
        ("anything", "text"),
        ("anything", 1.5),
        ("anything", ["a", "b"]),
        ("a.b_c-D1", 1),
    ],
)
def test_a_value_that_a_flag_takes_is_kept_as_it_is(name: str, value: FlagValue):
    assert checked(name, value, scope="project") == value


def test_a_number_of_thousands_of_digits_is_refused():
    with pytest.raises(InvalidArguments, match="number"):
        checked("x", 10**5000, scope="project")


def test_null_removes_any_flag():
    assert checked("content-style", None, scope="feature") is None


@pytest.mark.parametrize(
    ("name", "value", "scope", "says"),
    [
        ("content-style", "plian", "project", "Did you mean `plain`"),
        ("content-style", ["plain"], "project", "is one of plain, headings, full"),
        ("content-style", True, "project", "is one of"),
        ("content-budget", "many", "project", "takes a value of type int"),
        ("content-budget", True, "project", "takes a value of type int"),
        ("content-budget", -1, "project", "cannot be negative"),
        ("startup-instruction", 5, "project", "takes a value of type str"),
        ("preset", "strict", "feature", "`preset` is a project flag and cannot be set for the feature"),
        ("bad name", True, "project", "Invalid flag name"),
        ("", True, "project", "Invalid flag name"),
        ("../x", True, "project", "Invalid flag name"),
        ("x" * 65, True, "project", "Invalid flag name"),
        ("x", {"a": 1}, "project", "takes a boolean, a number, a string or a list of strings"),
        ("x", [1], "project", "takes a boolean"),
        ("x", float("nan"), "project", "a finite number"),
        ("x", float("inf"), "project", "a finite number"),
        ("x", 10**400, "project", "at most"),
        ("x", "y" * (MAX_CHARACTERS + 1), "project", "at most 10,000 characters"),
        ("x", ["y" * MAX_CHARACTERS, "z"], "project", "at most 10,000 characters"),
    ],
)
def test_a_value_that_a_flag_does_not_take_is_refused(
    name: str, value: Any, scope: Literal["project", "feature"], says: str
):
    with pytest.raises(InvalidArguments, match=says):
        checked(name, value, scope=scope)


@pytest.mark.parametrize(
    ("project", "feature", "preset", "value", "source"),
    [
        ({"content-style": "plain"}, {"content-style": "full"}, {"content-style": "headings"}, "plain", "project"),
        ({}, {"content-style": "full"}, {"content-style": "plain"}, "full", "feature"),
        ({}, {}, {"content-style": "plain"}, "plain", "preset"),
        ({}, {}, None, "headings", "default"),
    ],
)
def test_the_project_goes_before_the_user_the_preset_and_the_default(
    project: dict[str, Any], feature: dict[str, Any], preset: dict[str, Any] | None, value: str, source: str
):
    found = resolve("content-style", project=project, feature=feature, preset=preset)
    assert (found.value, found.source) == (value, source)


def test_a_false_value_of_the_project_still_goes_first():
    assert resolve("x", project={"x": False}, feature={"x": True}).value is False


def test_a_flag_that_nobody_set_has_no_value():
    assert resolve("x", project={}, feature={}).source == "unset"


def test_every_known_flag_takes_its_own_default_and_says_what_it_does():
    for flag in KNOWN:
        assert flag.effect.endswith(".")
        if flag.default is not None:
            assert checked(flag.name, flag.default, scope="project") == flag.default


@pytest.mark.parametrize(
    ("wanted", "actual", "met"),
    [
        (True, True, True),
        (True, "text", True),
        (True, False, False),
        (True, None, False),
        (True, "", False),
        (False, None, True),
        (False, False, True),
        (False, "x", False),
        ("dev", "dev", True),
        ("dev", "prod", False),
        ("dev", None, False),
        (["dev", "test"], "test", True),
        (["dev", "test"], "prod", False),
        ("python", ["python", "rust"], True),
        (["go", "rust"], ["python", "rust"], True),
        (["go"], ["python"], False),
        (3, 3, True),
    ],
)
def test_a_document_is_shown_when_the_flag_it_requires_holds(wanted: Any, actual: FlagValue | None, met: bool):
    assert holds(wanted, actual) is met


@given(st.text(max_size=20), st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()))
def test_any_value_is_kept_or_refused(name: str, value: Any):
    try:
        kept = checked(name, value, scope="project")
    except InvalidArguments:
        return
    assert kept == value
