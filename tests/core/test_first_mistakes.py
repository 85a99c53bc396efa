"""What authors get wrong in their first hour, and what they are told where they wrote it."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from pydantic import BaseModel

from trysquare import Client, Consent, DeclarationError, Tools
from trysquare.testing import ScriptedCaller, approve, call, make_context


def plain(x: int = 1) -> int:
    """Return it."""
    return x


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"nmae": "other"}, "Did you mean `name`"),
        ({"timeout": "5"}, "it takes a number or None"),
        ({"timeout": 0}, "more than 0"),
        ({"result_limit": -1}, "more than 0"),
        ({"read_only": "yes"}, "True or False"),
        ({"pinned": 1}, "True or False"),
        ({"timeout": True}, "a number"),
        ({"tags": "stock"}, "frozenset"),
        ({"requirement": "always"}, "'required', 'optional', 'conditional'"),
        ({"consent": True}, "Consent"),
        ({"consent": " "}, "question"),
        ({"consent": "Add {x} to {nmu}?"}, "`{nmu}`"),
        ({"consent": Consent("Add {y}?")}, "`{y}`"),
    ],
)
def test_a_wrong_option_is_refused_with_the_line_of_the_function(options: dict[str, Any], said: str) -> None:
    with pytest.raises(DeclarationError, match=said) as refused:
        Tools().tool(plain, **options)
    assert f"{Path(__file__).name}:" in str(refused.value.location)


@pytest.mark.parametrize("tags", [{"a", "b"}, ["a", "b"], ("a", "b"), frozenset({"a", "b"})])
def test_tags_may_be_any_collection(tags: Any) -> None:
    tools = Tools()
    tools.tool(plain, tags=tags, timeout=5)
    assert tools.toolset().tools()[0].metadata.tags == frozenset({"a", "b"})


def without_signature(function: Callable[..., Any]) -> Callable[..., Any]:
    def inner(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return inner


def many(*numbers: int) -> int:
    return sum(numbers)


def defaulted(count: int = "many") -> int:  # type: ignore[assignment]
    return count


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (without_signature(plain), r"@functools\.wraps\(function\)"),
        (many, r"`numbers: list\[int\]`"),
        (defaulted, "annotated `int`, and its default is 'many'"),
    ],
)
def test_a_function_that_cannot_be_called_by_name_says_what_to_write(function: Any, said: str) -> None:
    with pytest.raises(DeclarationError, match=said):
        Tools().tool(function)


def test_usual_defaults_of_another_type_pass() -> None:
    def usual(
        count: int = cast(int, None), share: float = 1, loud: bool = cast(bool, 0), name: str = cast(str, None)
    ) -> str:
        return f"{count} {share} {loud} {name}"

    Tools().tool(usual)


async def test_a_number_that_json_lacks_is_null_where_that_fits_and_named_where_not() -> None:
    tools = Tools()

    @tools.tool
    def mean(values: list[float]) -> float | None:
        """Compute the mean of values."""
        return sum(values) / len(values) if values else math.nan

    @tools.tool
    def strict_mean() -> float:
        """Compute a mean."""
        return math.inf

    async with Client(tools) as client:
        assert (await client.call_tool("mean", {"values": []})).data is None
        failed = await client.call_tool("strict_mean", raise_on_error=False)
    assert failed.is_error
    assert "float | None" in (failed.instruction or "")


async def test_the_log_of_a_file_is_shown_to_who_calls_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "crashing.py"
    file.write_text(
        "from trysquare import Tools\n\ntools = Tools()\n\n\n@tools.tool\ndef crash() -> str:\n"
        '    """Crash."""\n    raise ValueError("what went wrong")\n',
        encoding="utf-8",
    )
    async with Client(file) as client:
        failed = await client.call_tool("crash", raise_on_error=False)
    assert failed.code == "INTERNAL_ERROR"
    assert "what went wrong" not in failed.text
    assert "what went wrong" in capfd.readouterr().err


async def test_a_text_as_consent_is_its_question() -> None:
    tools = Tools()

    @tools.tool(consent="Delete {path} of {{shop}}?")
    def delete(path: str) -> str:
        return f"deleted {path}"

    caller = ScriptedCaller(answers=[approve()])
    assert (await call(tools, "delete", path="a", context=make_context(caller=caller))).value == "deleted a"
    assert caller.questions[0].message.startswith("Delete a of {shop}?")
    assert (await call(tools, "delete", path="a")).code == "CONSENT_REQUIRED"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


async def test_the_member_of_a_union_is_told_by_its_literal() -> None:
    tools = Tools()

    @tools.tool
    def keep(pets: list[Cat | Dog]) -> int:
        """Keep them."""
        return len(pets)

    async def refused(pet: dict[str, Any]) -> Any:
        return await call(tools.toolset(), "keep", {"pets": [pet]})

    missing = await refused({"kind": "dog"})
    assert missing.code == "VALIDATION_MISSING_PARAM"
    assert (missing.next or {})["arguments"] == {"pets": [{"kind": "dog", "name": "<string>"}]}
    unknown = await refused({"kind": "bird"})
    assert '"cat" | "dog"' in str(unknown.error)


FORWARD = """
from __future__ import annotations
from pydantic import BaseModel
from trysquare import Tools

tools = Tools()


class Order(BaseModel):
    item: Item


@tools.tool
def order(order: Order) -> int:
    "Order."
    return order.item.count


class {name}(BaseModel):
    count: int
"""


async def test_a_model_may_name_a_class_that_is_written_further_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for module, name in (("names_later", "Item"), ("names_nothing", "Other")):
        (tmp_path / f"{module}.py").write_text(FORWARD.replace("{name}", name), encoding="utf-8")
    loaded = importlib.import_module("names_later")
    assert (await call(loaded.tools.toolset(), "order", {"order": {"item": {"count": 3}}})).value == 3
    with pytest.raises(DeclarationError, match="`Item` is not defined") as refused:
        _ = importlib.import_module("names_nothing").tools.toolset().tools()[0].arguments.wire
    assert "names_nothing.py:" in str(refused.value.location)


def test_an_address_without_a_scheme_is_refused() -> None:
    with pytest.raises(DeclarationError, match="no scheme") as refused:
        Tools().resource("notes of today")(plain)
    assert f"{Path(__file__).name}:" in str(refused.value.location)
