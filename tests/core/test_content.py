"""Pictures, sounds, files and links that tools return, as the SDK's client gets them in both eras."""

from __future__ import annotations

import base64
import importlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult

from tests.server.clients import client_of
from tests.support import about, missing_component
from trysquare import Audio, EmbeddedResource, ErrorCode, File, Image, ResourceLink, Result, StaticToolset, Text, tool

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
WAV = b"RIFF\x24\0\0\0WAVEfmt "
LINK = ResourceLink(uri="notes://1", name="note")


@pytest.fixture(params=("legacy", "2026-07-28"))
def era(request: pytest.FixtureRequest) -> str:
    return request.param


async def called(era: str, make: Callable[[], Any], annotation: Any = Any) -> CallToolResult:
    """The result of a tool that returns what `make` makes, checked by the client against the listed output schema."""

    def look() -> Any:
        """Return it."""
        return make()

    look.__annotations__ = {"return": annotation}
    async with client_of(StaticToolset([tool(look)]), era) as client:
        await client.list_tools()
        return await client.call_tool("look", {})


def blocks(result: CallToolResult) -> list[Any]:
    """Each block in short: the text, or the type with what it holds."""
    assert not result.is_error, result
    wire = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]
    return [block["text"] if block["type"] == "text" else _short(block) for block in wire]


def _short(block: dict[str, Any]) -> tuple[Any, ...]:
    held = block.get("resource", block)
    data = held.get("text") or base64.b64decode(held.get("data") or held.get("blob") or "")
    return (block["type"], *filter(None, (held.get("uri"), held.get("mimeType"))), *([data] if data else []))


PICTURE = ("image", "image/png", PNG)


async def test_pictures_and_sounds_are_read_from_paths_and_bytes(era: str, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "a.wav").write_bytes(WAV)
    for make in (lambda: Image(tmp_path / "a.png"), lambda: Image(str(tmp_path / "a.png")), lambda: Image(data=PNG)):
        assert blocks(await called(era, make, Image)) == [PICTURE]
    for make in (lambda: Audio(tmp_path / "a.wav"), lambda: Audio(data=memoryview(WAV))):
        assert blocks(await called(era, make, Audio)) == [("audio", "audio/wav", WAV)]
    assert blocks(await called(era, lambda: Image(data=b"??", format="jpg"))) == [("image", "image/jpeg", b"??")]
    assert blocks(await called(era, lambda: Image(data=base64.b64encode(PNG).decode()))) == [PICTURE]


async def test_what_the_data_is_counts_more_than_its_suffix(era: str, tmp_path: Path) -> None:
    for name in ("picture.jpg", "picture.txt", "picture"):
        (tmp_path / name).write_bytes(PNG)
        assert blocks(await called(era, lambda name=name: Image(tmp_path / name))) == [PICTURE]
    (tmp_path / "drawing.svg").write_text("<svg/>", encoding="utf-8")
    drawn = await called(era, lambda: Image(tmp_path / "drawing.svg"))
    assert blocks(drawn) == [("image", "image/svg+xml", b"<svg/>")]


async def test_files_stay_text_where_they_are_text(era: str, tmp_path: Path) -> None:
    (tmp_path / "ü 1.csv").write_text("a,b\n", encoding="utf-8")
    named = ("resource", "file:///%C3%BC%201.csv", "text/csv", "a,b\n")
    assert blocks(await called(era, lambda: File(tmp_path / "ü 1.csv"), File)) == [named]
    data = await called(era, lambda: File(data="x", name="x.md"), EmbeddedResource)
    assert blocks(data) == [("resource", "file:///x.md", "text/markdown", "x")]
    raw = await called(era, lambda: File(data=b"\0\xff"))
    assert blocks(raw) == [("resource", "file:///data.bin", "application/octet-stream", b"\0\xff")]


@pytest.mark.parametrize(
    ("name", "make", "code"),
    [
        ("missing", Image, ErrorCode.FILE_NOT_FOUND),
        ("missing", File, ErrorCode.FILE_NOT_FOUND),
        ("folder", Image, ErrorCode.FILE_NOT_ALLOWED),
        ("loop", Audio, ErrorCode.FILE_NOT_ALLOWED),
        ("table.csv", Image, ErrorCode.TOOL_FAILED),
        ("picture.png", Audio, ErrorCode.TOOL_FAILED),
        ("empty.png", Image, ErrorCode.TOOL_FAILED),
    ],
)
async def test_a_file_that_cannot_be_shown_is_named_in_the_failure(
    era: str, tmp_path: Path, name: str, make: Callable[..., Any], code: ErrorCode
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "table.csv").write_text("a,b", encoding="utf-8")
    (tmp_path / "picture.png").write_bytes(PNG)
    (tmp_path / "empty.png").touch()
    result = await called(era, lambda: make(tmp_path / name))
    assert (result.is_error, about(result)["code"]) == (True, code)
    assert name in result.content[0].model_dump_json()


async def test_a_list_of_anything_becomes_blocks_in_its_order(era: str) -> None:
    mixed = ["See:", Image(data=PNG), {"a": 1}, [LINK, PNG], Text(text="end"), None]
    expected = ["See:", PICTURE, '{"a":1}', ("resource_link", "notes://1"), PICTURE, "end", "null"]
    for annotation in (Any, list, list[Any], tuple, list[str | Image | dict[str, int]]):
        assert blocks(await called(era, lambda: mixed, annotation)) == expected
    typed = await called(era, lambda: mixed[:3], list)
    assert typed.structured_content == {"result": ["See:", "[image/png, 70 bytes]", {"a": 1}]}


async def test_pictures_inside_a_value_are_named_there_and_follow_it(era: str) -> None:
    card = {"title": "Ada", "picture": Image(data=PNG)}
    for annotation in (Any, dict, dict[str, Any]):
        result = await called(era, lambda: card, annotation)
        assert result.structured_content == {"title": "Ada", "picture": "[image/png, 70 bytes]"}
        assert blocks(result)[1:] == [PICTURE]
    listed = await called(era, lambda: [card, Image(data=PNG)])
    assert blocks(listed)[1:] == [PICTURE, PICTURE]


async def test_guidance_stands_before_the_blocks(era: str) -> None:
    result = await called(era, lambda: Result.ok([Image(data=PNG)], instruction="Look."), Result[list[Image]])
    assert blocks(result) == ["Instruction: Look.", PICTURE]


@pytest.mark.parametrize(
    ("data", "block"),
    [
        (b"text", "text"),
        (b"The big WAVE", "The big WAVE"),
        (b"ID3 is a tag", "ID3 is a tag"),
        (PNG, PICTURE),
        (bytearray(WAV), ("audio", "audio/wav", WAV)),
        (b"%PDF-1.7\n\xff", ("resource", "file:///data.pdf", "application/pdf", b"%PDF-1.7\n\xff")),
        (b"\0\xff", ("resource", "file:///data.bin", "application/octet-stream", b"\0\xff")),
    ],
)
async def test_bytes_say_what_they_are(era: str, data: bytes, block: Any) -> None:
    assert blocks(await called(era, lambda: data, bytes)) == [block]


def library(name: str) -> Any:
    """A module of a package that only tests need."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing_component(name, "run `make test`, which installs it")


async def test_pictures_of_pillow_are_pictures_whatever_their_mode(era: str, tmp_path: Path) -> None:
    pillow = library("PIL.Image")
    pillow.new("RGB", (2, 2), "red").save(tmp_path / "a.jpg")
    pictures = [pillow.new(mode, (2, 2)) for mode in ("1", "L", "P", "RGBA", "CMYK", "HSV", "F", "I;16")]
    result = await called(era, lambda: [*pictures, pillow.open(tmp_path / "a.jpg")], list[pillow.Image])
    assert [block[:2] for block in blocks(result)] == [("image", "image/png")] * 9
    assert len(blocks(await called(era, lambda: ("one", pictures[0]), tuple[str, pillow.Image]))) == 2
    empty = await called(era, lambda: pillow.new("L", (0, 0)), pillow.Image)
    assert (empty.is_error, about(empty)["code"]) == (True, ErrorCode.TOOL_FAILED)


async def test_figures_of_matplotlib_are_pictures(era: str) -> None:
    figure = library("matplotlib.figure").Figure(figsize=(1, 1))
    figure.subplots().plot([1, 2])
    result = await called(era, lambda: ["Sales:", figure], list)
    text, picture = blocks(result)
    assert (text, picture[:2]) == ("Sales:", ("image", "image/png"))
    assert blocks(await called(era, lambda: figure, type(figure)))[0][2].startswith(PNG[:8])


async def test_pictures_are_encoded_beside_the_calls_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    pillow = library("PIL.Image")
    threads = list[threading.Thread]()
    save = pillow.Image.save

    def noted(self: Any, *args: Any, **options: Any) -> None:
        threads.append(threading.current_thread())
        save(self, *args, **options)

    monkeypatch.setattr(pillow.Image, "save", noted)
    for made in (pillow.new("L", (2, 2)), [pillow.new("L", (2, 2))], Result.ok(pillow.new("L", (2, 2)))):
        assert len((await called("2026-07-28", lambda made=made: made, Any)).content) == 1
    assert len(threads) == 3
    assert threading.current_thread() not in threads
