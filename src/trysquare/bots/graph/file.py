"""The file of a story graph: read with its digest, written only over what was read."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trysquare.bots.graph.lines import line_numbers
from trysquare.bots.graph.nodes import Graph, Pointer
from trysquare.bots.graph.schema import problems_of
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.files.sealed_folder import SealedFolder


class GraphChanged(ToolError):
    """The file has other contents than those that an edit began with."""

    default_code = ErrorCode.STATE_CONFLICT


@dataclass(frozen=True, kw_only=True)
class GraphFile:
    """A graph as it was read."""

    path: str
    text: str
    graph: Graph

    @cached_property
    def digest(self) -> str:
        """What tells this text from any other."""
        return digest_of(self.text)

    @cached_property
    def lines(self) -> Mapping[Pointer, int]:
        """The line of each value."""
        return line_numbers(self.text)


def digest_of(text: str) -> str:
    """What tells a text from any other."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_document(folder: SealedFolder, path: str) -> GraphFile:
    """A JSON object of any shape; `GraphFile.graph` may break the schema."""
    text = folder.read_text(path)
    try:
        value: Any = json.loads(text)
    except json.JSONDecodeError as error:
        said = f"{path}:{error.lineno}: this is not JSON: {error.msg}."
        raise InvalidArguments(said, fields={"line": error.lineno}) from None
    except RecursionError:
        raise InvalidArguments(f"{path}: the document is nested too deeply.") from None
    if not isinstance(value, dict):
        raise InvalidArguments(f"{path}:1: a story graph is a JSON object.")
    return GraphFile(path=path, text=text, graph=value)  # pyright: ignore[reportUnknownArgumentType]


def load_graph(folder: SealedFolder, path: str) -> GraphFile:
    """A graph that keeps its schema; the error names the lines that do not."""
    file = read_document(folder, path)
    problems = problems_of(file.graph)
    if problems:
        told = "; ".join(f"line {nearest_line(file, each.pointer)}: {each.message}" for each in problems[:5])
        raise InvalidArguments(f"{path} is no story graph: {told}", fields={"problems": [str(p) for p in problems]})
    return file


def is_other_document(folder: SealedFolder, path: str) -> bool:
    """Whether a document is there and is something else than a story graph, not one with a mistake in it."""
    try:
        return "epics" not in read_document(folder, path).graph
    except (NotFound, InvalidArguments):
        return False


def nearest_line(file: GraphFile, pointer: Pointer) -> int:
    """The line of a value, or of the nearest one around it that the text has."""
    while pointer not in file.lines:
        pointer = pointer[:-1]
    return file.lines[pointer]


def save_graph(folder: SealedFolder, path: str, graph: Graph, *, expected_digest: str | None) -> GraphFile:
    """Write a graph whole, if the file still is what was read; None expects that there is none."""
    problems = problems_of(graph)
    if problems:
        raise InvalidArguments(f"{path} is not written; the graph would not hold up: {problems[0]}")
    text = _written(graph)
    with _one_writer(folder):
        if _digest_on_disk(folder, path) != expected_digest:
            raise GraphChanged(f"`{path}` was changed meanwhile.", instruction="Read it again and repeat the edit.")
        folder.write_bytes(path, text.encode())
    return GraphFile(path=path, text=text, graph=graph)


def _written(graph: Graph) -> str:
    text = json.dumps(graph, indent=2, ensure_ascii=False) + "\n"
    # Half of a surrogate pair is a JSON text, but only as an escape.
    return text if text.isascii() or _is_utf8(text) else json.dumps(graph, indent=2) + "\n"


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def _one_writer(folder: SealedFolder) -> Generator[None]:
    """Hold the folder against other writers between the look at the file and the write."""
    descriptor = os.open(folder.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _digest_on_disk(folder: SealedFolder, path: str) -> str | None:
    try:
        return digest_of(folder.read_text(path))
    except NotFound:
        return None
