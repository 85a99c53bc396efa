"""Whatever arguments come in, the answer is a result that can be sent and that a model can read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.from_schema import fitting, nearly_fitting
from tests.fuzz.properties import parsed_strictly, require_no_traceback
from tests.fuzz.shares import SHARES, share
from tests.fuzz.toolset import STRANGE_KINDS, fuzz_toolset
from tests.fuzz.values import any_text, any_value
from tests.support import size
from trysquare import ErrorCode, Result, call_tool
from trysquare.catalog import with_catalog
from trysquare.core.json import JsonObject

pytestmark = pytest.mark.timeout(size(120, 1200))

TOOLSET = with_catalog(fuzz_toolset())
TOOLS = TOOLSET.tools()
NAMES = tuple(tool.name for tool in TOOLS)
CRASHING = {"crash", "call_tool"}
WIDER_ON_THE_WIRE = {"note", "mixed", "find_tools"}
"""Tools whose listed schema allows more than they take: two actions in one, the text of a number, a bound in words."""
_SUPPRESSED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def test_the_shares_make_ten_thousand() -> None:
    assert sum(SHARES.values()) == 10_000


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Crashes on purpose would fill the log."""
    monkeypatch.setattr(logging.getLogger("trysquare.call"), "disabled", True)


async def _outcome(name: object, arguments: object) -> Result[object]:
    before = asyncio.all_tasks()
    result = await call_tool(TOOLSET, name, arguments)  # pyright: ignore[reportArgumentType]
    assert asyncio.all_tasks() <= before, "a task is left behind"
    envelope = parsed_strictly(result.to_json_str())
    assert envelope["success"] is result.success
    result.to_text().encode("utf-8")
    if not result.success:
        require_no_traceback(result.to_text())
    return result


@settings(max_examples=share("arbitrary arguments"), deadline=None, suppress_health_check=_SUPPRESSED)
@given(name=st.sampled_from(NAMES) | any_text, arguments=st.dictionaries(any_text, any_value, max_size=4) | any_value)
async def test_arbitrary_arguments_get_a_readable_answer(name: str, arguments: object) -> None:
    result = await _outcome(name, arguments)
    if result.code is ErrorCode.INTERNAL_ERROR:
        assert name in CRASHING, f"{name} crashed"


@pytest.mark.parametrize("make", [fitting, nearly_fitting])
async def test_arguments_made_from_schemas_get_a_readable_answer(
    make: Callable[[Random, JsonObject], JsonObject],
) -> None:
    random = Random(make.__name__)
    for _ in range(share("arguments from schemas") // 2):
        tool = random.choice(TOOLS)
        arguments = make(random, tool.input_schema)
        try:
            result = await _outcome(tool.name, arguments)
        except Exception as error:
            raise AssertionError(f"{tool.name} {arguments!r}") from error
        crashed = result.code is ErrorCode.INTERNAL_ERROR
        assert not crashed or tool.name in CRASHING, f"{tool.name} {arguments!r}"
        if make is fitting and tool.name not in WIDER_ON_THE_WIRE:
            assert not str(result.code).startswith("VALIDATION"), f"{tool.name} {arguments!r}: {result.error}"


@pytest.mark.parametrize("kind", STRANGE_KINDS)
async def test_values_without_a_json_form_still_arrive(kind: str) -> None:
    result = await _outcome("strange", {"kind": kind})
    assert result.success


@pytest.mark.parametrize("name", [None, 5, ["echo"], {"name": "echo"}])
async def test_a_name_that_is_no_text_is_refused_and_not_a_crash(name: object) -> None:
    result = await _outcome(name, {})
    assert result.code is ErrorCode.VALIDATION_INVALID_REQUEST


def _nested(levels: int) -> object:
    nested: object = []
    for _ in range(levels):
        nested = [nested]
    return nested


@pytest.mark.parametrize("name", ["echo", "grow", "note", "anything"])
async def test_deep_nesting_is_no_crash(name: str) -> None:
    tool = TOOLSET.find(name)
    assert tool is not None
    first = next(iter(tool.input_schema["properties"]))
    result = await _outcome(name, {first: _nested(100_000)})
    assert result.code is not ErrorCode.INTERNAL_ERROR


@pytest.mark.parametrize(
    "arguments",
    [
        {"text": "x", "bogus": "y" * 10_000_000},
        {"text": ["z" * 10_000_000]},
        {f"unknown{number}": number for number in range(100_000)},
        {"text": list(range(100_000))},
    ],
    ids=["ten-megabytes-unknown", "ten-megabytes-wrong", "many-names", "many-items"],
)
async def test_a_huge_wrong_call_gets_a_short_answer(arguments: dict[str, object]) -> None:
    result = await _outcome("echo", arguments)
    assert not result.success
    assert len(result.to_json_str()) < 20_000


async def test_ten_megabytes_pass_through() -> None:
    text = "x" * 10_000_000
    assert (await _outcome("echo", {"text": text})).value == text
