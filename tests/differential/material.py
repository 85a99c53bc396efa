"""Constants that both servers of the differential suite are made from: texts, media, schemas. No server code."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any, Literal, TypeAlias

Json: TypeAlias = dict[str, Any]
Level: TypeAlias = Literal["debug", "info", "warning", "error"]

PAGE_SIZE = 10
"""Entries per page of a list, so that the tools take several pages."""
LIST_TTL_MS = 60_000
MAX_BODY = 256 * 1024
"""Bytes of an HTTP body that both servers accept."""

GREETING = "Hello."
CUT_OFF = "Hello \ufffd"
DATA: Json = {"answer": 42, "list": [1, 2.5, "three"], "none": None, "text": "ä € 🙂"}
REFUSAL = "The tool does not do that."
STEPS = (1, 2, 3)
LINES: tuple[tuple[Level, str], ...] = (
    ("debug", "First line"),
    ("info", "Second line"),
    ("warning", "Third line"),
    ("error", "Fourth line"),
)

NAME_FORM: Json = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
COLOR_FORM: Json = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
NAME_QUESTION = "What is your name?"
COLOR_QUESTION = "What is your favorite color?"
PAGE = "https://example.com/sign-in"
PAGE_ID = "page-1"
PAGE_QUESTION = "Please sign in."
MODEL_PROMPT = "What is the capital of France?"
MODEL_TOKENS = 50

TEXT_URI = "test://text"
BLOB_URI = "test://blob"
WATCHED_URI = "test://watched"
CRASHING_URI = "test://crashing"
ASKING_URI = "test://asking"
ADDED_URI = "test://added"
TEMPLATE = "test://items/{key}"
EMBEDDED_URI = "test://embedded"
LINK_URI = "test://linked"
TEXT = "The text of a resource."
COMPLETIONS = tuple(f"value{number:03}" for number in range(150))
"""More than the hundred that one response may carry."""


def item(key: str) -> str:
    """What the template's resource holds."""
    return f"Item {key}"


def named(name: object) -> str:
    """The answer to the question for a name."""
    return f"Hello, {name}!"


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _png() -> bytes:
    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\x00\xff\x00\x00")
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", pixel) + _chunk(b"IEND", b"")


def _wav() -> bytes:
    samples = b"\x00\x00" * 8
    form = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body


PICTURE = base64.b64encode(_png()).decode("ascii")
SOUND = base64.b64encode(_wav()).decode("ascii")
BLOB = base64.b64encode(bytes(range(256))).decode("ascii")
