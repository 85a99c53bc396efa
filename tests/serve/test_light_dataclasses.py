"""Light dataclasses: they are what they would have been."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, replace
from typing import Any

import pytest

from trysquare.serve.light_dataclasses import light_dataclasses


def declared() -> tuple[type[Any], type[Any], type[Any]]:
    @dataclass(frozen=True, kw_only=True, slots=True)
    class Fixed:
        name: str
        number: int = 0

    @dataclass(order=True)
    class Open:
        number: int

    @dataclass(frozen=True, slots=True)
    class Inner(Fixed):
        more: str = ""

    return Fixed, Open, Inner


@pytest.fixture
def classes() -> tuple[type[Any], type[Any], type[Any]]:
    with light_dataclasses():
        return declared()


def test_they_are_shown_compared_and_hashed_as_ever(classes: tuple[type[Any], type[Any], type[Any]]) -> None:
    fixed, plain_fixed = classes[0], declared()[0]
    for _ in range(2):
        assert repr(fixed(name="a")) == repr(plain_fixed(name="a"))
        assert fixed(name="a") == fixed(name="a") != fixed(name="b")
        assert hash(fixed(name="a")) == hash(plain_fixed(name="a"))
        assert {fixed(name="a"), fixed(name="a")} == {fixed(name="a")}


def test_what_is_frozen_stays_so(classes: tuple[type[Any], type[Any], type[Any]]) -> None:
    for one in (classes[0](name="a"), classes[2](name="a")):
        for _ in range(2):
            with pytest.raises(FrozenInstanceError):
                one.name = "b"
            with pytest.raises(FrozenInstanceError):
                del one.name
        assert replace(one, name="b").name == "b"


def test_what_is_ordered_is_sorted_and_what_is_open_is_not_hashed(
    classes: tuple[type[Any], type[Any], type[Any]],
) -> None:
    two, one = classes[1](2), classes[1](1)
    assert sorted([two, one]) == [one, two]
    two.number = 1
    assert two == one
    with pytest.raises(TypeError):
        hash(one)


def test_an_inherited_class_differs_from_its_parent(classes: tuple[type[Any], type[Any], type[Any]]) -> None:
    fixed, _, inner = classes
    assert inner(name="a") != fixed(name="a")
    assert inner(name="a", more="x") == inner(name="a", more="x")
    assert repr(inner(name="a")).endswith("Inner(name='a', number=0, more='')")


@pytest.mark.skipif(not hasattr(dataclasses, "_create_fn"), reason="this Python compiles a class at once")
def test_a_method_is_compiled_at_its_first_use_and_stands_in_the_class_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: list[str] = []
    usual: Callable[..., Any] = vars(dataclasses)["_create_fn"]
    monkeypatch.setattr(
        dataclasses, "_create_fn", lambda name, *args, **places: compiled.append(name) or usual(name, *args, **places)
    )
    with light_dataclasses():
        fixed = declared()[0]
    assert set(compiled) == {"__init__", "__lt__", "__le__", "__gt__", "__ge__"}
    compiled.clear()
    late = fixed.__eq__
    assert fixed(name="a") == fixed(name="a")
    assert fixed(name="a") == fixed(name="a")
    assert compiled == ["__eq__"]
    assert fixed.__eq__ is not late
    assert fixed.__eq__.__qualname__ == late.__qualname__


def test_after_the_block_everything_is_as_before() -> None:
    before = vars(dataclasses).get("_create_fn")
    with light_dataclasses():
        pass
    assert vars(dataclasses).get("_create_fn") is before


def test_a_python_that_has_no_such_maker_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(dataclasses, "_create_fn", raising=False)
    with light_dataclasses():
        assert not hasattr(dataclasses, "_create_fn")
