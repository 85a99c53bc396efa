"""Operations of an OpenAPI document as tools: names, arguments, where each argument goes, and what is chosen."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from trysquare.core.json import JsonObject, as_list, as_object, properties_of
from trysquare.core.text import truncate
from trysquare.openapi.document import Document, Unusable, base_address
from trysquare.openapi.schemas import FREE, SchemaReader, exact_schema, listed_schema, with_definitions

Location: TypeAlias = Literal["path", "query", "header", "cookie"]
BodyKind: TypeAlias = Literal["json", "form", "multipart", "text", "bytes"]
MAX_NAME = 56
"""Characters of a tool's name: clients put the server's before it, within 64."""
_LOCATIONS: tuple[Location, ...] = ("path", "query", "header", "cookie")
_STYLES = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
# The transport and the settings have these; a model must not.
_OWN_HEADERS = frozenset({"accept", "content-type", "authorization", "host", "content-length", "cookie"})
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_READING = frozenset({"get", "head", "options", "query"})
_REPEATABLE = _READING | {"put", "delete"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """A parameter outside of the body."""

    argument: str
    """Its name among the arguments."""
    name: str
    location: Location
    style: str
    explode: bool
    is_json: bool = False
    """Whether its value is sent as JSON text."""
    allows_reserved: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """The body of a request."""

    kind: BodyKind
    media_type: str
    fields: Mapping[str, str]
    """Arguments that are its fields, and their names there; empty where one argument is the whole of it."""
    argument: str = ""
    """The argument that is the whole body."""
    is_required: bool = False
    """Whether there is a body even where no argument is given."""
    required: frozenset[str] = frozenset()
    """Arguments without which no body is complete."""
    binary: frozenset[str] = frozenset()
    """Fields whose text is Base64."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One method of one path."""

    name: str
    method: str
    path: str
    title: str | None
    description: str
    tags: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    body: Body | None
    exact: JsonObject
    """The schema that validation holds."""
    listed: JsonObject
    """The schema that clients see."""
    base: str | None
    """The address of its server, where the document names one."""
    security: tuple[Mapping[str, tuple[str, ...]], ...]
    """The ways to sign in, each with all the schemes that it takes."""
    deprecated: bool = False

    @property
    def reads(self) -> bool:
        return self.method in _READING

    @property
    def is_repeatable(self) -> bool:
        return self.method in _REPEATABLE

    @property
    def route(self) -> str:
        return f"{self.method.upper()} {self.path}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """An operation that cannot be a tool, and why."""

    route: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Which operations become tools."""

    tags: frozenset[str] = frozenset()
    """With one of these tags; empty for any."""
    methods: frozenset[str] = frozenset()
    """With one of these methods, in lower case; empty for any."""
    paths: re.Pattern[str] | None = None
    """With a path that this pattern is found in."""
    operation: Callable[[str, str, JsonObject], bool] | None = None
    """For which this answers true: method, path and the operation as the document has it."""

    def takes(self, method: str, path: str, operation: JsonObject) -> bool:
        if self.methods and method not in self.methods:
            return False
        if self.tags and not self.tags & {str(tag) for tag in as_list(operation.get("tags"))}:
            return False
        if self.paths is not None and self.paths.search(path) is None:
            return False
        return self.operation is None or self.operation(method, path, operation)


def read_operations(document: Document, selection: Selection) -> tuple[list[Operation], list[Refusal]]:
    """The operations that become tools, and those that cannot."""
    found: list[Operation] = []
    refused: list[Refusal] = []
    for path, method, operation, item in document.operations():
        if not selection.takes(method, path, operation):
            continue
        try:
            found.append(_read(document, path, method, operation, item))
        except Unusable as error:
            refused.append(Refusal(route=f"{method.upper()} {path}", reason=str(error)))
    return list(_named_apart(found)), refused


def _read(document: Document, path: str, method: str, operation: JsonObject, item: JsonObject) -> Operation:
    reader = SchemaReader(document)
    given = _parameters(document, path, operation, item)
    names = _argument_names(given)
    properties: dict[str, JsonObject] = {}
    required: list[str] = []
    parameters: list[Parameter] = []
    for each, name in zip(given, names, strict=True):
        schema, is_json = _parameter_schema(document, reader, each)
        properties[name] = schema
        if each.get("required") is True or each["in"] == "path":
            required.append(name)
        parameters.append(_parameter(each, name, is_json=is_json))
    body = _read_body(document, reader, operation, properties, required)
    whole: JsonObject = {
        "type": "object", "properties": properties, "required": required, "additionalProperties": False
    }  # fmt: skip
    if body is not None and not body.is_required and body.required:
        whole["dependentRequired"] = {argument: sorted(body.required - {argument}) for argument in body.fields}
    exact = with_definitions(
        exact_schema(whole), {name: exact_schema(each) for name, each in reader.definitions.items()}
    )
    listed = with_definitions(
        listed_schema(whole), {name: listed_schema(each) for name, each in reader.definitions.items()}
    )
    servers = operation.get("servers") or item.get("servers") or document.root.get("servers") or [{"url": "/"}]
    return Operation(
        name=_name_of(operation, method, path),
        method=method,
        path=path,
        title=_title(operation),
        description=_description(operation, method, path),
        tags=tuple(str(tag) for tag in as_list(operation.get("tags"))),
        parameters=tuple(parameters),
        body=body,
        exact=exact,
        listed=listed,
        base=base_address(document, servers),
        security=_security(document, operation),
        deprecated=operation.get("deprecated") is True,
    )


def _parameters(document: Document, path: str, operation: JsonObject, item: JsonObject) -> list[JsonObject]:
    """The parameters of the path and the operation; the operation's win. Those of a template without one are added."""
    found: dict[tuple[str, str], JsonObject] = {}
    for each in [*as_list(item.get("parameters")), *as_list(operation.get("parameters"))]:
        parameter = document.resolved(each)
        name, location = parameter.get("name"), parameter.get("in")
        if not isinstance(name, str) or location not in _LOCATIONS:
            if location == "querystring":
                raise Unusable("it has a parameter that is the whole query string")
            continue
        if location == "header" and name.lower() in _OWN_HEADERS:
            continue
        found[(name, str(location))] = parameter
    for name in re.findall(r"\{([^{}]+)\}", path):
        found.setdefault((name, "path"), {"name": name, "in": "path", "schema": {"type": "string"}})
    templated = set(re.findall(r"\{([^{}]+)\}", path))
    ordered = sorted(found.values(), key=lambda each: _LOCATIONS.index(each["in"]))
    return [each for each in ordered if each["in"] != "path" or each["name"] in templated]


def _argument_names(parameters: Iterable[JsonObject]) -> list[str]:
    """A name for each that a model can write; of two alike, the later says where it goes."""
    taken: list[str] = []
    for each in parameters:
        taken.append(_free_name(argument_name(str(each["name"])), str(each["in"]), taken))
    return taken


def argument_name(name: str) -> str:
    """A name of letters, digits and `_` that model APIs accept for an argument."""
    safe = _UNSAFE.sub("_", name.replace("[]", "")).replace("-", "_").strip("_") or "value"
    return safe[:64]


def _free_name(name: str, prefix: str, taken: Collection[str]) -> str:
    made, number = name, 2
    if made in taken:
        made = f"{prefix}_{name}"[:64]
    while made in taken:
        made, number = f"{name[:60]}_{number}", number + 1
    return made


def _parameter_schema(document: Document, reader: SchemaReader, parameter: JsonObject) -> tuple[JsonObject, bool]:
    content = as_object(parameter.get("content"))
    given: Any = parameter.get("schema", {})
    is_json = False
    if content:
        given = as_object(next(iter(content.values()))).get("schema", {})
        is_json = True
    schema = dict(reader.read(given))
    text = parameter.get("description")
    if isinstance(text, str) and text.strip():
        schema["description"] = truncate(" ".join(text.split()), 400)
    if not schema.keys() - {"description"}:
        schema["type"] = "string"
    return schema, is_json


def _parameter(given: JsonObject, argument: str, *, is_json: bool) -> Parameter:
    location: Location = given["in"]
    style = given.get("style")
    chosen = style if isinstance(style, str) else _STYLES[location]
    explode = given.get("explode")
    return Parameter(
        argument=argument,
        name=str(given["name"]),
        location=location,
        style=chosen,
        explode=explode if isinstance(explode, bool) else chosen in ("form", "cookie"),
        is_json=is_json,
        allows_reserved=given.get("allowReserved") is True,
    )


def _read_body(
    document: Document,
    reader: SchemaReader,
    operation: JsonObject,
    properties: dict[str, JsonObject],
    required: list[str],
) -> Body | None:
    """The body of an operation; its arguments are added to `properties` and `required`."""
    given = document.resolved(operation.get("requestBody"))
    content = as_object(given.get("content"))
    if not content:
        return None
    media_type, kind = _media_type(content)
    media = as_object(content[media_type])
    is_required = given.get("required") is True
    if kind in ("text", "bytes"):
        schema: JsonObject = {"type": "string", "description": "The body"}
        if kind == "bytes":
            schema["format"] = "byte"
        return _whole_body(kind, media_type, schema, given, properties, required, is_required)
    schema = reader.read(media.get("schema", {}))
    resolved = _opened(schema, reader.definitions)
    fields = properties_of(resolved)
    if not fields or resolved.get("type") not in ("object", None) or FREE in resolved or "anyOf" in resolved:
        return _whole_body(kind, media_type, schema, given, properties, required, is_required)
    names: dict[str, str] = {}
    wanted = set(as_list(resolved.get("required")))
    for name, part in fields.items():
        argument = _free_name(argument_name(name), "body", properties)
        names[argument], properties[argument] = name, part
        if is_required and name in wanted:
            required.append(argument)
    binary = frozenset(name for name, part in fields.items() if part.get("format") in ("binary", "byte"))
    return Body(
        kind=kind,
        media_type=media_type,
        fields=names,
        binary=binary if kind == "multipart" else frozenset(),
        is_required=is_required,
        required=frozenset(argument for argument, name in names.items() if name in wanted),
    )


def _opened(schema: JsonObject, definitions: Mapping[str, JsonObject]) -> JsonObject:
    reference = schema.get("$ref")
    return definitions.get(str(reference).rpartition("/")[2], schema) if reference is not None else schema


def _whole_body(
    kind: BodyKind, media_type: str, schema: JsonObject, given: JsonObject, properties: dict[str, JsonObject],
    required: list[str], is_required: bool,
) -> Body:  # fmt: skip
    argument = _free_name("body", "request", properties)
    text = given.get("description")
    if isinstance(text, str) and text.strip() and "description" not in schema:
        schema = {**schema, "description": truncate(" ".join(text.split()), 400)}
    properties[argument] = schema
    if is_required:
        required.append(argument)
    return Body(kind=kind, media_type=media_type, fields={}, argument=argument)


def _media_type(content: JsonObject) -> tuple[str, BodyKind]:
    """The media type to send: JSON where it is taken, then forms, then text and bytes."""
    kinds: list[tuple[int, str, BodyKind]] = []
    for given in content:
        plain = given.partition(";")[0].strip().lower()
        if plain == "application/json" or plain.endswith("+json") or plain in ("*/*", "application/*"):
            kinds.append((0 if plain == "application/json" else 1, given, "json"))
        elif plain == "application/x-www-form-urlencoded":
            kinds.append((2, given, "form"))
        elif plain == "multipart/form-data":
            kinds.append((3, given, "multipart"))
        elif plain.startswith("text/") or plain.endswith(("+xml", "/xml", "yaml")):
            kinds.append((4, given, "text"))
        else:
            kinds.append((5, given, "bytes"))
    _, media_type, kind = min(kinds, key=lambda each: each[0])
    return media_type, kind


def _name_of(operation: JsonObject, method: str, path: str) -> str:
    """A name that a model can use: the operation's own, without what frameworks add, else method and path."""
    given = operation.get("operationId")
    by_path = _slug(f"{method}_{path.replace('{', 'by_').replace('}', '')}")
    if not isinstance(given, str) or not given.strip("/ ._-"):
        return _fitted(by_path)
    name = _slug(given)
    # FastAPI and others add the path and the method to the function's name.
    added = re.sub(r"\W", "_", path) + f"_{method}"
    bare = re.sub(r"\W", "_", given)
    if bare.endswith(added) and len(bare) > len(added):
        name = _slug(bare.removesuffix(added)) or name
    return _fitted(name or by_path)


def _slug(text: str) -> str:
    words = _CAMEL.sub("_", _UNSAFE.sub("_", text).replace("-", "_"))
    return re.sub(r"_+", "_", words).strip("_").lower()


def _fitted(name: str) -> str:
    """The name within the limit; a cut one stays apart from others by a digest."""
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:6]
    return f"{name[: MAX_NAME - 7].rstrip('_')}_{digest}"


def _named_apart(operations: Iterable[Operation]) -> Iterator[Operation]:
    """Each with a name of its own; of two alike the later is named by method and path, then by a number."""
    taken: set[str] = set()
    for each in operations:
        name, number = each.name, 2
        if name in taken:
            name = _fitted(_slug(f"{each.method}_{each.path.replace('{', 'by_').replace('}', '')}"))
        while name in taken:
            name, number = f"{each.name[: MAX_NAME - 4]}_{number}", number + 1
        taken.add(name)
        yield replace(each, name=name)


def _title(operation: JsonObject) -> str | None:
    summary = operation.get("summary")
    return truncate(" ".join(summary.split()), 120) if isinstance(summary, str) and summary.strip() else None


def _description(operation: JsonObject, method: str, path: str) -> str:
    """Summary and description, each once, and the route."""
    parts: list[str] = []
    for key in ("summary", "description"):
        text = operation.get(key)
        if isinstance(text, str) and text.strip() and text.strip() not in parts:
            parts.append(text.strip())
    if len(parts) == 2 and parts[1].startswith(parts[0].rstrip(".")):
        parts = parts[1:]
    text = "\n\n".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts)
    return text or f"{method.upper()} {path}"


def _security(document: Document, operation: JsonObject) -> tuple[Mapping[str, tuple[str, ...]], ...]:
    given = operation["security"] if "security" in operation else document.root.get("security")
    return tuple(
        {name: tuple(str(scope) for scope in as_list(scopes)) for name, scopes in as_object(each).items()}
        for each in as_list(given)
    )
