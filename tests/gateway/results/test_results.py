"""Results: the bytes that came, or what a model can make use of where they are too many."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from trysquare import CallContext, Image, Principal, ResourceLink, Result
from trysquare.core.errors import NotFound
from trysquare.core.json import JsonObject
from trysquare.gateway.arguments import ReadCall
from trysquare.gateway.models import ORIGIN, ResultOrigin, UpstreamResult
from trysquare.gateway.results import present as setting_aside
from trysquare.gateway.results.present import RESOURCE, present_result, relay, resource_contents
from trysquare.gateway.results.read import read_result
from trysquare.gateway.results.store import ResultStore

ME = CallContext(principal=Principal(subject="me"))
FILES = ResultOrigin(server="files", tool="read")
PICTURE = base64.b64encode(bytes(range(256)) * 10).decode()


@pytest.fixture
def results(tmp_path: Path) -> Iterator[ResultStore]:
    made = ResultStore(tmp_path)
    yield made
    made.close()


def answer(*blocks: JsonObject, is_error: bool = False, **more: Any) -> UpstreamResult:
    return UpstreamResult(body=json.dumps({"content": list(blocks), **more}).encode(), is_error=is_error)


def text(said: str) -> JsonObject:
    return {"type": "text", "text": said}


def image(data: str = PICTURE) -> JsonObject:
    return {"type": "image", "data": data, "mimeType": "image/png"}


async def shown(given: UpstreamResult, results: ResultStore, *, limit: int = 1000, **more: Any) -> Result[Any]:
    origin = ResultOrigin(server="files", tool="read", **more)
    return await present_result(
        given, origin, limit=limit, context=ME, results=results, read_call=lambda reading: reading
    )


def body_of(result: Result[Any]) -> bytes:
    assert result.relayed is not None
    return result.relayed


def value_of(result: Result[Any]) -> JsonObject:
    assert isinstance(result.value, dict)
    return result.value


async def test_a_small_answer_passes_on_as_the_very_bytes_that_came(results: ResultStore) -> None:
    given = answer(text("hällo \N{ROCKET}"), structuredContent={"a": [1, 2.50]}, _meta={"own": 1})
    result = await shown(given, results)
    assert body_of(result) is given.body
    assert result.meta == {ORIGIN: {"server": "files", "tool": "read", "outcome": "done"}}
    assert result.success


async def test_an_error_of_the_server_stays_an_error(results: ResultStore) -> None:
    result = await shown(answer(text("no such file"), is_error=True, isError=True), results)
    assert not result.success
    assert result.relayed is not None


async def test_hidden_characters_are_removed_and_reported(results: ResultStore) -> None:
    result = await shown(answer(text("a\u202eb\x1b[31mc\u200bd")), results)
    assert json.loads(body_of(result))["content"] == [text("abcd")]
    assert result.meta[ORIGIN]["hidden_characters_removed"] == 7


async def test_bytes_that_are_no_text_do_not_reach_the_client(results: ResultStore) -> None:
    result = await shown(UpstreamResult(body=b'{"content":[{"type":"text","text":"a\xffb"}]}'), results)
    assert json.loads(body_of(result))["content"] == [text("a\N{REPLACEMENT CHARACTER}b")]


async def test_notes_stand_in_the_label_and_where_a_model_reads_them(results: ResultStore) -> None:
    given = answer(text("3"), structuredContent={"sum": 3}, _meta={"own": 1})
    result = await shown(given, results, notes=('`a` was the text "1" and is sent as 1.',), replayed=True)
    body = json.loads(body_of(result))
    assert body["content"] == [text("3"), text('Note: `a` was the text "1" and is sent as 1.')]
    assert (body["structuredContent"], body["_meta"]) == ({"sum": 3}, {"own": 1})
    assert result.meta[ORIGIN]["notes"] == ['`a` was the text "1" and is sent as 1.']
    assert result.meta[ORIGIN]["replayed"] is True


async def test_what_a_model_sees_of_a_large_result(results: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setting_aside, "HEAD", 60)
    monkeypatch.setattr("trysquare.gateway.results.store.secrets.choice", lambda letters: letters[0])
    rows = [{"id": number, "name": f"row {number}"} for number in range(100)]
    result = await shown(answer(text(json.dumps({"rows": rows, "total": 100}))), results, notes=("Mended.",))
    body = result.to_json()
    assert '{"$from": "aaaaaaaaaa", "path": "$…"}' in body.pop("instruction")
    assert body == snapshot(
        {
            "success": True,
            "value": {
                "handle": "aaaaaaaaaa",
                "bytes": 3651,
                "shape": "{rows: [100 x {id: int, name: str}], total: int}",
                "head": '{"rows": [{"id": 0, "name": "row 0"}, {"id": 1, "name": "row',
            },
            "next": {"handle": "aaaaaaaaaa", "offset": 60},
            "warnings": ["Mended."],
        }
    )
    assert result.meta[ORIGIN]["handle"] == "aaaaaaaaaa"


async def test_all_of_a_large_result_can_be_read(results: ResultStore) -> None:
    said = "".join(f"line {number}\n" for number in range(1_000))
    result = await shown(answer(text(said)), results)
    found, wanted = str(value_of(result)["head"]), result.next
    while wanted:
        part = await read_result(results, ReadCall(**wanted), context=ME, read_call=lambda reading: reading)
        found, wanted = found + value_of(part)["text"], part.next
    assert found == said


async def test_a_large_error_of_the_server_is_a_failure_with_a_handle(results: ResultStore) -> None:
    result = await shown(answer(text("no " * 1000), is_error=True, isError=True), results)
    envelope = result.to_json()
    assert envelope["success"] is False
    assert envelope["error"]["message"].startswith("no no no")
    assert results.find(envelope["handle"], principal="me").body.size > 3000


async def test_a_limit_of_nought_passes_everything_on(results: ResultStore) -> None:
    given = answer(text("x" * 2_000_000))
    assert body_of(await shown(given, results, limit=0)) is given.body


async def test_a_picture_is_no_text_and_passes_on_as_content(results: ResultStore) -> None:
    given = answer(image(), text("a picture"))
    assert len(given.body) > 1000
    assert body_of(await shown(given, results)) is given.body


async def test_a_large_picture_becomes_a_link_to_a_resource(
    results: ResultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setting_aside, "BINARY", 1000)
    result = await shown(answer(image(), text("a picture"), structuredContent={"w": 1}, _meta={"own": 1}), results)
    body = json.loads(body_of(result))
    link = body["content"][0]
    assert (link["type"], link["mimeType"], body["content"][1]) == ("resource_link", "image/png", text("a picture"))
    assert (body["structuredContent"], body["_meta"]) == ({"w": 1}, {"own": 1})
    handle = link["uri"].removeprefix(RESOURCE)
    contents = resource_contents(results, handle, principal="me")
    assert (contents.blob, contents.mime_type, contents.uri) == (PICTURE, "image/png", link["uri"])
    with pytest.raises(NotFound):
        resource_contents(results, handle, principal="you")


async def test_images_with_a_large_text_stay_content(results: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setting_aside, "BINARY", 4000)
    result = await shown(answer(text("x" * 5000), image(), image(PICTURE * 2)), results)
    assert result.relayed is None
    small, large = result.content
    assert small == Image(data=PICTURE, mime_type="image/png")
    assert isinstance(large, ResourceLink)


async def test_an_answer_that_is_no_result_at_all_is_kept_and_read_as_it_is(results: ResultStore) -> None:
    body = json.dumps({"content": 1, "other": "x" * 5000}).encode()
    result = await shown(UpstreamResult(body=body), results)
    assert value_of(result)["head"] == body.decode()[:2000]
    wanted = ReadCall.model_validate({"handle": value_of(result)["handle"], "length": 20})
    assert value_of(await read_result(results, wanted, context=ME)) == {
        "text": body.decode()[:20], "more_from": 20
    }  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=20,
)


@given(st.lists(JSON, max_size=3), JSON, st.booleans())
def test_whatever_is_passed_on_is_json_of_the_same_shape(blocks: list[Any], structured: Any, ascii: bool) -> None:
    wire = {"content": [text(json.dumps(block)) for block in blocks], "structuredContent": structured}
    body = json.dumps(wire, ensure_ascii=ascii).encode()
    passed = json.loads(body_of(relay(UpstreamResult(body=body), FILES)))
    assert len(passed["content"]) == len(blocks)
    assert type(passed["structuredContent"]) is type(structured)
