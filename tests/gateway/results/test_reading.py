"""Reading large results: by place, by pattern and by JSONPath, and never longer than it may take."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare import CallContext, ErrorCode, Principal, ToolError
from trysquare.core.errors import InvalidArguments, NotFound
from trysquare.core.json import JsonObject
from trysquare.gateway.arguments import ReadCall
from trysquare.gateway.results import query as isolated
from trysquare.gateway.results.read import MAX_CHARACTERS, read_result, resolve_references
from trysquare.gateway.results.store import ResultStore, StoredText

ME = CallContext(principal=Principal(subject="me"))
ROWS = [{"id": number, "name": f"row {number}"} for number in range(200)]


@pytest.fixture
def results(tmp_path: Path) -> Iterator[ResultStore]:
    made = ResultStore(tmp_path)
    yield made
    made.close()


def keep(results: ResultStore, *texts: str, **more: Any) -> str:
    """Keep an answer with some texts and return its handle."""
    body = {"content": [{"type": "text", "text": text} for text in texts], **more}
    return results.put(json.dumps(body).encode(), principal="me", server="files", tool="read").handle


async def read(results: ResultStore, handle: str, **wanted: Any) -> JsonObject:
    result = await read_result(results, ReadCall(handle=handle, **wanted), context=ME, read_call=lambda more: more)
    value: JsonObject = result.value or {}
    return {**value, **({"next": result.next} if result.next else {})}


async def test_a_text_is_read_on_from_where_it_was_left(results: ResultStore) -> None:
    text = "".join(f"line {number} ä\n" for number in range(5_000))
    handle = keep(results, text)
    found = ""
    wanted: JsonObject | None = {"handle": handle, "offset": 0}
    while wanted:
        part = await read(results, **wanted)
        found += part["text"]
        wanted = part.get("next")
    assert found == text


async def test_a_length_is_kept_within_bounds(results: ResultStore) -> None:
    handle = keep(results, "x" * 100_000)
    part = await read(results, handle, length=10**9)
    assert len(part["text"]) == MAX_CHARACTERS
    assert part["more_from"] == MAX_CHARACTERS
    assert (await read(results, handle, offset=10**12))["text"] == ""


async def test_lines_can_be_counted_instead(results: ResultStore) -> None:
    handle = keep(results, "a\nb\nc\nd")
    assert await read(results, handle, unit="lines", offset=1, length=2) == {
        "text": "b\nc", "more_from": 3, "next": {"handle": handle, "unit": "lines", "offset": 3, "length": 2}
    }  # fmt: skip


async def test_several_texts_are_read_as_one(results: ResultStore) -> None:
    assert await read(results, keep(results, "one", "two")) == {"text": "one\ntwo"}


async def test_structured_content_without_text_is_read_as_json(results: ResultStore) -> None:
    assert await read(results, keep(results, structuredContent={"a": 1})) == {"text": '{"a": 1}'}


async def test_hidden_characters_are_not_read(results: ResultStore) -> None:
    assert await read(results, keep(results, "a\u202eb\x1b[31mc")) == {"text": "abc"}


async def test_hidden_characters_are_not_found_by_a_path(results: ResultStore) -> None:
    handle = keep(results, json.dumps({"a\u200b": ["b\u202ec"]}))
    assert await read(results, handle, path="$") == {"values": [{"a": ["bc"]}]}


async def test_grep_finds_lines_with_their_places(results: ResultStore) -> None:
    handle = keep(results, "alpha\nbeta 1\ngamma\nbeta 2\nbeta 3")
    assert await read(results, handle, grep="beta [12]") == {
        "matches": [{"line": 2, "offset": 6, "text": "beta 1"}, {"line": 4, "offset": 19, "text": "beta 2"}]
    }
    assert await read(results, handle, grep="^beta", offset=1, length=1) == {
        "matches": [{"line": 4, "offset": 19, "text": "beta 2"}],
        "more_from": 2,
        "next": {"handle": handle, "grep": "^beta", "offset": 2, "length": 1},
    }
    assert await read(results, handle, grep="delta") == {"matches": []}


async def test_grep_shows_the_surroundings_of_each_match_in_a_long_line(results: ResultStore) -> None:
    text = "x" * 5_000 + "needle" + "y" * 5_000 + "needle"
    found = (await read(results, keep(results, text), grep="needle"))["matches"]
    assert [match["line"] for match in found] == [1, 1]
    assert all("needle" in match["text"] and len(match["text"]) <= 400 for match in found)
    assert text[found[1]["offset"] :].startswith(found[1]["text"])


async def test_a_pattern_that_matches_nothing_at_all_places_ends(results: ResultStore) -> None:
    found = (await read(results, keep(results, "a\n\nb" + "z" * 1_000), grep="q*"))["matches"]
    assert [match["line"] for match in found][:3] == [1, 2, 3]


async def test_a_pattern_without_end_is_ended(results: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "SECONDS", 1)
    with pytest.raises(ToolError) as ended:
        await read(results, keep(results, "a" * 5_000 + "!"), grep="(a+)+$")
    assert ended.value.code == ErrorCode.TOOL_TIMEOUT


async def test_a_query_that_fills_the_memory_is_ended(results: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "MEMORY", 256 * 1024 * 1024)
    handle = keep(results, "[" + ",".join(["[]"] * 4_000_000) + "]")
    with pytest.raises(ToolError) as ended:
        await read(results, handle, path="$..a")
    assert ended.value.code == ErrorCode.TOOL_TIMEOUT


@pytest.mark.parametrize(
    ("wanted", "said"),
    [({"grep": "("}, "`grep` is not a valid"), ({"path": "$["}, "`path` is not a valid")],
)
async def test_a_wrong_pattern_or_path_says_what_is_wrong(
    results: ResultStore, wanted: dict[str, str], said: str
) -> None:
    with pytest.raises(ToolError, match=said) as wrong:
        await read(results, keep(results, "[1]"), **wanted)
    assert wrong.value.code == ErrorCode.VALIDATION_INVALID_PARAM
    assert wrong.value.instruction


async def test_a_path_into_a_text_that_is_not_json_says_so(results: ResultStore) -> None:
    with pytest.raises(ToolError, match="not JSON"):
        await read(results, keep(results, "hello"), path="$.a")


async def test_path_and_grep_together_are_refused(results: ResultStore) -> None:
    with pytest.raises(InvalidArguments):
        await read(results, keep(results, "[1]"), path="$", grep="1")


async def test_a_path_leads_into_structured_content_or_json_in_a_text(results: ResultStore) -> None:
    for handle in (
        keep(results, json.dumps({"rows": ROWS})),
        keep(results, "200 rows", structuredContent={"rows": ROWS}),
    ):
        assert await read(results, handle, path="$.rows[?@.id > 197].name") == {"values": ["row 198", "row 199"]}
        first = await read(results, handle, path="$.rows[*].id", length=3)
        assert first["values"] == [0, 1, 2]
        assert (await read(results, **first["next"]))["values"] == [3, 4, 5]


async def test_a_value_too_large_to_show_is_described(results: ResultStore) -> None:
    handle = keep(results, json.dumps({"rows": [{"text": "x" * 1000}] * 100}))
    part = await read(results, handle, path="$.rows")
    assert part["values"] == []
    assert part["large"] == {"type": "array", "count": 100}


async def test_nobody_reads_the_result_of_another(results: ResultStore) -> None:
    handle = keep(results, "mine")
    you = CallContext(principal=Principal(subject="you"))
    with pytest.raises(NotFound):
        await read_result(results, ReadCall.model_validate({"handle": handle}), context=you)
    with pytest.raises(NotFound):
        await resolve_references({"text": {"$from": handle}}, results, you)


async def test_a_reference_stands_for_the_text_or_for_what_its_path_leads_to(results: ResultStore) -> None:
    handle = keep(results, json.dumps({"rows": ROWS[:2]}))
    inputs = {
        "text": {"$from": handle},
        "deep": [{"ids": {"$from": handle, "path": "$.rows[*].id"}}],
        "first": {"$from": handle, "path": "$.rows[0]"},
        "plain": {"$from": "x", "other": 1},
    }
    assert await resolve_references(inputs, results, ME) == {
        "text": json.dumps({"rows": ROWS[:2]}),
        "deep": [{"ids": [0, 1]}],
        "first": ROWS[0],
        "plain": {"$from": "x", "other": 1},
    }


@pytest.mark.parametrize("reference", [{"$from": 1}, {"$from": "h", "path": 2}])
async def test_a_reference_of_a_wrong_shape_says_how_to_write_one(results: ResultStore, reference: JsonObject) -> None:
    with pytest.raises(InvalidArguments, match="from"):
        await resolve_references({"x": reference}, results, ME)


async def test_a_reference_whose_path_leads_nowhere_is_refused(results: ResultStore) -> None:
    with pytest.raises(ToolError, match="No value"):
        await resolve_references({"x": {"$from": keep(results, "{}"), "path": "$.a"}}, results, ME)


TEXTS = st.lists(st.text(st.sampled_from("aä\N{ROCKET}\n"), max_size=8), max_size=6)


@given(TEXTS, st.integers(0, 30), st.integers(1, 30))
def test_a_slice_and_lines_are_those_of_the_text(pieces: list[str], offset: int, length: int) -> None:
    results, text = ResultStore(Path(tempfile.gettempdir())), "".join(pieces)
    kept, lines = StoredText(pieces, results.store), text.split("\n")
    assert kept.slice(offset, length) == (text[offset : offset + length], offset + length < len(text))
    assert kept.lines(offset, length) == ("\n".join(lines[offset : offset + length]), offset + length < len(lines))


@pytest.mark.parametrize(
    "path", ["$", "$.a", "$.x_1.rows", "$['no name']", '$["a"]', "$[0]", "$[-5]", "$.rows[*].id", "$.*[12]"]
)
def test_a_simple_path_visits_each_part_once(path: str) -> None:
    assert isolated.is_simple(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a",
        "$..a",
        "$[?@.a]",
        "$[1:2]",
        "$[a]",
        "$.a.",
        "$[1,2]",
        "$['a\\'']",
        "$ .a",
        "$[-0]",
        "$[01]",
        "$.ä",
        "$.1",
    ],
)
def test_every_other_path_is_left_to_the_worker(path: str) -> None:
    assert not isolated.is_simple(path)
