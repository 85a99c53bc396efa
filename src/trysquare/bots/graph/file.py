"""Story-graph files: load, save, line numbers."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trysquare.bots.graph.graph import Graph, Pointer, problems_of
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.files.root import DirectoryRoot

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def line_numbers(text: str) -> Mapping[Pointer, int]:
    """The line of every value in a valid JSON text, by its pointer."""
    found: dict[Pointer, int] = {(): 1}
    path: list[str | int] = []
    expects_key: list[bool] = []
    line, end = 1, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", end, token.start())
        end = token.start()
        word = token.group()
        if word in "{[":
            expects_key.append(word == "{")
            path.append("" if word == "{" else 0)
            if word == "[":
                found[tuple(path)] = _next_line(text, token.end(), line)
        elif word in "}]":
            expects_key.pop()
            path.pop()
        elif word == ",":
            if isinstance(last := path[-1], int):
                path[-1] = last + 1
                found[tuple(path)] = _next_line(text, token.end(), line)
            else:
                expects_key[-1] = True
        elif word == ":":
            expects_key[-1] = False
        elif expects_key and expects_key[-1] and isinstance(path[-1], str):
            path[-1] = json.loads(word)
            found[tuple(path)] = line
    return found


def _next_line(text: str, start: int, line: int) -> int:
    rest = re.compile(r"\s*").match(text, start)
    return line + (text.count("\n", start, rest.end()) if rest else 0)


class GraphChanged(ToolError):
    """The file changed since it was read."""

    default_code = ErrorCode.STATE_CONFLICT


@dataclass(frozen=True, kw_only=True)
class GraphFile:
    """A graph as it was read."""

    path: str
    text: str
    graph: Graph

    @cached_property
    def digest(self) -> str:
        return digest_of(self.text)

    @cached_property
    def lines(self) -> Mapping[Pointer, int]:
        return line_numbers(self.text)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_document(folder: DirectoryRoot, path: str) -> GraphFile:
    """Read a JSON object of any shape; `GraphFile.graph` may break the schema."""
    text = folder.read_text(path)
    try:
        value: Any = json.loads(text)
    except json.JSONDecodeError as error:
        message = f"{path}:{error.lineno}: this is not JSON: {error.msg}."
        raise InvalidArguments(message, fields={"line": error.lineno}) from None
    except RecursionError:
        raise InvalidArguments(f"{path}: the document is nested too deeply.") from None
    if not isinstance(value, dict):
        raise InvalidArguments(f"{path}:1: a story graph must be a JSON object.")
    return GraphFile(path=path, text=text, graph=value)  # pyright: ignore[reportUnknownArgumentType]


def load_graph(folder: DirectoryRoot, path: str) -> GraphFile:
    """Read a valid graph; the error names the invalid lines."""
    file = read_document(folder, path)
    problems = problems_of(file.graph)
    if problems:
        lines = "; ".join(f"line {nearest_line(file, each.pointer)}: {each.message}" for each in problems[:5])
        raise InvalidArguments(f"{path} is not a story graph: {lines}", fields={"problems": [str(p) for p in problems]})
    return file


def is_other_document(folder: DirectoryRoot, path: str) -> bool:
    """Whether a document exists and is not a story graph at all."""
    try:
        return "epics" not in read_document(folder, path).graph
    except (NotFound, InvalidArguments):
        return False


def nearest_line(file: GraphFile, pointer: Pointer) -> int:
    """The line of a value, or of its nearest parent in the text."""
    while pointer not in file.lines:
        pointer = pointer[:-1]
    return file.lines[pointer]


def save_graph(folder: DirectoryRoot, path: str, graph: Graph, *, expected_digest: str | None) -> GraphFile:
    """Write a graph if the file is unchanged; None expects no file."""
    problems = problems_of(graph)
    if problems:
        raise InvalidArguments(f"{path} was not written; the graph would be invalid: {problems[0]}")
    text = _dump(graph)
    with _locked(folder):
        if _digest_on_disk(folder, path) != expected_digest:
            raise GraphChanged(f"`{path}` was changed meanwhile.", instruction="Read it again and repeat the edit.")
        folder.write_bytes(path, text.encode())
    return GraphFile(path=path, text=text, graph=graph)


def _dump(graph: Graph) -> str:
    text = json.dumps(graph, indent=2, ensure_ascii=False) + "\n"
    try:
        text.encode()
    except UnicodeEncodeError:
        # JSON allows a lone surrogate only as an escape.
        return json.dumps(graph, indent=2) + "\n"
    return text


@contextmanager
def _locked(folder: DirectoryRoot) -> Generator[None]:
    """Lock the folder against other writers between check and write."""
    descriptor = os.open(folder.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _digest_on_disk(folder: DirectoryRoot, path: str) -> str | None:
    try:
        return digest_of(folder.read_text(path))
    except NotFound:
        return None
