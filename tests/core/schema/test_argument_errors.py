"""Refused arguments, whatever the signature: an error of validation, true, without secrets, and its corrected call."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, NotRequired
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict, Discriminator, Field, RootModel, SecretStr, field_validator
from pydantic.dataclasses import dataclass as pydantic_dataclass
from typing_extensions import TypedDict

from tests.support import quoted_names
from trysquare import Declarations, ToolArguments
from trysquare.testing import call

tools = Declarations()


class Point(NamedTuple):
    x: int
    label: str


class Address(BaseModel):
    street: str
    zip: str | None = None


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")
    home: Address


class Careless(BaseModel):
    model_config = ConfigDict(extra="ignore")
    name: str


@dataclass
class Plain:
    size: int
    home: Address | None = None


@pydantic_dataclass
class Checked:
    size: int


class Record(TypedDict):
    key: str
    home: NotRequired[Address]


class Node(BaseModel):
    name: str
    children: list[Node] = []


class Cat(BaseModel):
    meow: int
    x: int


class Dog(BaseModel):
    bark: int
    y: str


class Circle(BaseModel):
    kind: Literal["circle"]
    radius: float


class Square(BaseModel):
    kind: Literal["square"]
    side: float


class Tags(RootModel[list[str]]):
    pass


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Login(BaseModel):
    user: str
    password: SecretStr


class Guarded(BaseModel):
    token: str

    @field_validator("token")
    @classmethod
    def known(cls, token: str) -> str:
        raise ValueError(f"{token} is not known")


@tools.declare
def pair(p: tuple[int, str], q: tuple[int, ...] = ()) -> None: ...


@tools.declare
def triple(p: tuple[int, Address, tuple[str, Point]]) -> None: ...


@tools.declare
def named(p: Point) -> None: ...


@tools.declare
def address(addr: Address, more: list[Address] | None = None, by: dict[str, Address] | None = None) -> None: ...


@tools.declare
def loose(p: Loose, q: Careless | None = None) -> None: ...


@tools.declare
def shapes(plain: Plain, checked: Checked, record: Record | None = None) -> None: ...


@tools.declare
def tree(node: Node) -> None: ...


@tools.declare
def pet(pet: Cat | Dog, pets: list[Cat | Dog | int] | None = None) -> None: ...


@tools.declare
def shape(shape: Annotated[Circle | Square, Discriminator("kind")]) -> None: ...


@tools.declare
def keys(m: dict[Literal["alpha", "beta"], int], n: dict[int, str] | None = None) -> None: ...


@tools.declare
def scalars(
    a: Decimal = Decimal(1),
    b: date | None = None,
    c: datetime | timedelta | None = None,
    d: UUID | int | None = None,
    e: Annotated[int, Field(ge=3)] = 3,
    f: Colour = Colour.RED,
    g: Annotated[str, Field(pattern="^a+$")] = "a",
    h: set[int] | frozenset[str] | None = None,
    i: bool = False,
    j: bytes | None = None,
    k: Tags | None = None,
    m: Annotated[list[int], Field(max_length=2)] | Literal["all"] = "all",
) -> None: ...


@tools.declare
def login(
    token: int, logins: list[Login] | None = None, keys: list[SecretStr] | None = None, guarded: Guarded | None = None
) -> None: ...


class Actions(ToolArguments):
    action: Literal["one"]
    pair: tuple[int, Address]


class OtherActions(ToolArguments):
    action: Literal["two"]
    nodes: dict[str, Node | Cat]


@tools.declare
def acting(args: Actions | OtherActions) -> None: ...


NAMES = [made.name for made in tools.toolset().tools()]


async def failed(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    envelope = (await call(tools, name, arguments)).to_json()
    assert not envelope["success"], envelope
    return envelope


@pytest.mark.parametrize(
    ("name", "arguments", "place", "corrected"),
    [
        ("pair", {"p": [1]}, "p[1]", {"p": [1, "<string>"]}),
        ("named", {"p": [1]}, "p[1]", {"p": [1, "<string>"]}),
        ("pair", {"p": []}, "p[0]", {"p": ["<integer>", "<string>"]}),
        ("triple", {"p": [1, {"street": "S"}, ["a", [1]]]}, "p[2][1][1]",
         {"p": [1, {"street": "S"}, ["a", [1, "<string>"]]]}),
        ("acting", {"action": "one", "pair": [1]}, "pair[1]", {"action": "one", "pair": [1, "<object>"]}),
    ],
)  # fmt: skip
async def test_a_short_tuple_names_the_place_that_is_missing(
    name: str, arguments: dict[str, Any], place: str, corrected: dict[str, Any]
) -> None:
    answer = await failed(name, arguments)
    assert answer["error"]["code"] == "VALIDATION_MISSING_PARAM"
    assert f"`{place}`" in answer["error"]["message"]
    assert answer["next"]["arguments"] == corrected


@pytest.mark.parametrize(
    ("name", "arguments", "corrected"),
    [
        ("address", {"addr": {"street": "S", "zipp": "1"}}, {"addr": {"street": "S", "zip": "1"}}),
        ("address", {"addr": {"street": "S"}, "more": [{"street": "T", "zpi": "2"}]},
         {"addr": {"street": "S"}, "more": [{"street": "T", "zip": "2"}]}),
        ("address", {"addr": {"street": "S"}, "by": {"a": {"street": "T", "zpi": "2"}}},
         {"addr": {"street": "S"}, "by": {"a": {"street": "T", "zip": "2"}}}),
        ("tree", {"node": {"name": "a", "children": [{"name": "b", "childen": []}]}},
         {"node": {"name": "a", "children": [{"name": "b", "children": []}]}}),
        ("shapes", {"plain": {"size": 1, "home": {"street": "S", "zipp": "1"}}, "checked": {"size": 1}},
         {"plain": {"size": 1, "home": {"street": "S", "zip": "1"}}, "checked": {"size": 1}}),
        ("shapes", {"plain": {"sise": 1}, "checked": {"sizes": 1}}, {"plain": {"size": 1}, "checked": {"size": 1}}),
        ("shapes", {"plain": {"size": 1}, "checked": {"size": 1}, "record": {"key": "a", "hom": {"street": "S"}}},
         {"plain": {"size": 1}, "checked": {"size": 1}, "record": {"key": "a", "home": {"street": "S"}}}),
        ("pet", {"pet": {"meow": 1, "x": 2, "xx": 1}}, {"pet": {"meow": 1, "x": 2}}),
        ("shape", {"shape": {"kind": "circle", "radios": 1.5}}, {"shape": {"kind": "circle", "radius": 1.5}}),
        ("loose", {"p": {"home": {"street": "S", "zipp": "1"}, "more": 1}},
         {"p": {"home": {"street": "S", "zip": "1"}, "more": 1}}),
        ("acting", {"action": "one", "pair": [1, {"stret": "S"}]}, {"action": "one", "pair": [1, {"street": "S"}]}),
    ],
)  # fmt: skip
async def test_a_misspelt_name_in_an_inner_model_is_refused_and_put_right(
    name: str, arguments: dict[str, Any], corrected: dict[str, Any]
) -> None:
    answer = await failed(name, arguments)
    assert answer["error"]["code"] == "VALIDATION_UNKNOWN_PARAM"
    assert answer["next"]["arguments"] == corrected
    assert (await call(tools, name, corrected)).success


async def test_a_model_that_takes_extra_names_still_does() -> None:
    given_ones = {"p": {"home": {"street": "S"}, "more": 1}, "q": {"name": "a", "unknown": 2}}
    assert (await call(tools, "loose", given_ones)).success


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_is_closed_at_every_depth(name: str) -> None:
    made = tools.toolset().find(name)
    assert made is not None
    for path, node in objects(made.input_schema):
        is_open = node.get("additionalProperties") is not False
        says_so = name == "loose" and set(node["properties"]) in ({"home"}, {"name"})
        assert is_open == says_so, path


def objects(node: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Every schema with named properties."""
    if isinstance(node, list):
        return [found for item in node for found in objects(item, path)]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(node, dict):
        return []
    own = [(path, node)] if "properties" in node and isinstance(node["properties"], dict) else []  # pyright: ignore[reportUnknownVariableType]
    return own + [found for key, part in node.items() for found in objects(part, f"{path}/{key}")]  # pyright: ignore[reportUnknownVariableType]


async def test_a_corrected_call_does_not_mix_two_members_of_a_union() -> None:
    answer = await failed("pet", {"pet": {"meow": 1}})
    assert answer["next"]["arguments"] == {"pet": {"meow": 1, "x": "<integer>"}}
    answer = await failed("pet", {"pet": {"meow": 1, "x": 1}, "pets": [{"bark": 1}, {"meow": 2}]})
    assert answer["next"]["arguments"]["pets"] == [{"bark": 1, "y": "<string>"}, {"meow": 2, "x": "<integer>"}]
    answer = await failed("shape", {"shape": {"kind": "circel", "radius": 1}})
    assert answer["next"]["arguments"] == {"shape": {"kind": "circle", "radius": 1}}
    answer = await failed("shape", {"shape": {"radius": 1}})
    assert answer["error"]["code"] == "VALIDATION_MISSING_PARAM"


async def test_a_wrong_key_is_told_as_a_key() -> None:
    answer = await failed("keys", {"m": {"gamma": 1}})
    assert "`gamma`" in answer["error"]["message"]
    assert '"alpha" | "beta"' in answer["error"]["message"]
    assert "must be integer" not in answer["error"]["message"]
    assert answer["instruction"].startswith("Fill in")
    answer = await failed("keys", {"m": {"alpa": 1}})
    assert answer["next"]["arguments"] == {"m": {"alpha": 1}}
    answer = await failed("keys", {"m": {}, "n": {"x": "text"}})
    assert "`x`" in answer["error"]["message"]
    assert "got 'text'" not in answer["error"]["message"]


async def test_a_text_that_is_not_a_decimal_is_not_told_to_be_a_text() -> None:
    said = (await failed("scalars", {"a": "x"}))["error"]["message"]
    assert "string" not in said
    assert "decimal" in said


SECRET = "hunter2-and-more"


@pytest.mark.parametrize(
    "arguments",
    [
        {"token": SECRET},
        {"token": [SECRET]},
        {"token": {"deep": SECRET}},
        {"tokn": SECRET},
        {"token": 1, "logins": [{"user": "ada", "password": SECRET, "pasword": 1}]},
        {"token": 1, "logins": [{"user": "ada", "password": [SECRET]}]},
        {"token": 1, "logins": [{"user": 7, "password": SECRET}]},
        {"token": 1, "logins": [{"user": "ada", "pasword": SECRET}]},
        {"token": 1, "logins": {"user": "ada", "password": SECRET}},
        {"token": 1, "keys": ["ok", {"nested": SECRET}]},
        {"token": 1, "keys": SECRET},
        {"token": 1, "guarded": {"token": SECRET}},
        {"token": 1, "guarded": {"token": SECRET, "other": SECRET}},
    ],
)
async def test_a_secret_never_stands_in_an_error_or_in_the_corrected_call(
    arguments: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    result = await call(tools, "login", arguments)
    assert not result.success
    assert SECRET not in result.to_json_str()
    assert SECRET not in result.to_text()
    assert SECRET not in caplog.text


async def test_a_number_of_tokens_is_no_secret() -> None:
    own = Declarations()

    @own.declare
    def complete(prompt: str, max_tokens: int) -> None: ...

    answer = (await call(own, "complete", {"promt": "a", "max_tokens": 5})).to_json()
    assert answer["next"]["arguments"] == {"prompt": "a", "max_tokens": 5}


words = st.sampled_from(
    ["p", "q", "addr", "more", "by", "plain", "checked", "record", "node", "pet", "pets", "shape", "m", "n", "a", "b",
     "c", "d", "e", "f", "g", "h", "i", "j", "k", "token", "logins", "keys", "guarded", "action", "pair", "nodes",
     "street", "zip", "zipp", "home", "size", "key", "name", "children", "meow", "x", "bark", "y", "kind", "radius",
     "side", "user", "password", "Cat", "Dog", "int", "str", "[key]", "0", "alpha", "args", ""]
)  # fmt: skip
scalar_values = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.just(10**400)
    | st.floats(allow_nan=True)
    | st.text(max_size=4)
    | words
    | st.sampled_from(["one", "two", "circle", "square", "red", "2026-01-01", "1", "1.5", "true", "aa"])
)
some_values = st.recursive(
    scalar_values, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4), max_leaves=12
)


@settings(max_examples=300)
@given(st.sampled_from(NAMES), st.data())
def test_whatever_is_sent_it_runs_or_is_refused_and_what_is_said_is_true(name: str, data: st.DataObject) -> None:
    made = tools.toolset().find(name)
    assert made is not None
    own = st.sampled_from(sorted(made.input_schema["properties"]))
    arguments = data.draw(st.dictionaries(own | words, some_values, max_size=4))
    envelope = run(name, arguments)
    if envelope["success"]:
        return
    assert envelope["error"]["code"].startswith("VALIDATION_"), envelope
    for wanted, given_value in re.findall(r"must be (\S+); got ([^;]*)\. ?", envelope["error"]["message"] + " "):
        assert not contradicts(wanted, given_value), envelope["error"]["message"]
    if quoted_names(envelope["instruction"]) == ["next"]:
        corrected = envelope["next"]["arguments"]
        assert run(name, corrected)["success"], corrected


def contradicts(wanted: str, given_value: str) -> bool:
    """Whether a value that is said to be wrong is of the simple type that is said to be right."""
    kinds = {"integer": r"-?\d+", "string": r"'.*'", "object": r"\{.*\}", "boolean": "True|False"}
    return wanted in kinds and re.fullmatch(kinds[wanted], given_value) is not None


def run(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Check the arguments as a call does, without an event loop for each of many examples."""
    from trysquare import Result
    from trysquare.core.errors import InvalidArguments

    made = tools.toolset().find(name)
    assert made is not None
    try:
        made.arguments.parse(name, arguments)
    except InvalidArguments as error:
        return Result.from_error(error).to_json()
    return {"success": True}


@settings(max_examples=300)
@given(st.sampled_from(["address", "shapes", "tree", "pet", "pair", "acting", "login"]), st.data())
def test_a_corrected_call_that_is_ready_fits_the_schema_that_clients_see(name: str, data: st.DataObject) -> None:
    made = tools.toolset().find(name)
    assert made is not None
    good = data.draw(st.sampled_from(GOOD[name]))
    envelope = run(name, data.draw(spoilt(good)))
    if envelope["success"] or envelope["instruction"] != "Send the corrected call in `next`.":
        return
    validator = Draft202012Validator(made.arguments.exact)
    assert [error.message for error in validator.iter_errors(envelope["next"]["arguments"])] == []


GOOD: dict[str, list[dict[str, Any]]] = {
    "address": [{"addr": {"street": "S", "zip": "1"}, "more": [{"street": "T"}], "by": {"k": {"street": "U"}}}],
    "shapes": [{"plain": {"size": 1, "home": {"street": "S"}}, "checked": {"size": 2}, "record": {"key": "k"}}],
    "tree": [{"node": {"name": "a", "children": [{"name": "b"}, {"name": "c", "children": []}]}}],
    "pet": [{"pet": {"meow": 1, "x": 2}, "pets": [{"bark": 1, "y": "a"}, 3]}],
    "pair": [{"p": [1, "a"], "q": [1, 2]}],
    "acting": [{"action": "one", "pair": [1, {"street": "S"}]}, {"action": "two", "nodes": {"a": {"name": "b"}}}],
    "login": [{"token": 1, "logins": [{"user": "ada", "password": "p"}]}],
}


def spoilt(value: Any) -> st.SearchStrategy[Any]:
    """The value with some names misspelt, entries lost and numbers written as text."""
    if isinstance(value, dict):
        entries: dict[str, Any] = value
        parts = [st.tuples(spoilt_name(name), spoilt(part)) for name, part in entries.items()]
        return st.tuples(*parts).map(dict)
    if isinstance(value, list):
        items: list[Any] = value
        return st.tuples(*[spoilt(item) for item in items]).map(list)
    return st.sampled_from([value, value, str(value)])


def spoilt_name(name: str) -> st.SearchStrategy[str]:
    return st.sampled_from([name, name, name, name + "s", name[1:] or name, name.upper()])
