"""Drift: what changed between two definitions of a tool, and whether a human has to see it before it counts.

Only a change of white space counts by itself: whether a sentence is harmless cannot be told in every language, so
whatever a model would read otherwise than before waits for a human. Dangerous is what can be told without reading:
hidden characters, a wider schema, a way out for data, a lost promise to only read, a tool under a new name; and also
what reads like an order to the model in the one language that is looked through.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, cast

from trysquare.catalog.schema_parts import as_object, properties_of
from trysquare.core.shortening import short
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import hidden_kinds, one_line
from trysquare.gateway.definitions.widening import widenings
from trysquare.gateway.definitions.wording import orders_in, sentences, texts_in
from trysquare.gateway.server import Definition

Grade: TypeAlias = Literal["trivial", "new", "gone", "changed", "dangerous"]
"""Of these only `trivial` and `gone` never wait for a human."""

_LONGEST_LINE, _MOST_LINES, _MOST_SHOWN, _MOST_REASONS = 300, 400, 80, 12
_GROWTH = 2_000
"""A description that grew by more characters than this is worth a look, whatever it says."""
_SAID_ONLY = frozenset({"title", "description", "examples", "default", "$comment", "$schema", "$id"})
_PROMISES = (
    ("readOnlyHint", True, "It no longer says that it only reads."),
    ("destructiveHint", False, "It no longer says that it destroys nothing."),
    ("openWorldHint", False, "It no longer says that it stays within the server."),
)
"""What a server can promise of a tool. A promise that is dropped is broken, whether it is denied or not repeated."""
_BLANKS = " \t\r\n"
_SPACE = re.compile(f"[{_BLANKS}]+")
_TOO_DEEP = "It is nested too deeply to be compared."


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One tool that is not what it was."""

    tool: str
    """Its name now, or the one it had, where it is gone."""
    grade: Grade
    reasons: tuple[str, ...]
    before: Definition | None
    after: Definition | None

    @property
    def diff(self) -> str:
        """What changed, line by line."""
        return readable_diff(self.before, self.after)


def compare(before: Sequence[Definition], after: Sequence[Definition]) -> list[Change]:
    """Every tool that differs between two states of one server, in the order of the new state; gone ones last."""
    old = {definition.name: definition for definition in before}
    new = {definition.name: definition for definition in after}
    gone = {name: definition for name, definition in old.items() if name not in new}
    changes = [change for name, one in new.items() if (change := _change(old.get(name), one, gone)) is not None]
    return changes + [_gone(definition) for definition in gone.values()]


def suspicions(definition: Definition) -> tuple[str, ...]:
    """What is odd about a definition that is seen for the first time."""
    return (*_hidden(texts_of(definition)), *(f"{reason}." for reason in orders_in(texts_of(definition))))


def structure_of(definition: Definition) -> str:
    """A digest of what a tool takes, without its words: the same for a clone under another name."""
    plain = json.dumps(_structure(definition.input_schema), sort_keys=True)
    return hashlib.sha256(plain.encode("utf-8", errors="surrogatepass")).hexdigest()


def texts_of(definition: Definition) -> list[str]:
    """Every text of a definition that a model may read."""
    parts = (definition.input_schema, definition.output_schema, definition.annotations)
    own = [definition.name, definition.title or "", definition.description]
    return [*own, *(text for part in parts for text in texts_in(part))]


def readable_diff(before: Definition | None, after: Definition | None) -> str:
    """What changed, line by line, with hidden characters written out."""
    try:
        old, new = _lines(before), _lines(after)
    except RecursionError:
        return ""
    lines = list(difflib.unified_diff(old[:_MOST_LINES], new[:_MOST_LINES], lineterm="", n=1))[2:]
    more = len(lines) - _MOST_SHOWN
    cut = [f"… {more} lines more"] if more > 0 else []
    long = ["… and beyond what is compared here"] if max(len(old), len(new)) > _MOST_LINES else []
    return "\n".join([*lines[:_MOST_SHOWN], *cut, *long])


def _change(old: Definition | None, new: Definition, gone: dict[str, Definition]) -> Change | None:
    try:
        return None if old == new else _changed(old, new, gone)
    except RecursionError:
        # A schema without a bottom cannot be looked through, so it cannot be let through.
        return Change(tool=new.name, grade="dangerous", reasons=(_TOO_DEEP,), before=old, after=new)


def _changed(old: Definition | None, new: Definition, gone: dict[str, Definition]) -> Change:
    if old is not None:
        if _folded(asdict(old)) == _folded(asdict(new)):
            return _graded(old, new, [], "Only white space changed.", otherwise_graded="trivial")
        return _graded(old, new, list(_reasons(old, new)), "What a model reads of it changed.")
    renamed = next((one for one in gone.values() if _is_clone(one, new)), None)
    if renamed is not None:
        said = f"It is the tool `{short(renamed.name)}` under a new name."
        return _graded(renamed, new, [said, *_reasons(renamed, new)], "")
    return _graded(None, new, list(suspicions(new)), "The tool is new.", otherwise_graded="new")


def _folded(value: Any) -> Any:
    """A definition with every run of white space in its texts as one blank."""
    if isinstance(value, str):
        return _SPACE.sub(" ", value.strip(_BLANKS))
    if isinstance(value, dict):
        return {key: _folded(part) for key, part in cast(JsonObject, value).items()}
    return [_folded(part) for part in cast(list[Any], value)] if isinstance(value, list) else value


def _graded(
    old: Definition | None, new: Definition, reasons: list[str], otherwise: str, *, otherwise_graded: Grade = "changed"
) -> Change:
    return Change(
        tool=new.name,
        grade="dangerous" if reasons else otherwise_graded,
        reasons=tuple(reasons[:_MOST_REASONS]) or (otherwise,),
        before=old,
        after=new,
    )


def _gone(definition: Definition) -> Change:
    return Change(tool=definition.name, grade="gone", reasons=("The tool is gone.",), before=definition, after=None)


def _is_clone(one: Definition, other: Definition) -> bool:
    """Whether two tools are one under two names: the same inputs, or, where there are none, the same words."""
    if structure_of(one) != structure_of(other):
        return False
    return bool(properties_of(one.input_schema)) or one.description == other.description


def _reasons(old: Definition, new: Definition) -> Iterator[str]:
    """Why a change is dangerous; nothing where only a human can tell."""
    known = {sentence for text in texts_of(old) for sentence in sentences(text)}
    added = [sentence for text in texts_of(new) for sentence in sentences(text) if sentence not in known]
    yield from _hidden(added)
    yield from (f"{reason}." for reason in orders_in(added))
    if len(new.description) > len(old.description) + _GROWTH:
        yield f"Its description grew by {len(new.description) - len(old.description)} characters."
    yield from widenings(old.input_schema, new.input_schema)
    yield from _broken_promises(as_object(old.annotations), as_object(new.annotations))


def _broken_promises(old: JsonObject, new: JsonObject) -> Iterator[str]:
    yield from (
        reason for hint, promised, reason in _PROMISES if old.get(hint) is promised and new.get(hint) is not promised
    )
    if old.get("readOnlyHint") is False and new.get("readOnlyHint") is True:
        yield "It now says that it only reads, and it said the opposite."


def _hidden(texts: Iterable[str]) -> Iterator[str]:
    kinds = dict.fromkeys(kind for text in texts for kind in hidden_kinds(text))
    if kinds:
        yield f"It holds characters that cannot be seen ({', '.join(kinds)})."


def _structure(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _structure(part) for key, part in cast(JsonObject, schema).items() if not _is_said(key, part)}
    if isinstance(schema, list):
        return [_structure(part) for part in cast(list[Any], schema)]
    return schema


def _is_said(key: str, part: Any) -> bool:
    """Whether a keyword only says something; an input may be called `title`, but then it is a schema."""
    return key in _SAID_ONLY and not isinstance(part, dict)


def _lines(definition: Definition | None) -> list[str]:
    """A definition as lines, one for each thing that can change by itself."""
    if definition is None:
        return []
    lines = [f"name: {definition.name}", f"title: {definition.title or ''}"]
    lines += [f"description: {sentence}" for sentence in sentences(definition.description)]
    for name, part in _described(definition):
        lines += [f"{name} {line.strip()}" for line in _pretty(part)]
    return [_on_one_line(line) for line in lines if not line.endswith(": ")]


def _on_one_line(text: str) -> str:
    return one_line(" ".join(text.split()), _LONGEST_LINE)


def _described(definition: Definition) -> Iterator[tuple[str, Any]]:
    schema = as_object(definition.input_schema)
    inputs = as_object(schema.get("properties"))
    yield from ((f"input {name}:", part) for name, part in sorted(inputs.items()))
    yield "inputs:", {key: part for key, part in schema.items() if key != "properties"}
    yield "annotations:", definition.annotations
    yield "output:", definition.output_schema


def _pretty(part: Any) -> list[str]:
    if part is None or part == {}:
        return []
    if isinstance(part, dict):
        named = cast(JsonObject, part).items()
        return [f"{key} = {json.dumps(inner, ensure_ascii=False, sort_keys=True)}" for key, inner in sorted(named)]
    return [json.dumps(part, ensure_ascii=False)]
