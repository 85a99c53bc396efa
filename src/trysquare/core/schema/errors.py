"""Argument errors: what is wrong, what was expected, the closest name, and the corrected call.

Pydantic's errors and those of a foreign schema are the same list of problems. The corrected call is tried before it is
offered: either it fits, or the instruction names what is left to fill in. Neither the text nor the corrected call
contains the value of a secret argument. What repairs is loaded only when a call is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.json import JsonObject, JsonPath, as_object, resolve_ref
from trysquare.core.redaction import MASK, SecretTexts, redact, secret_places
from trysquare.core.schema.describe import path_text, type_text
from trysquare.core.schema.validator import NAME_KEYWORDS, Call, Check, Problem, expected_schema
from trysquare.core.text import encodable, is_short, truncate, truncated_repr
from trysquare.core.untrusted import cleaned_text

if TYPE_CHECKING:
    from trysquare.core.schema.draft import ArgumentsDraft

WRAPPER_KEYS = ("args", "arguments", "parameters", "params", "input", "kwargs")
_MAX_PROBLEMS = 8
_MAX_NAMES = 12
_ELIDED = "<as you sent it>"
_TYPED = frozenset({"type", "enum", "const", "anyOf", "oneOf"})
_RULES = {
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be more than {}",
    "exclusiveMaximum": "must be less than {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "minProperties": "must have at least {} names",
    "maxProperties": "must have at most {} names",
    "pattern": "must match {}",
    "uniqueItems": "must not contain the same item twice",
}


def unwrap_arguments(raw: JsonObject, properties: Mapping[str, Any]) -> JsonObject:
    """The arguments themselves, where a model put them one level too deep: `{"args": {…}}`."""
    if len(raw) != 1:
        return raw
    [(key, inner)] = raw.items()
    if key not in WRAPPER_KEYS or key in properties or not isinstance(inner, dict):
        return raw
    return cast(JsonObject, inner)


def validate_arguments(
    check: Check, *, tool: str, raw: JsonObject, schema: Callable[[], JsonObject], foreign: Collection[str] = ()
) -> Any:
    """The validated arguments, or `InvalidArguments` with the corrected call.

    An optional argument that is null or "" and may not be is not given. `foreign` are those of other actions.
    """
    try:
        return check(raw, extra="forbid")
    except ValidationError:
        from trysquare.core.schema.draft import ArgumentsDraft, without_blanks
        from trysquare.core.schema.pydantic_errors import pydantic_problems

        whole = schema()
        draft = ArgumentsDraft(raw, whole, lambda arguments: pydantic_problems(check, arguments, whole))
        problems = draft.problems()
        problems = without_blanks(draft, problems, foreign) if problems else []
    if problems:
        raise argument_error(draft, problems, lambda arguments: {"tool": tool, "arguments": arguments})
    # Only names that the author of an inner model lets through are left.
    return check(draft.arguments, extra=None)


def argument_error(draft: ArgumentsDraft, problems: list[Problem], call: Call) -> InvalidArguments:
    """The error for arguments with problems. The draft becomes the corrected call."""
    from trysquare.core.schema.draft import suggest

    texts: list[str] = []
    unreadable = [name for name in draft.arguments if encodable(name) != name]
    if unreadable:
        for name in unreadable:
            draft.take((name,))
        problems = draft.problems()
        texts.append("An argument name contains a lone surrogate.")
    code = ErrorCode.VALIDATION_UNKNOWN_PARAM if unreadable else _code(problems)
    wording = _Wording(draft.arguments, draft.whole)
    is_complete, renamed = suggest(draft, problems)
    texts += wording.texts(problems, renamed)
    if not is_complete:
        return InvalidArguments(" ".join(texts), code=code, instruction="Correct the arguments and call again.")
    elided = _elide(draft)
    return InvalidArguments(
        " ".join(texts), code=code, instruction=_instruction(draft.open_paths, elided), next=call(draft.arguments)
    )


def _code(problems: list[Problem]) -> ErrorCode:
    keywords = {problem.keyword for problem in problems}
    if "additionalProperties" in keywords:
        return ErrorCode.VALIDATION_UNKNOWN_PARAM
    if "required" in keywords:
        return ErrorCode.VALIDATION_MISSING_PARAM
    return ErrorCode.VALIDATION_INVALID_PARAM


def _elide(draft: ArgumentsDraft) -> list[JsonPath]:
    """Take large and secret values out of the corrected call: the caller has them. Returns their paths."""
    large: list[JsonPath] = [(name,) for name, value in draft.arguments.items() if not is_short(value)]
    secret = [path for path in secret_places(draft.arguments, draft.whole) if path not in draft.open_paths]
    elided = [*large, *(path for path in secret if path[:1] not in large)]
    for path in elided:
        draft.put(path, _ELIDED)
    return elided


def _instruction(open_paths: list[JsonPath], elided: list[JsonPath]) -> str:
    steps = [f"fill in {name_list(map(path_text, open_paths))}"] if open_paths else []
    steps += [f"put {name_list(map(path_text, elided))} back as you sent it"] if elided else []
    if not steps:
        return "Send the corrected call in `next`."
    todo = " and ".join(steps)
    return f"{todo[0].upper()}{todo[1:]}, then send the call in `next`."


def name_list(names: Iterable[str]) -> str:
    """Some names, listed; those past a dozen are counted."""
    known = list(names)
    more = f" and {len(known) - _MAX_NAMES} more" if len(known) > _MAX_NAMES else ""
    return ", ".join(f"`{truncate(cleaned_text(name))}`" for name in known[:_MAX_NAMES]) + more


class _Wording:
    """Sentences about the problems of one call, without its secrets."""

    def __init__(self, given: JsonObject, whole: JsonObject) -> None:
        self._whole = whole
        self._shown = redact(given, whole)
        self._secrets = SecretTexts(given, whole)

    def texts(self, problems: list[Problem], renamed: Mapping[JsonPath, JsonPath]) -> list[str]:
        """A sentence about each problem, unknown names first; those past a few are counted."""
        explained = set(renamed.values())
        unique: dict[tuple[JsonPath, bool], Problem] = {}
        for problem in problems:
            unique.setdefault((problem.path, problem.keyword in NAME_KEYWORDS), problem)
        ordered = sorted(unique.values(), key=lambda problem: problem.keyword != "additionalProperties")
        left = [problem for problem in ordered if problem.keyword != "required" or problem.path not in explained]
        lists_names = next((p.path for p in left if p.keyword == "additionalProperties" and p.path not in renamed), ())
        texts = [self._text(problem, renamed, problem.path == lists_names) for problem in left[:_MAX_PROBLEMS]]
        return [*texts, f"And {len(left) - len(texts)} more."] if len(left) > len(texts) else texts

    def _text(self, problem: Problem, renamed: Mapping[JsonPath, JsonPath], lists_names: bool) -> str:
        if problem.keyword == "additionalProperties":
            return _unknown(problem, renamed.get(problem.path), lists_names)
        if problem.keyword == "required":
            schema = expected_schema(problem, self._whole)
            description = truncate(cleaned_text(str(schema.get("description", ""))), 200).removesuffix(".")
            return f"`{path_text(problem.path)}` is missing ({_type(schema)}{description and ', ' + description})."
        if problem.keyword == "propertyNames":
            return self._wrong_key(problem)
        if not problem.path and problem.message:
            return _sentence(self._secrets.masked(problem.message))
        where = f"`{path_text(problem.path)}`" if problem.path else "The arguments"
        return f"{where}{self._rule(problem)}; got {self._got(problem.path)}."

    def _wrong_key(self, problem: Problem) -> str:
        *holder, name = problem.path
        where = f"`{path_text(tuple(holder))}`" if holder else "the arguments"
        expected = expected_schema(problem, self._whole)
        text = self._rule(problem) if problem.message and "enum" not in expected else f" must be {_type(expected)}"
        return f"The key `{truncate(cleaned_text(str(name)))}` of {where}{text}."

    def _rule(self, problem: Problem) -> str:
        keyword, schema = problem.keyword, problem.schema
        if keyword in _TYPED:
            return f" must be {_type(resolve_ref(schema, self._whole))}"
        if keyword in _RULES:
            return " " + _RULES[keyword].format(truncate(cleaned_text(str(schema.get(keyword)))))
        message = self._secrets.masked(problem.message)
        if message.startswith("Input "):
            return " " + message.removeprefix("Input ").rstrip(".")
        return ": " + _sentence(message, "") if message else f" does not satisfy `{keyword}` of the schema"

    def _got(self, path: JsonPath) -> str:
        inside: Any = self._shown
        for part in path:
            if inside == MASK or not isinstance(inside, (dict, list)):
                break
            inside = cast(Any, inside)[part]
        return MASK if inside == MASK else self._secrets.masked(truncated_repr(inside))


def _unknown(problem: Problem, meant: JsonPath | None, lists_names: bool) -> str:
    text = f"Unknown argument `{path_text(problem.path)}`."
    if meant is not None:
        return f"{text} Did you mean `{path_text(meant)}`?"
    known = name_list(as_object(problem.schema.get("properties"))) or "none"
    return f"{text} Known {'names there' if len(problem.path) > 1 else 'arguments'}: {known}." if lists_names else text


def _type(schema: JsonObject) -> str:
    return truncate(cleaned_text(type_text(schema)), 200)


def _sentence(text: str, end: str = ".") -> str:
    return truncate(text.removeprefix("Value error, ").removeprefix("Assertion failed, ").rstrip("."), 400) + end
