"""What a tool returns arrives as structured content that fits its listed output schema."""

from __future__ import annotations

import datetime
import decimal
import enum
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypedDict, TypeVar

import jsonschema
import pytest
from pydantic import BaseModel, Field, RootModel, computed_field

from trysquare import Image, Tools
from trysquare.testing import call

T = TypeVar("T")


class Aliased(BaseModel):
    own_name: str = Field(alias="ownName")


class Doubled(BaseModel):
    number: int

    @computed_field
    @property
    def double(self) -> int:
        return 2 * self.number


class Tree(BaseModel):
    name: str
    parent: str | None = None
    children: list[Tree] = []


class Numbers(RootModel[list[int]]):
    pass


class Box(BaseModel, Generic[T]):
    item: T
    spare: T | None = None


class Colour(enum.Enum):
    RED = "r"
    TWO = 2


@dataclass
class Sale:
    day: datetime.date
    amount: decimal.Decimal
    receipt: Path | None = None
    tags: set[str] = field(default_factory=set[str])


class Point(NamedTuple):
    x: int
    label: str | None = None


class Entry(TypedDict):
    key: str
    note: str | None


RETURNED: list[tuple[Any, Any, dict[str, Any]]] = [
    (Aliased, Aliased(ownName="a"), {"ownName": "a"}),
    (Doubled, Doubled(number=2), {"number": 2, "double": 4}),
    (Tree, Tree(name="a", children=[Tree(name="b", parent="a")]), {
        "name": "a", "parent": None, "children": [{"name": "b", "parent": "a", "children": []}],
    }),
    (Numbers, Numbers([1, 2]), {"result": [1, 2]}),
    (Box[int], Box[int](item=1), {"item": 1, "spare": None}),
    (dict[str, Colour], {"a": Colour.RED, "b": Colour.TWO}, {"a": "r", "b": 2}),
    (Sale, Sale(datetime.date(2026, 1, 31), decimal.Decimal("1.50")), {
        "day": "2026-01-31", "amount": "1.50", "receipt": None, "tags": [],
    }),
    (Sale | None, None, {"result": None}),
    (int | str | list[int], [1], {"result": [1]}),
    (Point, Point(1), {"result": [1, None]}),
    (Entry, {"key": "a", "note": None}, {"key": "a", "note": None}),
    (tuple[int, ...], (1, 2), {"result": [1, 2]}),
    (Literal["a", 1], 1, {"result": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("annotation", "returned", "structured"), RETURNED, ids=lambda part: str(part)[:40])
async def test_a_value_fits_the_schema_of_its_annotation(
    annotation: Any, returned: Any, structured: dict[str, Any]
) -> None:
    tools = Tools()

    def give() -> Any:
        return returned

    give.__annotations__["return"] = annotation
    tools.tool(give)
    made = tools.toolset().find("give")
    assert made is not None
    assert made.output_schema is not None
    result = await call(tools, "give")
    assert (result.error, result.structured) == (None, structured)
    jsonschema.validate(structured, made.output_schema)


async def test_a_value_of_another_type_fails_and_is_shown() -> None:
    tools = Tools()

    @tools.tool
    def give() -> int:
        return "three"  # type: ignore[return-value] # pyright: ignore[reportReturnType]

    result = await call(tools, "give")
    assert (result.success, result.error_type) == (False, "invalid_result")
    assert "three" in (result.error or "")


@pytest.mark.parametrize("annotation", [list, list[Any], tuple[Any, ...], list[object]])
async def test_a_list_of_anything_may_hold_pictures(annotation: Any) -> None:
    tools = Tools()

    def give(pictures: bool) -> Any:
        return ["a", Image(data=b"\x89PNG\r\n\x1a\n")] if pictures else ["a", 1]

    give.__annotations__["return"] = annotation
    tools.tool(give)
    made = await call(tools, "give", pictures=True)
    assert [type(block).__name__ for block in made.content] == ["Text", "Image"]
    assert (await call(tools, "give", pictures=False)).value == ["a", 1]
