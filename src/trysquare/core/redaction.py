"""Redaction: which arguments and names are secret; values and texts without them."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Set
from typing import Any, cast

from trysquare.core.json import JsonObject, JsonPath, as_list, as_object, ref_of, resolve_pointer

MASK = "***"
_SECRET_NAME = re.compile(
    r"passw|passphrase|secret|token|credential|authori[sz]ation|cookie|(api|private|access|signing)[_-]?key",
    re.IGNORECASE,
)
_COUNT_NAME = re.compile(
    r"(tokens|cookies)$|(^|_)(max|min|num|count|number|limit|budget|size|length|total|used)(_|$)", re.IGNORECASE
)
_MAX_DEPTH = 100
_MAX_WRAPPED = 2
"""Lists and objects around a secret that a caller may have left out."""
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:ghp|gho|ghs|github_pat|glpat|xox[a-z]|AKIA|AIza|eyJ|(?:sk|pk|rk|hf|npm)(?=[-_A-Za-z.]*[0-9]))"
    r"[-_A-Za-z0-9.]{12,}"
)
"""A key as well-known services write theirs."""
_USER = re.compile(r"(?<=://)[^/\s\"'\\@:]*:[^/\s\"'\\@]+(?=@)")
_QUERY = re.compile(
    r"(?<=[?&;])([\w.-]*(?:token|key|secret|passw|sig|auth|credential)[\w.-]*=)[^&#\s\"'\\]+", re.IGNORECASE
)
_HEAD = 12
"""So many characters of a long secret are enough to recognise a shortened copy of it."""


def redact(arguments: JsonObject, schema: JsonObject) -> JsonObject:
    """The arguments with secret values replaced, at every depth."""
    reader = _Reader(schema)
    return reader.masked(arguments, reader.forms(schema))


def secret_places(arguments: JsonObject, schema: JsonObject) -> list[JsonPath]:
    """The paths of secret values in the arguments."""
    found = _Reader(schema).secrets(arguments)
    return [path for path, value in found if value not in (None, "") and not isinstance(value, bool)]


def redact_text(text: str, arguments: JsonObject, schema: JsonObject) -> str:
    """The text with every value of a secret argument replaced, whole, quoted or shortened."""
    return SecretTexts(arguments, schema).masked(text)


class SecretTexts:
    """The values of a call's secret arguments in every form that may occur in a text."""

    def __init__(self, arguments: JsonObject, schema: JsonObject) -> None:
        found = {form for _, value in _Reader(schema).secrets(arguments) for form in _texts(value)}
        self._forms = sorted(found, key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def masked(self, text: str) -> str:
        for form in self._forms:
            text = _without(text, form)
        return text


def mask_tokens(text: str) -> str:
    """A text with what looks like a secret masked: a key of a service, a password in an address or its query."""
    if "://" in text:
        text = _USER.sub(MASK, text)
    if "=" in text:
        text = _QUERY.sub(rf"\1{MASK}", text)
    return _TOKEN.sub(MASK, text)


def is_secret_name(name: str, value: Any = None) -> bool:
    """Whether a name most likely names a secret. A count such as `max_tokens` does not."""
    if isinstance(value, (int, float)) and _COUNT_NAME.search(name):
        return False
    return _SECRET_NAME.search(name) is not None


class _Reader:
    """Walks arguments along their schema. A value is secret if its schema says so, or its name does."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema

    def secrets(self, arguments: JsonObject) -> Iterator[tuple[JsonPath, Any]]:
        # A stack of its own: arguments may be nested deeper than functions can call one another.
        waiting: list[tuple[JsonPath, Any, list[JsonObject]]] = [((), arguments, self.forms(self._schema))]
        while waiting:
            path, value, forms = waiting.pop()
            if isinstance(value, dict):
                for name, part in cast(JsonObject, value).items():
                    inner = self._property(name, forms)
                    if self._is_secret(name, part, inner):
                        yield (*path, name), part
                    elif isinstance(part, (dict, list)):
                        waiting.append(((*path, name), cast(Any, part), inner))
            elif isinstance(value, list):
                for index, item in enumerate(cast(list[Any], value)):
                    inner = self._item(index, forms)
                    if self._is_marked(item, inner):
                        yield (*path, index), item
                    elif isinstance(item, (dict, list)):
                        waiting.append(((*path, index), cast(Any, item), inner))

    def masked(self, value: Any, forms: list[JsonObject], depth: int = 0) -> Any:
        if depth > _MAX_DEPTH and isinstance(value, (dict, list)):
            return MASK
        if isinstance(value, dict):
            shown: JsonObject = {}
            for name, part in cast(JsonObject, value).items():
                inner = self._property(name, forms)
                is_secret = self._is_secret(name, part, inner)
                shown[name] = MASK if is_secret else self.masked(part, inner, depth + 1)
            return shown
        if isinstance(value, list):
            items = enumerate(cast(list[Any], value))
            return [self.masked(item, self._item(index, forms), depth + 1) for index, item in items]
        return MASK if self._is_marked(value, forms) else value

    def _is_secret(self, name: str, value: Any, forms: list[JsonObject]) -> bool:
        return is_secret_name(name, value) or self._is_marked(value, forms)

    def _is_marked(self, value: Any, forms: list[JsonObject], depth: int = 0) -> bool:
        """Whether the schema marks a value as secret; also one in place of an object with secrets."""
        if any(form.get("writeOnly") is True or form.get("format") == "password" for form in forms):
            return True
        if isinstance(value, (dict, list)) or value is None or depth > _MAX_WRAPPED:
            return False
        parts: list[Any] = []
        for form in forms:
            parts += [form.get("items"), form.get("additionalProperties")]
            parts += [*as_object(form.get("properties")).values(), *as_list(form.get("prefixItems"))]
        return any(self._is_marked(value, self.forms(part), depth + 1) for part in parts)

    def forms(self, schema: Any, seen: frozenset[str] = frozenset()) -> list[JsonObject]:
        """The schema itself and those that it refers to or chooses among, also where they refer in a circle."""
        own = as_object(schema)
        if not own:
            return []
        reference = ref_of(own) or ""
        others: list[Any] = [] if reference in seen else [resolve_pointer(reference, self._schema)]
        for keyword in ("anyOf", "oneOf", "allOf"):
            others.extend(as_list(own.get(keyword)))
        return [own, *(form for other in others for form in self.forms(other, seen | {reference}))]

    def _property(self, name: str, forms: list[JsonObject]) -> list[JsonObject]:
        found = [as_object(form.get("properties")).get(name, form.get("additionalProperties")) for form in forms]
        return [inner for part in found for inner in self.forms(part)]

    def _item(self, index: int, forms: list[JsonObject]) -> list[JsonObject]:
        found: list[JsonObject] = []
        for form in forms:
            fixed = as_list(form.get("prefixItems"))
            found.extend(self.forms(fixed[index] if index < len(fixed) else form.get("items")))
        return found


def _texts(value: Any) -> Iterator[str]:
    """The forms of a value in a text."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting.extend(cast(JsonObject, part).values())
        elif isinstance(part, list):
            waiting.extend(cast(list[Any], part))
        elif isinstance(part, str) and part:
            yield from (part, repr(part)[1:-1], json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1])
        elif part is not None and not isinstance(part, (str, bool)):
            yield hex(part) if isinstance(part, int) and part.bit_length() > 10_000 else str(part)


def _without(text: str, secret: str) -> str:
    """The text without a secret. A long one is also found where only its beginning is left."""
    head = secret[:_HEAD]
    path = text.find(head)
    while path >= 0:
        end = path + len(head)
        for expected in secret[_HEAD:]:
            if end >= len(text) or text[end] != expected:
                break
            end += 1
        text = text[:path] + MASK + text[end:]
        path = text.find(head, path + len(MASK))
    return text


MAX_CHARACTERS = 4096


def redacted_json(inputs: JsonObject, text: str, schema: JsonObject, names: Set[str], *, is_marked: bool) -> str:
    """The inputs as JSON without secret values, by their names or their looks, shortened where it is too long.

    `text` is the inputs as JSON. Most calls hold no secret, and keep it as it is. `is_marked` is what `marks_secrets`
    says of the schema.
    """
    if is_marked or _has_secret_name(inputs, names):
        text = json.dumps(_without_names(redact(inputs, schema), names), sort_keys=True, separators=(",", ":"))
    if len(text) <= MAX_CHARACTERS:
        return mask_tokens(text)
    # Masked before it is cut, so that no half of a key is left at the end.
    beginning = mask_tokens(text[:MAX_CHARACTERS])[: MAX_CHARACTERS // 2]
    return json.dumps({"(shortened)": beginning, "characters": len(text)})


def _has_secret_name(value: Any, names: Set[str]) -> bool:
    # Loops, since this is asked of every call, and any() with a generator takes twice the time.
    if isinstance(value, dict):
        for name, part in cast(JsonObject, value).items():
            if name in names or _is_secret(name):
                return True
            if isinstance(part, (dict, list)) and _has_secret_name(part, names):
                return True
    elif isinstance(value, list):
        for item in cast(list[Any], value):
            if _has_secret_name(item, names):
                return True
    return False


# The same few names come with every call.
_is_secret = functools.lru_cache(maxsize=4096)(is_secret_name)


def marks_secrets(schema: JsonObject) -> bool:
    """Whether a schema marks arguments as secret, whatever their names are."""
    text = json.dumps(schema)
    return '"writeOnly"' in text or '"password"' in text


def _without_names(value: Any, names: Set[str]) -> Any:
    if isinstance(value, dict):
        return {
            name: MASK if name in names else _without_names(part, names)
            for name, part in cast(JsonObject, value).items()
        }
    return [_without_names(item, names) for item in cast(list[Any], value)] if isinstance(value, list) else value


SECRET_NAME = (
    r"(passw[a-z]*|pwd|passphrases?|secrets?|token|(access|api|auth|bearer|csrf|id|oauth|refresh|session)_?tokens"
    r"|credentials?|authori[sz]ation|cookies?|(api|private|access|signing|encryption)_?keys?)(?=_|[0-9]|$)"
)
"""Names of secrets, as their words in lower case with `_` between. The patterns also go into the program."""
MEASURE_NAME = (
    r"(^|_)(age|bytes|class|columns?|count|counter|counts|expires|expiry|fields?|file|index|kinds?|len|length|limit"
    r"|max|min|n|names?|num|number|path|pattern|policy|regex|remaining|size|total|ttl|types?|url|used)(_|$)"
)
"""Names that are about a secret, and not it: `cookie_count`, `max_tokens`, `token_type`."""
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_SHOWN = re.compile(r"""([A-Za-z_][\w-]*)(["']?\s*(?:=>|[:=])\s*)("(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)""")


def names_secret(name: str) -> bool:
    """Whether a program's own name, of a variable, a key or an attribute, says that its value is a secret."""
    words = _WORDS.sub("_", name).lower()
    return re.search(SECRET_NAME, words) is not None and re.search(MEASURE_NAME, words) is None


def mask_shown(text: str) -> str:
    """The text of a value, such as `{user: "ann", password: "x"}`, with the texts that stand under names of secrets."""
    return _SHOWN.sub(lambda found: found[1] + found[2] + MASK if names_secret(found[1]) else found[0], text)
