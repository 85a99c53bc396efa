"""A server for any OpenAPI document: it checks each request strictly against the document, and answers by its schemas.

It shares nothing with what it tests: styles are decoded here by the text of the specification, values are checked by
`jsonschema`.
"""

from __future__ import annotations

import base64
import copy
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit

from tests.content.web_server import Answered, Asked, answer_json
from tests.openapi.values import NoValue, Values, fits, resolved, validator_of

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_STYLES = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_HEADERS = frozenset({"accept", "content-type", "authorization", "host", "content-length", "cookie", "user-agent"})


@dataclass(kw_only=True)
class Seen:
    """One request as the server read it."""

    route: str
    problems: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    """Every reading of each parameter and of the body."""
    answer: Any = None
    """The value of the answer, where it is JSON."""
    is_json: bool = False


class MockApi:
    """The API of a document, below a path of its own."""

    def __init__(self, document: Mapping[str, Any], *, prefix: str = "", seed: int = 0) -> None:
        self.document = _as_json_schema(copy.deepcopy(dict(document)))
        self.seen: list[Seen] = []
        self._prefix, self._values = prefix, Values(self.document, seed)

    def __call__(self, asked: Asked) -> Answered:
        found = self._route(asked)
        if found is None:
            self.seen.append(Seen(route=f"{asked.method} {asked.target}", problems=["no such operation"]))
            return answer_json({"error": "no such operation"}, 404)
        path, item, operation, texts = found
        seen = Seen(route=f"{asked.method} {path}")
        self.seen.append(seen)
        self._check_parameters(seen, asked, item, operation, texts)
        self._check_body(seen, asked, operation)
        self._check_security(seen, asked, operation)
        if seen.problems:
            return answer_json({"errors": seen.problems}, 422)
        return self._answer(seen, operation)

    def _object(self, value: Any) -> Any:
        while isinstance(value, dict) and "$ref" in value:
            value = resolved(self.document, value["$ref"])
        return value if isinstance(value, dict) else {}

    def _route(self, asked: Asked) -> tuple[str, Any, Any, dict[str, str]] | None:
        """The operation of a request, the most concrete of those that match, and the texts of its path."""
        target = urlsplit(asked.target).path.removeprefix(self._prefix)
        matching: list[tuple[int, str, Any, Any, dict[str, str]]] = []
        for path, given in self.document["paths"].items():
            item = self._object(given)
            if asked.method.lower() not in item:
                continue
            names = re.findall(r"\{([^{}]+)\}", path)
            pieces = [re.escape(piece) for piece in re.split(r"\{[^{}]+\}", path)]
            match = re.fullmatch("([^/]*?)".join(pieces), target)
            if match is not None:
                texts = dict(zip(names, match.groups(), strict=True))
                matching.append((len(names), path, item, item[asked.method.lower()], texts))
        return min(matching, key=lambda each: each[0])[1:] if matching else None

    def _parameters(self, item: Any, operation: Any, path: str) -> list[Any]:
        found: dict[tuple[str, str], Any] = {}
        for each in [*item.get("parameters", ()), *operation.get("parameters", ())]:
            parameter = self._object(each)
            found[parameter["name"], parameter["in"]] = parameter
        return [each for each in found.values() if each["in"] != "path" or "{" + each["name"] + "}" in path]

    def _check_parameters(self, seen: Seen, asked: Asked, item: Any, operation: Any, texts: dict[str, str]) -> None:
        query = [part for part in urlsplit(asked.target).query.split("&") if part]
        cookies = [part.strip() for part in asked.headers.get("cookie", "").split(";") if part.strip()]
        known_query, known_cookies = self._keys("query"), self._keys("cookie")
        for each in self._parameters(item, operation, seen.route):
            name, place = each["name"], each["in"]
            if place == "header" and name.lower() in _HEADERS:
                continue
            schema = each.get("schema", {})
            is_json = "content" in each
            if is_json:
                schema = next(iter(each["content"].values())).get("schema", {})
            style = each.get("style", _STYLES[place])
            explode = each.get("explode", style in ("form", "cookie"))
            if place == "path":
                readings, used = _path_readings(texts[name], name, style, explode), True
            elif place == "header":
                text = asked.headers.get(name.lower())
                readings, used = (_separated(text, ",", explode), True) if text is not None else (iter(()), False)
            else:
                parts = query if place == "query" else cookies
                readings, taken = _named_readings(parts, name, style, explode, self._properties(schema))
                used = bool(taken)
                (known_query if place == "query" else known_cookies).update(taken)
            self._check_value(seen, each, schema, list(readings), used=used, is_json=is_json)
        seen.problems += [
            f"unknown query parameter {part}"
            for part in query
            if part not in known_query and unquote(part.split("=")[0]) not in known_query
        ]
        seen.problems += [
            f"unknown cookie {part}"
            for part in cookies
            if part not in known_cookies and part.split("=")[0] not in known_cookies
        ]

    def _keys(self, place: str) -> set[str]:
        schemes = self.document.get("components", {}).get("securitySchemes", {})
        found = [self._object(each) for each in schemes.values()]
        return {each["name"] for each in found if each.get("type") == "apiKey" and each.get("in") == place}

    def _properties(self, schema: Any) -> set[str] | None:
        """Names that an exploded object of this schema takes; None for any, empty where it is no object."""
        schema = self._object(schema)
        parts = [schema, *(self._object(each) for key in ("allOf", "anyOf", "oneOf") for each in schema.get(key, ()))]
        names = {name for each in parts for name in each.get("properties", {})}
        is_object = any("object" in str(each.get("type")) for each in parts)
        return None if is_object and not names else names

    def _check_value(
        self, seen: Seen, parameter: Any, schema: Any, readings: list[Any], *, used: bool, is_json: bool
    ) -> None:
        what = f"{parameter['in']} parameter {parameter['name']}"
        if not used:
            if parameter.get("required") or parameter["in"] == "path":
                seen.problems.append(f"{what} is missing")
            return
        validator = validator_of(self.document, schema)
        if is_json:
            values = [_json(each) for each in readings if isinstance(each, str)]
        else:
            values = [value for each in readings for value in _typed(each)]
        fitting = [value for value in values if fits(validator, value)]
        if not fitting:
            seen.problems.append(f"{what} is {readings!r}, which is not of {str(schema)[:300]}")
        seen.values += fitting

    def _check_body(self, seen: Seen, asked: Asked, operation: Any) -> None:
        body = self._object(operation.get("requestBody"))
        content = body.get("content", {})
        if not asked.body:
            if body.get("required") and content:
                seen.problems.append("the body is missing")
            return
        if not content:
            seen.problems.append("the operation has no body")
            return
        sent = asked.headers.get("content-type", "")
        plain = sent.partition(";")[0].strip().lower()
        found = [each for each in content if each.partition(";")[0].strip().lower() in (plain, "*/*", "application/*")]
        if not found:
            seen.problems.append(f"the media type {plain} is none of {list(content)}")
            return
        schema = self._object(content[found[0]].get("schema", {}))
        if plain.endswith("json"):
            values = [json.loads(asked.body)]
        elif plain == "application/x-www-form-urlencoded":
            values = self._form_values(
                schema, parse_qsl(asked.body.decode(), keep_blank_values=True, strict_parsing=True)
            )
        elif plain == "multipart/form-data":
            values = self._form_values(schema, _parts(sent, asked.body))
        else:
            seen.values.append(base64.b64encode(asked.body).decode())
            seen.values.append(asked.body.decode("utf-8", "replace"))
            return
        validator = validator_of(self.document, schema)
        fitting = [value for value in values if fits(validator, value)]
        if not fitting:
            first = next(iter(validator.iter_errors(values[0])), None) if values else None
            seen.problems.append(f"the body {asked.body[:300]!r} is wrong: {str(first)[:300]}")
        seen.values += fitting
        seen.values += [part for value in fitting if isinstance(value, dict) for part in value.values()]

    def _form_values(self, schema: Any, pairs: list[tuple[str, Any]]) -> list[Any]:
        """Readings of a form as an object: names with brackets are deeper ones."""
        made: dict[str, Any] = {}
        properties = self._all_properties(schema, 0)
        for name, text in pairs:
            head, *inner = re.findall(r"[^\[\]]+", name)
            key, part = (
                (name, self._object(properties[name]))
                if name in properties
                else (head, self._object(properties.get(head)))
            )
            if inner and key == head:
                _put(made.setdefault(head, {}), inner, text)
            elif "array" in str(part.get("type")) or key in made:
                made.setdefault(key, []).append(text) if isinstance(made.get(key, []), list) else made.update(
                    {key: [made[key], text]}
                )
            else:
                made[key] = text
        known = {name: _best(self.document, properties.get(name, {}), value) for name, value in made.items()}
        return [known]

    def _all_properties(self, schema: Any, depth: int) -> dict[str, Any]:
        schema = self._object(schema)
        found = dict(schema.get("properties", {}))
        for key in ("allOf", "anyOf", "oneOf"):
            for each in schema.get(key, ()) if depth < 5 else ():
                found = {**self._all_properties(each, depth + 1), **found}
        return found

    def _check_security(self, seen: Seen, asked: Asked, operation: Any) -> None:
        ways = operation.get("security", self.document.get("security", []))
        if ways and not any(all(self._signed(asked, name) for name in way) for way in ways):
            seen.problems.append(f"not signed in by one of {ways}")

    def _signed(self, asked: Asked, name: str) -> bool:
        scheme = self._object(self.document.get("components", {}).get("securitySchemes", {}).get(name))
        if scheme.get("type") == "apiKey":
            cookies = [part.strip().partition("=") for part in asked.headers.get("cookie", "").split(";")]
            held: Mapping[str, Mapping[str, str]] = {
                "query": dict(parse_qsl(urlsplit(asked.target).query)),
                "header": asked.headers,
                "cookie": {name: value for name, _, value in cookies},
            }
            key = scheme["name"].lower() if scheme["in"] == "header" else scheme["name"]
            return unquote(held[scheme["in"]].get(key, "")) == f"secret {name}"
        given = asked.headers.get("authorization", "")
        if scheme.get("type") == "http" and scheme.get("scheme", "").lower() == "basic":
            return given == "Basic " + base64.b64encode(f"secret {name}".encode()).decode()
        return given.lower() == f"bearer secret {name}".lower() or (
            scheme.get("type") == "http" and given.endswith(f"secret {name}")
        )

    def _answer(self, seen: Seen, operation: Any) -> Answered:
        responses = operation.get("responses", {})
        good = [status for status in responses if str(status).startswith("2")] or ["default"]
        status = int(good[0]) if str(good[0]).isdigit() else 200
        content = self._object(responses.get(good[0])).get("content", {})
        kind = next((each for each in content if "json" in each), None)
        if kind is None or status == 204 or seen.route.startswith("HEAD"):
            return Answered(status=status, headers={"Content-Type": "text/plain"})
        try:
            value = self._values.of(content[kind].get("schema", {}), fill=0.3)
        except NoValue:
            value = {"any": "value"}
        seen.answer, seen.is_json = value, True
        return Answered(status=status, body=json.dumps(value).encode(), headers={"Content-Type": kind})


def _as_json_schema(value: Any) -> Any:
    """The words of OpenAPI 3.0 as JSON Schema has them; what only answers have is not wanted in a request."""
    if isinstance(value, list):
        return [_as_json_schema(each) for each in value]
    if not isinstance(value, dict):
        return value
    made = {str(key): _as_json_schema(part) for key, part in value.items() if key not in ("example", "examples")}
    if isinstance(made.get("oneOf"), list):
        # Choices that are not closed overlap, so that no value would be one of them alone; servers take the first.
        made["anyOf"] = [*made.pop("oneOf"), *made.get("anyOf", ())]
    if made.pop("nullable", None) is True:
        _allow_null(made)
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(made.get(exclusive), bool) and made.pop(exclusive) and bound in made:
            made[exclusive] = made.pop(bound)
    if isinstance(made.get("properties"), dict) and isinstance(made.get("required"), list):
        answered = {
            name for name, part in made["properties"].items() if isinstance(part, dict) and part.get("readOnly")
        }
        made["required"] = [name for name in made["required"] if name not in answered]
    return made


def _allow_null(made: dict[str, Any]) -> None:
    if isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
    if isinstance(made.get("enum"), list) and None not in made["enum"]:
        made["enum"] = [*made["enum"], None]
    if isinstance(made.get("anyOf"), list):
        made["anyOf"] = [*made["anyOf"], {"type": "null"}]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _typed(value: Any) -> Iterator[Any]:
    """What a text, or each text in a list or an object, may stand for."""
    if isinstance(value, str):
        yield from _typed_text(value)
    elif isinstance(value, list):
        options = [list(_typed(each)) for each in value]
        for number in range(max(map(len, options), default=1)):
            yield [each[min(number, len(each) - 1)] for each in options]
    elif isinstance(value, dict):
        options = [list(_typed(each)) for each in value.values()]
        for chosen in itertools.islice(itertools.product(*options), 64):
            yield dict(zip(value, chosen, strict=True))
    yield value


def _typed_text(text: str) -> Iterator[Any]:
    if re.fullmatch(r"-?\d+", text):
        yield int(text)
    if re.fullmatch(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", text):
        yield float(text)
    yield from {"true": [True], "false": [False], "": [None]}.get(text, [])
    if text[:1] in ("{", "["):
        yield _json(text)


def _separated(text: str, comma: str, explode: bool, decode: Any = lambda text: text) -> Iterator[Any]:
    """Readings of a text with separators: a value, a list, an object."""
    yield decode(text)
    parts = text.split(comma) if text else []
    yield [decode(part) for part in parts]
    if explode and parts and all("=" in part for part in parts):
        yield {decode(part.partition("=")[0]): decode(part.partition("=")[2]) for part in parts}
    elif not explode and len(parts) % 2 == 0:
        yield {decode(parts[at]): decode(parts[at + 1]) for at in range(0, len(parts), 2)}


def _path_readings(text: str, name: str, style: str, explode: bool) -> Iterator[Any]:
    if style == "label":
        yield from (
            _separated(text.removeprefix("."), "." if explode else ",", explode, unquote)
            if text.startswith(".")
            else ()
        )
    elif style == "matrix":
        parts = [part.partition("=")[::2] for part in text.split(";")[1:]]
        if not explode and len(parts) == 1 and parts[0][0] == name:
            yield from _separated(parts[0][1], ",", False, unquote)
        elif explode:
            yield [unquote(value) for key, value in parts if key == name]
            yield {unquote(key): unquote(value) for key, value in parts}
            if len(parts) == 1:
                yield unquote(parts[0][1])
    else:
        yield from _separated(text, ",", explode, unquote)


def _named_readings(
    parts: list[str], name: str, style: str, explode: bool, properties: set[str] | None
) -> tuple[Iterator[Any], set[str]]:
    """Readings of a query or cookie parameter, and the parts that are its own."""
    own = [part for part in parts if unquote(part.partition("=")[0]) == name]
    if style == "deepObject":
        deep = [part for part in parts if unquote(part.partition("=")[0]).startswith(f"{name}[")]
        made: dict[str, Any] = {}
        for part in deep:
            key, _, text = part.partition("=")
            _put(made, re.findall(r"\[([^\]]*)\]", unquote(key)[len(name) :]), unquote(text))
        return iter([made, *([unquote(part.partition("=")[2]) for part in own])]), {*deep, *own}
    if explode:
        texts = [unquote(part.partition("=")[2]) for part in own]
        spread = [part for part in parts if properties is None or unquote(part.partition("=")[0]) in properties]
        readings: list[Any] = [texts, *texts[:1]] if texts else []
        if spread and not own:
            readings.append({unquote(part.partition("=")[0]): unquote(part.partition("=")[2]) for part in spread})
        return iter(readings), {*own, *(spread if not own else ())}
    comma = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}.get(style, ",")
    return (each for part in own[:1] for each in _separated(part.partition("=")[2], comma, False, unquote)), set(own)


def _put(made: Any, keys: list[str], text: Any) -> None:
    """Place a text at a path such as `a`, `b`, `` (the next item of a list)."""
    key, *rest = keys
    if not rest:
        if isinstance(made.get(key), list):
            made[key].append(text)
        elif key in made:
            made[key] = [made[key], text]
        else:
            made[key] = text
    elif rest == [""]:
        made.setdefault(key, []).append(text)
    else:
        _put(made.setdefault(key, {}), rest, text)


def _best(root: Mapping[str, Any], schema: Any, value: Any) -> Any:
    """The reading of a form's value that its schema takes."""
    validator = validator_of(root, schema)
    return next((each for each in _typed(value) if fits(validator, each)), value)


def _parts(content_type: str, body: bytes) -> list[tuple[str, Any]]:
    """The fields of a multipart form; files as Base64."""
    message = BytesParser(policy=HTTP).parsebytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body)
    found: list[tuple[str, Any]] = []
    for part in message.iter_parts():
        name = str(part.get_param("name", header="content-disposition"))
        content: Any = part.get_payload(decode=True)
        text = base64.b64encode(content).decode() if part.get_filename() is not None else content.decode()
        found.append((unquote_plus(name), _json(text) if part.get_content_type() == "application/json" else text))
    return found
