"""OpenAPI documents: read from a file, an address or a value, with references into the same document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast
from urllib.parse import urljoin, urlsplit

from trysquare.core.errors import ConfigurationError
from trysquare.core.json import JsonObject, as_list, as_object, ref_of, resolve_pointer
from trysquare.core.text import truncate
from trysquare.net.http import download

Spec: TypeAlias = str | Path | Mapping[str, Any]
"""A file, an address, or the document itself."""
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
MAX_BYTES = 64_000_000
_MAX_NODES = 5_000_000
_MAX_DEPTH = 500
_MAX_HOPS = 16
_SECONDS = 30.0
_VERSIONS = ("3.0", "3.1", "3.2")


class Unusable(Exception):
    """A part of a document cannot be used, and why: its operation is refused, the others stay."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Document:
    """A checked OpenAPI document."""

    root: JsonObject
    where: str
    """The file or address, as messages name it."""
    address: str | None = None
    """The address from which it was read, if it was."""

    @property
    def is_draft4(self) -> bool:
        """Whether its schemas have the words of OpenAPI 3.0 (`nullable`, boolean `exclusiveMinimum`)."""
        return str(self.root["openapi"]).startswith("3.0")

    @property
    def title(self) -> str:
        return str(as_object(self.root.get("info")).get("title") or "API").strip() or "API"

    @property
    def version(self) -> str | None:
        found = as_object(self.root.get("info")).get("version")
        return None if found is None else str(found)

    def resolved(self, value: Any) -> JsonObject:
        """The object that a value is or refers to. Raises `Unusable` for a reference that leads nowhere."""
        found = as_object(value)
        for _ in range(_MAX_HOPS):
            reference = ref_of(found)
            if reference is None:
                return found
            siblings = {key: part for key, part in found.items() if key in ("description", "summary")}
            found = {**as_object(self.target(reference)), **siblings}
        raise Unusable(f"the reference `{truncate(ref_of(found) or '', 100)}` leads to itself")

    def target(self, reference: str) -> Any:
        """What a reference leads to, in this document only: nothing is fetched."""
        if not reference.startswith("#"):
            raise Unusable(
                f"`{truncate(reference, 100)}` refers to another document; bundle the documents into one file first"
            )
        found = resolve_pointer(reference, self.root)
        if found is None:
            raise Unusable(f"the reference `{truncate(reference, 100)}` leads nowhere")
        return found

    def operations(self) -> Iterator[tuple[str, str, JsonObject, JsonObject]]:
        """Path, method, the operation and the path item that holds it."""
        for path, given in as_object(self.root.get("paths")).items():
            try:
                item = self.resolved(given)
            except Unusable:
                item = as_object(given)
            for method in METHODS:
                if isinstance(operation := item.get(method), dict):
                    yield path, method, cast(JsonObject, operation), item


def read_document(spec: Spec) -> Document:
    """Read and check a document. Raises `ConfigurationError`. Blocks, so it belongs in a thread on an event loop."""
    if isinstance(spec, Mapping):
        return _checked(dict(spec), "the OpenAPI document", None)
    text = str(spec)
    if text.startswith(("http://", "https://")):
        try:
            found = download(text, timeout=_SECONDS, limit=MAX_BYTES)
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"the OpenAPI document cannot be read: {error}.", where=text, hint="Check the address, or use a file."
            ) from None
        return _checked(parse_text(found.body, text), text, found.url)
    path = Path(text).expanduser()
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigurationError(f"the document has more than {MAX_BYTES:,} bytes.", where=text)
        body = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"the OpenAPI document cannot be read: {error.strerror or error}.", where=text, hint="Check the path."
        ) from None
    return _checked(parse_text(body, text), text, None)


def parse_text(body: bytes, where: str) -> Any:
    """The value of a JSON or YAML text."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigurationError("the document is not UTF-8 text.", where=where) from None
    try:
        if text.lstrip().startswith("{"):
            return json.loads(text)
    except RecursionError:
        raise ConfigurationError("the document is nested too deeply.", where=where) from None
    except ValueError as error:
        # Flow-style YAML begins with a brace as well.
        json_error = str(error)
    else:
        json_error = ""
    return _parse_yaml(text, where, json_error)


def _parse_yaml(text: str, where: str, json_error: str) -> Any:
    try:
        import yaml
    except ImportError:
        problem = f"it is not JSON ({json_error})." if json_error else "reading YAML needs another package."
        raise ConfigurationError(problem, where=where, hint="Install it: pip install 'trysquare[openapi]'.") from None
    try:
        return yaml.load(text, _loader(yaml))
    except RecursionError:
        raise ConfigurationError("the document is nested too deeply.", where=where) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" at line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "invalid YAML"
        # Of a file that begins like JSON, the JSON reader's words fit better.
        raise ConfigurationError(f"{json_error or f'{problem}{line}'}.", where=where) from None
    except ValueError as error:
        raise ConfigurationError(f"{error}.", where=where) from None


def _loader(yaml: Any) -> Any:
    """A safe loader of what JSON can hold: dates stay text."""
    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    resolvers = {
        first: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:timestamp"]
        for first, known in base.yaml_implicit_resolvers.items()
    }
    return type("_JsonLoader", (base,), {"yaml_implicit_resolvers": resolvers})


def _checked(root: Any, where: str, address: str | None) -> Document:
    if not isinstance(root, dict):
        raise ConfigurationError("an OpenAPI document is an object.", where=where)
    found = cast(JsonObject, _text_keys(root, where))
    version = found.get("openapi")
    if version is None and "swagger" in found:
        raise ConfigurationError(
            f"this is Swagger {found['swagger']}, not OpenAPI 3.", where=where,
            hint="Convert it first, for example with `npx swagger2openapi`.",
        )  # fmt: skip
    if version is None or not str(version).startswith(_VERSIONS):
        known = "it has no key `openapi`" if version is None else f"its version is {truncate(str(version), 40)}"
        raise ConfigurationError(
            f"this is not an OpenAPI document of version 3.0 or later: {known}.", where=where,
            hint="Name the file that begins with `openapi: 3.…`.",
        )  # fmt: skip
    if not isinstance(found.get("paths"), dict):
        raise ConfigurationError("the document has no `paths`.", where=where)
    return Document(root={**found, "openapi": str(version)}, where=where, address=address)


def _text_keys(value: Any, where: str) -> Any:
    """The value with text as keys, as JSON has them: YAML reads `200:` as a number. Shared parts stay shared."""
    known: dict[int, Any] = {}
    count = 0

    def visit(part: Any, depth: int) -> Any:
        nonlocal count
        if not isinstance(part, (dict, list)):
            return part
        found = known.get(id(cast(object, part)))
        if found is not None:
            return found
        count += 1
        if count > _MAX_NODES or depth > _MAX_DEPTH:
            raise ConfigurationError("the document is too large or nested too deeply.", where=where)
        if isinstance(part, list):
            items: list[Any] = []
            known[id(cast(object, part))] = items
            items.extend(visit(each, depth + 1) for each in cast(list[Any], part))
            return items
        made: JsonObject = {}
        known[id(cast(object, part))] = made
        for key, each in cast(dict[Any, Any], part).items():
            made[_key(key)] = visit(each, depth + 1)
        return made

    return visit(value, 0)


def _key(key: Any) -> str:
    if isinstance(key, bool):
        # `on`, `off`, `yes` and `no` as keys.
        return "true" if key else "false"
    return "null" if key is None else str(key)


def base_address(document: Document, servers: Any) -> str | None:
    """The first absolute address of a `servers` list, with the defaults of its variables; None if there is none."""
    for each in as_list(servers):
        server = as_object(each)
        url = server.get("url")
        if not isinstance(url, str):
            continue
        for name, variable in as_object(server.get("variables")).items():
            url = url.replace("{" + name + "}", str(as_object(variable).get("default", "")))
        if document.address is not None:
            url = urljoin(document.address, url)
        if urlsplit(url).scheme in ("http", "https") and urlsplit(url).netloc and "{" not in url:
            return url
    return None
