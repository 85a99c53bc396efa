"""Document types of a bot's own: `types/NAME.py` of its directory, whose methods run in the sandbox.

The class is read without running it: `format`, `targets` and `builders` are literals, and only the methods that it
defines are asked; all others are those of `DocumentType`.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from trysquare.bots.documents.base import Chosen, DocumentType, Node
from trysquare.bots.documents.edits import Edits, Merged, Pointer, Problem
from trysquare.bots.documents.formats import DocumentError
from trysquare.bots.sandbox import ProgramFailed, ask_worker
from trysquare.core.errors import InvalidArguments
from trysquare.core.json import JsonObject

LITERALS = ("format", "targets", "builders")


@dataclass(frozen=True, kw_only=True, slots=True)
class TypeSource:
    """Where a type of a bot's directory is written, and a digest of the code that it may use."""

    bot: Path
    file: str
    name: str
    digest: str


def read_type(source: TypeSource, tree: ast.Module) -> type[DocumentType]:
    """The type that a file defines; `ValueError` where it is not written as one."""
    classes = [each for each in tree.body if isinstance(each, ast.ClassDef) and _is_type(each)]
    if len(classes) != 1:
        found = ", ".join(each.name for each in classes) or "none"
        raise ValueError(f"it defines {found}; expected one class with the base DocumentType")
    own = classes[0]
    methods = {each.name for each in own.body if isinstance(each, ast.FunctionDef)} & _READERS.keys()
    made: dict[str, Any] = {name: _method(source, own.name, name) for name in methods}
    for name, value in _assigned(own):
        if name in LITERALS:
            made[name] = _literal(name, value)
    return type(own.name, (DocumentType,), made)


def _is_type(node: ast.ClassDef) -> bool:
    names = [base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in node.bases]
    return DocumentType.__name__ in names


def _assigned(node: ast.ClassDef) -> list[tuple[str, ast.expr]]:
    found: list[tuple[str, ast.expr]] = []
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.value is not None:
            found.append((each.target.id, each.value))
        elif isinstance(each, ast.Assign):
            found += [(target.id, each.value) for target in each.targets if isinstance(target, ast.Name)]
    return found


def _literal(name: str, node: ast.expr) -> Any:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        value = None
    if name == "format":
        if value not in ("json", "yaml", "markdown"):
            raise ValueError(f'`format` is not "json", "yaml" or "markdown" (line {node.lineno})')
        return value
    if not isinstance(value, tuple) or not all(isinstance(each, str) for each in value):  # pyright: ignore[reportUnknownVariableType]
        raise ValueError(f"`{name}` is not a tuple of names, written out (line {node.lineno})")
    return value  # pyright: ignore[reportUnknownVariableType]


_MADE_OF = ("name", "format", "schema", "shape")


def _ask(source: TypeSource, owner: str, kind: DocumentType, method: str, *arguments: Any) -> Any:
    """What a method returns, as JSON; equal questions are asked once."""
    made_of = {each: getattr(kind, each) for each in _MADE_OF}
    try:
        answer = json.loads(_asked(source, owner, method, json.dumps(made_of), json.dumps(arguments)))
    except ProgramFailed as error:
        raise _failed(source, str(error), error.line) from None
    if "document_error" in answer:
        raise DocumentError(answer["document_error"], answer["line"])
    return answer["value"]


@lru_cache(maxsize=64)
def _asked(source: TypeSource, owner: str, method: str, made_of: str, arguments: str) -> str:
    task = {
        "file": str(source.bot / source.file),
        "class": owner,
        "method": method,
        "made_of": json.loads(made_of),
        "arguments": json.loads(arguments),
    }
    return json.dumps(ask_worker(task, what=f"`{method}` of {source.file}", bot=source.bot))


def _failed(source: TypeSource, message: str, line: int) -> InvalidArguments:
    return InvalidArguments(
        message,
        instruction=f"Tell the user to correct {source.file} of the bot.",
        fields={"code": {"file": source.file, "line": line}},
    )


def _method(source: TypeSource, owner: str, name: str) -> Callable[..., Any]:
    """A method that asks the code, and reads what it returned."""

    def method(self: DocumentType, *arguments: Any) -> Any:
        sent = [asdict(each) if isinstance(each, Edits) else each for each in arguments]
        answer = _ask(source, owner, self, name, *sent)
        try:
            return _READERS[name](answer)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            message = f"`{name}` of {source.file} returned something else than DocumentType says ({error})."
            raise _failed(source, message, 1) from None

    return method


def _text(answer: Any) -> str:
    if not isinstance(answer, str):
        raise TypeError(f"{type(answer).__name__}, not a text")
    return answer


def _schema(answer: Any) -> JsonObject | None:
    return None if answer is None else dict(answer)


def _chosen(answer: Any) -> Chosen | None:
    return None if answer is None else Chosen(**{name: tuple(each) for name, each in answer.items()})


def _lines(answer: Any) -> Mapping[Pointer, int]:
    return {_pointer(pointer): int(line) for pointer, line in answer}


def _problems(answer: Any) -> list[Problem]:
    return [(_pointer(pointer), str(message)) for pointer, message in answer]


def _nodes(answer: Any) -> list[Node]:
    return [(_pointer(pointer), value, str(where)) for pointer, value, where in answer]


def _pointer(answer: Any) -> Pointer:
    return tuple(answer)


def _merged(answer: Any) -> Merged:
    return Merged(value=answer["value"], changes=tuple(answer["changes"]), conflicts=tuple(answer["conflicts"]))


def _object(answer: Any) -> JsonObject:
    return dict(answer)


def _value(answer: Any) -> Any:
    return answer


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "parse": _value,
    "lines": _lines,
    "dump": _text,
    "problems": _problems,
    "select": _nodes,
    "choose": _chosen,
    "value_schema": _schema,
    "view": _object,
    "view_schema": _schema,
    "build": _text,
    "merge": _merged,
}
