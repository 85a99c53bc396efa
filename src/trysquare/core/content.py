"""Content blocks: pictures, sounds, files, links and texts, from paths, bytes or the objects of other libraries."""

from __future__ import annotations

import base64
import io
import mimetypes
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, cast
from urllib.parse import quote

from trysquare.core.errors import DeclarationError, ErrorCode, ToolError

MAX_FILE_BYTES = 64 * 1024 * 1024
"""Limit on a file that becomes a content block: it is sent in one message."""
BINARY = "application/octet-stream"
_FORMATS = tuple(
    (re.compile(beginning, re.DOTALL), kind)
    for beginning, kind in (
        (rb"\x89PNG\r\n\x1a\n", "image/png"),
        (rb"\xff\xd8\xff", "image/jpeg"),
        (rb"GIF8[79]a", "image/gif"),
        (rb"RIFF.{4}WEBP", "image/webp"),
        (rb".{4}ftypavif", "image/avif"),
        (rb"II\*\x00|MM\x00\*", "image/tiff"),
        (rb"RIFF.{4}WAVE", "audio/wav"),
        (rb"ID3[\x02-\x04]|\xff[\xfb\xf3\xf2]", "audio/mpeg"),
        (rb"OggS\x00", "audio/ogg"),
        (rb"fLaC\x00", "audio/flac"),
        (rb".{4}ftypM4A", "audio/mp4"),
        (rb"%PDF-[12]\.", "application/pdf"),
        (rb"PK\x03\x04", "application/zip"),
        (rb"\x1f\x8b", "application/gzip"),
    )
)
"""How the data of common formats begins. A text must not look like one of them."""


def detected_type(data: bytes) -> str | None:
    """The media type that the first bytes of some data show; None if they show none."""
    return next((kind for beginning, kind in _FORMATS if beginning.match(data)), None)


class _Binary:
    """Data in base64 with its media type, from a path, from bytes or from base64 text."""

    __slots__ = ("data", "mime_type")
    kind: ClassVar[str]
    data: str
    mime_type: str

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        data: bytes | bytearray | memoryview | str | None = None,
        mime_type: str | None = None,
        format: str | None = None,
    ) -> None:
        """Give `path`, or `data` as bytes (or as base64 text). `format="png"` is short for the media type."""
        held, name = _held(type(self).__name__, path, data)
        if not held:
            raise ToolError(f"The {self.kind} is empty{f' ({name})' if name else ''}: it has no data to show.")
        self.mime_type = self._type_of(held, name, format) if mime_type is None else mime_type
        self.data = held if isinstance(held, str) else base64.b64encode(held).decode()

    def _type_of(self, held: bytes | str, name: str | None, format: str | None) -> str:
        if format:
            return format if "/" in format else f"{self.kind}/{'jpeg' if format == 'jpg' else format}"
        guesses = (detected_type(_beginning(held)), mimetypes.guess_type(name)[0] if name else None)
        found = next((guess for guess in guesses if guess and guess.startswith(f"{self.kind}/")), None)
        if found is None:
            raise ToolError(
                f"The {self.kind}'s format is unknown{f' ({name})' if name else ''}.",
                instruction=f'Name it in the tool: {type(self).__name__}(…, mime_type="{self.kind}/…").',
            )
        return found

    @property
    def size(self) -> int:
        """Bytes of the data."""
        return len(self.data) * 3 // 4 - self.data[-2:].count("=")

    def __str__(self) -> str:
        return f"[{self.mime_type}, {self.size:,} bytes]"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and (self.data, self.mime_type) == (
            cast(_Binary, other).data,
            cast(_Binary, other).mime_type,
        )

    def __hash__(self) -> int:
        return hash((self.data, self.mime_type))


def _beginning(held: bytes | str) -> bytes:
    try:
        return base64.b64decode(held[:64], validate=True) if isinstance(held, str) else held[:64]
    except ValueError:
        raise ToolError("`data` is a text that is not base64. Give bytes, or a path.") from None


class Image(_Binary):
    """A picture: `Image("chart.png")`, or `Image(data=png_bytes)`."""

    __slots__ = ()
    kind = "image"


class Audio(_Binary):
    """A sound: `Audio("hello.wav")`, or `Audio(data=wav_bytes)`."""

    __slots__ = ()
    kind = "audio"


@dataclass(frozen=True, kw_only=True, slots=True)
class ResourceContents:
    """What a resource holds: `text`, or `blob` in base64. One of the two is set."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None
    meta: Mapping[str, Any] | None = None
    """What goes with it as `_meta`, such as `ui` of an app's page."""

    def __str__(self) -> str:
        size = len((self.text or "").encode()) if self.blob is None else len(self.blob) * 3 // 4 - self.blob.count("=")
        return f"[{self.mime_type or BINARY}, {size:,} bytes]"


EmbeddedResource: TypeAlias = ResourceContents
"""A resource inside an answer."""


class File(ResourceContents):
    """A file as content: `File("report.pdf")`, or `File(data=…, name="report.csv")`. Text stays readable text."""

    __slots__ = ()

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        data: bytes | bytearray | memoryview | str | None = None,
        name: str | None = None,
        mime_type: str | None = None,
    ) -> None:
        held, found = _held("File", path, data if not isinstance(data, str) else data.encode())
        raw = cast(bytes, held)
        known = name or found
        kind = mime_type or (mimetypes.guess_type(known)[0] if known else None) or detected_type(raw)
        text = _text_in(raw) if kind is None or not kind.startswith(("image/", "audio/", "video/")) else None
        kind = kind or (BINARY if text is None else "text/plain")
        uri = f"file:///{quote(known or 'data' + (mimetypes.guess_extension(kind) or ''))}"
        blob = base64.b64encode(raw).decode() if text is None else None
        super().__init__(uri=uri, mime_type=kind, text=text, blob=blob)


@dataclass(frozen=True, kw_only=True, slots=True)
class ResourceLink:
    """Where more can be read, for clients that read resources."""

    uri: str
    name: str
    mime_type: str | None = None
    description: str | None = None

    def __str__(self) -> str:
        return f"[{self.name}: {self.uri}]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """A text of its own, beside the answer's rendering."""

    text: str

    def __str__(self) -> str:
        return self.text


Content: TypeAlias = Text | Image | Audio | ResourceContents | ResourceLink
BLOCKS = (Text, Image, Audio, ResourceContents, ResourceLink)


def content_of(value: Any) -> Content | None:
    """The block that a value is, or is shown as: bytes that are no text, pictures of Pillow, figures of Matplotlib."""
    if isinstance(value, BLOCKS):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _of_bytes(bytes(cast(bytes, value)))
    # Nobody can return a picture of a library that is not loaded.
    pillow: Any = sys.modules.get("PIL.Image")
    if pillow is not None and isinstance(value, pillow.Image):
        return _saved(value)
    figures: Any = sys.modules.get("matplotlib.figure")
    if figures is not None and isinstance(value, figures.Figure):
        return _drawn(value.savefig)
    return None


def may_be_drawn(value: Any) -> bool:
    """Whether a value is a picture of a library, or a list with one, which takes long to encode."""
    # By type, not by item: a list may have a million of them.
    items = cast(list[Any], value) if isinstance(value, (list, tuple)) else [value]
    return any(kind.__module__.startswith(_DRAWING) for kind in {cast(Any, type(item)) for item in items})


_DRAWING = ("PIL.", "matplotlib.")


def _of_bytes(data: bytes) -> Content | None:
    """Bytes as what they are; None for UTF-8, which is text like any other."""
    kind = detected_type(data)
    if kind is not None and kind.startswith(("image/", "audio/")):
        return (Image if kind.startswith("image/") else Audio)(data=data, mime_type=kind)
    return None if kind is None and _text_in(data) is not None else File(data=data, mime_type=kind or BINARY)


def _saved(picture: Any) -> Image:
    """A picture of Pillow. Modes that PNG does not have, such as CMYK, become RGB."""
    try:
        return _drawn(picture.save)
    except OSError:
        return _drawn(picture.convert("RGBA").save)


def _drawn(save: Callable[..., Any]) -> Image:
    file = io.BytesIO()
    try:
        save(file, format="png")
    except ValueError as error:
        raise ToolError(f"The picture cannot be drawn: {error}.") from error
    return Image(data=file.getvalue(), mime_type="image/png")


def _text_in(data: bytes) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text


def _held(
    made: str, path: str | os.PathLike[str] | None, data: bytes | bytearray | memoryview | str | None
) -> tuple[bytes | str, str | None]:
    """The data, and the name of the file that it is from."""
    if (path is None) == (data is None):
        raise DeclarationError(f"{made} takes either a path or `data`.")
    if isinstance(path, (bytes, bytearray, memoryview)):
        raise DeclarationError(f"{made} takes bytes by name: `{made}(data=…)`.")
    if path is None:
        return (data, None) if isinstance(data, str) else (bytes(cast(bytes, data)), None)
    file = Path(path).expanduser()
    try:
        if (size := file.stat().st_size) > MAX_FILE_BYTES:
            raise ToolError(f"`{file}` is too large for an answer: {size:,} of at most {MAX_FILE_BYTES:,} bytes.")
        return file.read_bytes(), file.name
    except FileNotFoundError:
        raise ToolError(f"File not found: `{file}`.", code=ErrorCode.FILE_NOT_FOUND) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ToolError(f"`{file}` cannot be read: {reason}.", code=ErrorCode.FILE_NOT_ALLOWED) from None
