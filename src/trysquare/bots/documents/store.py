"""Documents and their files in a project."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from trysquare.bots.documents.base import Document, DocumentType
from trysquare.bots.documents.formats import DocumentError
from trysquare.bots.graph import GraphConflict, digest_of, text_or_none
from trysquare.core.errors import InvalidArguments, NotFound
from trysquare.files.edit import exclusive_lock
from trysquare.files.root import DirectoryRoot, PathNotAllowed

MANY = "*"
"""In the name of a file, it stands for any text: the config is about every such file of the folder."""
MAX_DOCUMENTS = 2_000


def expand(folder: DirectoryRoot, path: str) -> list[str]:
    """The existing files that a path with `*` stands for, or the path itself."""
    if MANY not in path:
        return [path]
    at = PurePosixPath(path)
    try:
        names = sorted(each.path for each in folder.walk(str(at.parent), max_depth=1))
    except (NotFound, PathNotAllowed):
        return []
    return [name for name in names if is_one_of(name, path)][:MAX_DOCUMENTS]


def is_one_of(path: str, pattern: str) -> bool:
    """Whether a path with `*` stands for a file."""
    file, at = PurePosixPath(path), PurePosixPath(pattern)
    return MANY in pattern and file.parent == at.parent and fnmatchcase(file.name, at.name)


def stem_in(path: str, pattern: str) -> str:
    """What stands for `*` in a path."""
    before, _, after = pattern.partition(MANY)
    return path[len(before) : len(path) - len(after)]


def read_document(folder: DirectoryRoot, path: str, kind: DocumentType) -> Document:
    """Read a document, which may still be invalid; a text that cannot be read is refused with its line."""
    text = folder.read_text(path)
    try:
        value = kind.parse(text)
    except DocumentError as error:
        raise InvalidArguments(f"{path}:{error.line}: {error}.", fields={"line": error.line}) from None
    return Document(path=path, text=text, value=value, read_lines=lambda: kind.lines(text))


def load_document(folder: DirectoryRoot, path: str, kind: DocumentType) -> Document:
    """Read a valid document; the error names the lines that are not."""
    try:
        document = read_document(folder, path, kind)
    except NotFound:
        raise NotFound(
            f"{path} does not exist yet.", instruction="Write it first, with the action build_knowledge."
        ) from None
    problems = list(kind.problems(document.value))
    if problems:
        lines = "; ".join(f"line {document.line(pointer)}: {message}" for pointer, message in problems[:5])
        fields = {"problems": [f"/{'/'.join(map(str, pointer))}: {message}" for pointer, message in problems]}
        what = kind.name.replace("_", " ")
        raise InvalidArguments(f"{path} is not a valid document of the type {what}: {lines}", fields=fields)
    return document


def save_document(folder: DirectoryRoot, document: Document, kind: DocumentType, value: Any) -> Document:
    """Write a changed value if the file is what was read and the value is valid."""
    path = document.path
    problem = next(iter(kind.problems(value)), None)
    if problem is not None:
        raise InvalidArguments(f"{path} was not written; it would be invalid: {problem[1]}")
    try:
        text = kind.dump(value, document.text)
    except DocumentError as error:
        raise GraphConflict(f"`{path}` was not written: {error}.") from None
    with exclusive_lock(folder.root, directory=True):
        present = text_or_none(folder, path)
        if present is None or digest_of(present) != document.digest:
            raise GraphConflict(f"`{path}` was changed meanwhile.", instruction="Read it again and repeat the edit.")
        folder.write_bytes(path, text.encode("utf-8", "surrogatepass"))
    return Document(path=path, text=text, value=value, read_lines=lambda: kind.lines(text))
