"""An OpenAPI document as a toolset: `from_openapi`, and `from_fastapi` for an application in this process."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast
from urllib.parse import urlsplit

from trysquare.core.content import Audio, Image
from trysquare.core.context import CallContext
from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_list, as_object, ref_of, resolve_pointer
from trysquare.core.lifespan import Lifespans
from trysquare.core.metadata import Consent, ToolMetadata
from trysquare.core.result import Result
from trysquare.core.schema.errors import unwrap_arguments
from trysquare.core.schema.repair import repair_arguments
from trysquare.core.schema.validator import InputValidator, input_validator
from trysquare.core.text import closest_names, truncate
from trysquare.core.tool import Tool
from trysquare.core.toolset import ServerInfo, StaticToolset
from trysquare.core.untrusted import quote_untrusted
from trysquare.net.http import error_message
from trysquare.openapi.client import AsgiApp, AsgiClient, Client, HttpClient, Response
from trysquare.openapi.document import METHODS, Document, Spec, read_document
from trysquare.openapi.operations import Operation, Refusal, Selection, read_operations
from trysquare.openapi.request import build_request
from trysquare.openapi.security import Credentials, SecretLookup

logger = logging.getLogger("trysquare.openapi")

_MAX_ERROR = 2_000
_IN_PROCESS = "http://localhost"
_TEXTS = ("text/", "application/xml", "application/yaml", "application/x-ndjson", "application/javascript")


class OpenApiToolset(StaticToolset):
    """The tools of an API; `refused` are the operations that cannot be tools, and why."""

    def __init__(
        self, tools: Iterable[Tool], *, refused: tuple[Refusal, ...], client: Client, info: ServerInfo
    ) -> None:
        lifespans = Lifespans(self)
        lifespans.add(_connections(client))
        super().__init__(tools, server_info=info, lifespans=lifespans)
        self.refused = refused


def from_openapi(
    spec: Spec,
    *,
    base_url: str | None = None,
    auth: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    tags: Iterable[str] = (),
    methods: Iterable[str] = (),
    paths: str | None = None,
    select: Callable[[str, str, JsonObject], bool] | None = None,
    rename: Mapping[str, str] | None = None,
    allow_hosts: Iterable[str] = (),
    consent: Iterable[str] = (),
    timeout: float = 60.0,
    secrets: SecretLookup | None = None,
) -> OpenApiToolset:
    """Every operation of an OpenAPI 3 document as a tool.

    `auth` has the secret of a security scheme by its name (`user:password` for a basic one); those that are missing
    are read by `secrets` under the name `OPENAPI_<SCHEME>`: from the environment, or from the keyring. `tags`,
    `methods`, `paths` (a regular expression) and `select(method, path, operation)` choose operations; `rename` gives
    tools other names. A private address is called only if it is that of `base_url` or of the document, or stands in
    `allow_hosts`. `consent` names methods that ask a human first. Raises `ConfigurationError`.
    """
    document = read_document(spec)
    hosts = frozenset(each.lower() for each in allow_hosts)
    if base_url is not None:
        _check_address(base_url)
    # What the user named may be private; what a document names may not.
    hosts |= {_host(named) for named in (base_url, document.address) if named is not None}
    client = HttpClient(allow_hosts=hosts, timeout=timeout)
    api = Api(
        document=document, client=client, base_url=base_url, headers=dict(headers or {}),
        credentials=_credentials(document, auth or {}, secrets),
    )  # fmt: skip
    selection = Selection(
        tags=frozenset(tags), methods=_checked_methods(methods), paths=_pattern(paths), operation=select
    )
    return _toolset(api, selection, rename or {}, frozenset(each.lower() for each in consent))


def from_fastapi(
    app: Any,
    *,
    auth: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    tags: Iterable[str] = (),
    methods: Iterable[str] = (),
    paths: str | None = None,
    select: Callable[[str, str, JsonObject], bool] | None = None,
    rename: Mapping[str, str] | None = None,
    consent: Iterable[str] = (),
    secrets: SecretLookup | None = None,
) -> OpenApiToolset:
    """Every operation of a FastAPI application as a tool, called in this process; its lifespan runs with the server.

    Any ASGI application with a method `openapi()` that returns its document will do.
    """
    describe = getattr(app, "openapi", None)
    if not callable(describe) or not callable(app):
        raise ConfigurationError(
            f"`{type(app).__name__}` is not an application with a method `openapi()`.",
            hint="Give a FastAPI application; for others use `from_openapi` with their document.",
        )
    document = read_document(cast(Mapping[str, Any], describe()))
    api = Api(
        document=document, client=AsgiClient(cast(AsgiApp, app), root_path=str(getattr(app, "root_path", "") or "")),
        base_url=_IN_PROCESS, headers=dict(headers or {}), credentials=_credentials(document, auth or {}, secrets),
    )  # fmt: skip
    selection = Selection(
        tags=frozenset(tags), methods=_checked_methods(methods), paths=_pattern(paths), operation=select
    )
    return _toolset(api, selection, rename or {}, frozenset(each.lower() for each in consent))


def _connections(client: Client) -> Callable[[], Any]:
    @asynccontextmanager
    async def connections() -> AsyncGenerator[None]:
        async with client.open():
            yield

    return connections


def _host(url: str) -> str:
    """The host of an address with its port, as `FetchConfig` has it."""
    parts = urlsplit(url)
    return f"{(parts.hostname or '').lower()}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def _check_address(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(
            f"`{truncate(url, 100)}` is not the address of an API.", hint="Write it as `https://HOST/PATH`."
        )


def _checked_methods(methods: Iterable[str]) -> frozenset[str]:
    found = frozenset(each.lower() for each in methods)
    if unknown := sorted(found - set(METHODS)):
        raise ConfigurationError(f"`{unknown[0]}` is not an HTTP method.", hint=f"Known: {', '.join(METHODS)}.")
    return found


def _pattern(paths: str | None) -> re.Pattern[str] | None:
    try:
        return None if paths is None else re.compile(paths)
    except re.error as error:
        raise ConfigurationError(f"`paths` is not a regular expression: {error}.") from None


def _credentials(document: Document, auth: Mapping[str, str], secrets: SecretLookup | None) -> Credentials:
    found = Credentials(document, auth, secrets)
    for name in auth:
        if name not in found.schemes:
            near = closest_names(name, sorted(found.schemes))
            known = ", ".join(f"`{each}`" for each in sorted(found.schemes)) or "none"
            hint = f"Did you mean `{near[0]}`?" if near else f"Its schemes: {known}."
            raise ConfigurationError(f"the document has no security scheme `{name}`.", where=document.where, hint=hint)
    return found


def _toolset(api: Api, selection: Selection, rename: Mapping[str, str], asking: frozenset[str]) -> OpenApiToolset:
    operations, refused = read_operations(api.document, selection)
    _check_names(rename, [each.name for each in operations], api.document.where)
    for each in refused:
        logger.warning("openapi.refused %s: %s", each.route, each.reason)
    tools = [_tool(api, replace(each, name=rename.get(each.name, each.name)), asking) for each in operations]
    info = ServerInfo(name=api.document.title, version=api.document.version)
    return OpenApiToolset(tools, refused=tuple(refused), client=api.client, info=info)


def _check_names(rename: Mapping[str, str], names: list[str], where: str) -> None:
    for name in rename:
        if name not in names:
            near = closest_names(name, names)
            hint = f"Did you mean `{near[0]}`?" if near else "`trysquare list` shows the names."
            raise ConfigurationError(f"unknown tool `{name}` in `rename`.", where=where, hint=hint)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Api:
    """An API: its document, and how its operations are called."""

    document: Document
    client: Client
    base_url: str | None
    headers: Mapping[str, str]
    credentials: Credentials

    async def call(self, operation: Operation, arguments: JsonObject) -> Result[Any]:
        base = self.base_url or operation.base
        if base is None:
            raise ToolError(
                f"The document of {self.document.title} names no address of the API. Nothing was sent.",
                code=ErrorCode.CONFIG_INVALID,
                instruction="Ask the user to give the base address: `base_url=` in Python, `--openapi-url` on the "
                "command line.",
            )
        request = build_request(operation, arguments)
        if operation.security:
            # A keyring may block.
            request = await asyncio.to_thread(self.credentials.sign, operation, request)
        request = replace(request, headers={**request.headers, **self.headers})
        return _result(operation, await self.client.send(request, base), self.document.title)


class OperationArguments:
    """The arguments of an operation: validated by its whole schema, listed in the words of strict modes."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation

    @property
    def wire(self) -> JsonObject:
        return self._operation.listed

    @property
    def exact(self) -> JsonObject:
        return self._operation.exact

    @cached_property
    def _validator(self) -> InputValidator:
        return input_validator(self._operation.exact)

    def parse(self, tool: str, raw: JsonObject) -> JsonObject:
        """The checked arguments, or `InvalidArguments` with the corrected call."""
        exact = self._operation.exact
        given = unwrap_arguments(raw, as_object(exact.get("properties")))
        given = cast(JsonObject, _without_texts(given, exact, self._operation.listed, exact))
        wanted = set(as_list(exact.get("required")))
        given = {
            name: value
            for name, value in given.items()
            if value is not None or name in wanted or self._takes_null(name)
        }
        if self._is_closed_to(given) and self._validator.compiled.fits(given):
            return given
        return repair_arguments(self._validator, given, lambda fixed: {"tool": tool, "arguments": fixed}).arguments

    def _is_closed_to(self, given: JsonObject) -> bool:
        return given.keys() <= self._validator.names

    def _takes_null(self, name: str) -> bool:
        schema = as_object(as_object(self._operation.exact.get("properties")).get(name))
        kinds = as_list(schema.get("type")) or [schema.get("type")]
        return not schema or "null" in kinds or "anyOf" in schema


def _without_texts(value: Any, exact: Any, listed: Any, whole: JsonObject) -> Any:
    """The value with what is listed as JSON text read, where a text is not what validation wants."""
    wanted, shown = _target(as_object(exact), whole), as_object(listed)
    if isinstance(value, str) and shown.get("type") == "string" and wanted.get("type") != "string":
        return _read_text(value, wanted)
    if isinstance(value, dict):
        inner, outer = as_object(wanted.get("properties")), as_object(_target(shown, whole).get("properties"))
        return {
            name: _without_texts(part, inner.get(name), outer.get(name), whole) if name in inner else part
            for name, part in cast(JsonObject, value).items()
        }
    if isinstance(value, list):
        items, shown_items = wanted.get("items"), shown.get("items")
        return [_without_texts(each, items, shown_items, whole) for each in cast(list[Any], value)]
    return value


def _target(schema: JsonObject, whole: JsonObject) -> JsonObject:
    reference = ref_of(schema)
    return schema if reference is None else as_object(resolve_pointer(reference, whole))


def _read_text(text: str, wanted: JsonObject) -> Any:
    kinds = as_list(wanted.get("type")) or [wanted.get("type")]
    if "string" in kinds or "enum" in wanted or "anyOf" in wanted:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        # Of anything, a text is a value as well.
        return text


def _tool(api: Api, operation: Operation, asking: frozenset[str]) -> Tool:
    arguments = OperationArguments(operation)

    async def call(raw: JsonObject, context: CallContext) -> Result[Any]:
        return await api.call(operation, arguments.parse(operation.name, raw))

    question = f"Call {operation.route} of {api.document.title}?"
    metadata = ToolMetadata(
        read_only=operation.reads,
        destructive=not operation.reads and operation.method in ("delete", "put", "patch"),
        idempotent=operation.is_repeatable,
        open_world=True,
        tags=frozenset(operation.tags),
        deprecated="The API calls it deprecated." if operation.deprecated else None,
        consent=Consent(question=question.replace("{", "{{").replace("}", "}}"))
        if operation.method in asking
        else None,
        category=operation.tags[0] if operation.tags else None,
    )
    return Tool(
        name=operation.name, title=operation.title, description=operation.description, arguments=arguments, call=call,
        metadata=metadata,
    )  # fmt: skip


def _result(operation: Operation, response: Response, title: str) -> Result[Any]:
    if not 200 <= response.status < 300:
        raise _refusal(operation, response, title)
    kind, body = response.content_type, response.body
    if not body:
        return Result.ok(message=f"{title} answered {response.status} without content.")
    if kind.startswith("image/"):
        return Result.ok(content=(Image(data=body, mime_type=kind),))
    if kind.startswith("audio/"):
        return Result.ok(content=(Audio(data=body, mime_type=kind),))
    if kind == "application/json" or kind.endswith("+json") or not kind:
        try:
            return Result.ok(json.loads(body))
        except (ValueError, RecursionError):
            pass
    if kind.startswith(_TEXTS) or kind.endswith("+xml") or not kind or "json" in kind:
        return Result.ok(body.decode("utf-8", "replace"))
    return Result.ok(body)


def _refusal(operation: Operation, response: Response, title: str) -> ToolError:
    status, text = response.status, _error_text(response)
    said = f" {quote_untrusted(text, source=title)}" if text else ""
    message = f"{title} answered {operation.route} with status {status}.{said}"
    if status in (401, 403):
        return ToolError(
            message, code=ErrorCode.PERMISSION_DENIED, fields={"status": status},
            instruction="Ask the user to check the sign-in of this API; another call will not help.",
        )  # fmt: skip
    if status in (408, 425, 429) or status >= 500:
        wait = response.headers.get("retry-after", "")[:20]
        later = f"Wait {wait} seconds before" if wait.isdecimal() else "Wait before"
        doubt = "" if operation.reads else " Read the present state first: the request may have had an effect."
        return ToolError(
            message, code=ErrorCode.UPSTREAM_UNAVAILABLE, fields={"status": status},
            instruction=f"{later} you send the call again.{doubt}",
        )  # fmt: skip
    return ToolError(
        message, code=ErrorCode.UPSTREAM_REFUSED, fields={"status": status},
        instruction="Read what the API says, correct the arguments and send the call again.",
    )  # fmt: skip


def _error_text(response: Response) -> str:
    """What an error says: its message where it has one, else the beginning of its text."""
    text = response.body.decode("utf-8", "replace").strip()
    if not text or response.content_type == "text/html":
        return ""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return truncate(text, _MAX_ERROR)
    message = (
        error_message(cast(JsonObject, found)) if isinstance(found, dict) and len(cast(JsonObject, found)) == 1 else ""
    )
    return truncate(message or json.dumps(found, ensure_ascii=False), _MAX_ERROR)
